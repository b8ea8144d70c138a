/** Failures that nobody has acknowledged, in groups of those of one kind that say the same. */
import { html, useState } from '../dom.js';
import { Ask } from '../actions.js';
import { quoted } from '../labels.js';
import { useLoad } from '../load.js';
import { useRights } from '../me.js';
import { Ago, Empty, Head, Id, Shown } from '../parts.js';
import { listOf } from '../router.js';
import { useSort } from '../sort.js';
import { Table } from '../table.js';
import { VERBS } from '../verbs.js';
import { count, duration, several } from '../words.js';

/** @typedef {import('../types.js').FailureGroup} Group */
/** @typedef {{count: number, truncated: boolean, items: Group[], more_groups: number, columns_from: string, column_ms: number}} Body */

/** What admits the failures of a group, and no others. @param {Group} group */
const filterOf = ({ kind, fingerprint }) => `failure:${fingerprint} kind:${quoted(kind)}`;

/** @param {Body} body */
function note(body) {
  const more = body.truncated ? 'more than ' : '';
  const kept = 'A failure stays here until it is acknowledged, or its retention has passed.';
  return body.count === 0 ? kept : `${more}${several(body.count, 'failure')} in ${several(body.items.length + body.more_groups, 'group')}. ${kept}`;
}

export function Failures() {
  const loaded = useLoad('failures', {}, { on: ['verdict'], pause: 2_000, filter: 'root:0' });
  const may = useRights();
  const [asked, ask] = useState(/** @type {{name: string, group: Group}|null} */ (null));
  const body = /** @type {Body|null} */ (loaded.data);
  /** @type {import('../table.js').Column<Group>[]} */
  const columns = [
    { name: 'Count', width: '58px', align: 'right', sort: (group) => group.count, show: (group) => html`<a class="bad" href=${listOf(filterOf(group))} title="List them">${count(group.count)}</a>` },
    { name: 'Kind', width: 'minmax(96px, 0.5fr)', sort: (group) => group.kind, show: (group) => html`<bdi class="mono" title=${group.kind}>${group.kind}</bdi>` },
    {
      name: 'What they say', width: 'minmax(160px, 2fr)', two: true, bare: true, sort: (group) => String(group.text), show: (group) => html`
        <span class="two" title=${String(group.text)}><bdi>${String(group.text) || html`<span class="none">no text</span>`}</bdi>
          <span class="next">the newest is <${Id} id=${group.newest} tab="history" />${group.newest_key && html` <bdi class="mono">${group.newest_key}</bdi>`}${group.origin_kind && ` · it began in ${group.origin_kind}`}</span></span>`,
    },
    { name: 'Over time', width: '104px', help: body ? `Each bar is ${duration(body.column_ms)}` : '', show: (group) => html`<${Spark} group=${group} />` },
    { name: 'First', width: '74px', align: 'right', sort: (group) => Date.parse(group.first), show: (group) => html`<${Ago} time=${group.first} label="first" />` },
    { name: 'Last', width: '74px', align: 'right', sort: (group) => Date.parse(group.last), show: (group) => html`<${Ago} time=${group.last} label="last" />` },
  ];
  if (may('operate')) {
    const button = (/** @type {string} */ name, /** @type {Group} */ group) => html`<button type="button" onClick=${() => ask({ name, group })}>${VERBS[name]?.name}…</button>`;
    columns.push({ name: 'Actions', width: '248px', align: 'right', pin: true, show: (group) => html`${button('run-again', group)} ${button('acknowledge', group)}` });
  }
  const { rows, ...sorted } = useSort(body?.items ?? NONE, columns);
  const verb = asked && VERBS[asked.name];
  const filter = asked ? filterOf(asked.group) : '';
  return html`
    <div class="screen">
      <${Head} title="Failures" note=${body && note(body)} />
      <${Shown} loaded=${loaded}>
        ${body && (body.items.length === 0
          ? html`<${Empty}>No failure waits to be acknowledged.<//>`
          : html`<${Table} label="Failures" rows=${rows} sorted=${sorted} columns=${columns} rowKey=${key} rowId=${(/** @type {Group} */ group) => group.newest} height=${44} />`)}
      <//>
      ${asked && verb && html`<${Ask} verb=${{ ...verb, plans: true }} path=${`bulk/${asked.name}`} target=${{ id: 'all of', kind: filter }} start=${{}} fixed=${{ filter, limit: MANY }} onClose=${() => { ask(null); loaded.reload(); }} />`}
    </div>`;
}

/** @type {Group[]} */
const NONE = [];

/** As many as one request may ask for. */
const MANY = 5_000;

/** @param {Group} group */
const key = (group) => `${group.kind} ${group.fingerprint}`;

/** How many failed in each stretch of time, as bars. @param {{group: Group}} props */
function Spark({ group }) {
  const most = Math.max(1, ...group.columns);
  const step = 4;
  return html`
    <svg class="spark" width=${group.columns.length * step} height="22" role="img" aria-label=${`${several(group.count, 'failure')}, at most ${count(most)} in one bar`}>
      ${group.columns.map((number, at) => number > 0 && html`<rect key=${at} x=${at * step} width=${step - 1} y=${22 - height(number, most)} height=${height(number, most)} />`)}
    </svg>`;
}

/** @param {number} number @param {number} most */
const height = (number, most) => Math.max(2, Math.round((20 * number) / most));
