/** Kinds: which are registered, how many there are of each, and whether one is held back. */
import { html, useState } from '../dom.js';
import { Ask } from '../actions.js';
import { quoted } from '../labels.js';
import { late } from '../late.js';
import { useLoad } from '../load.js';
import { useRights } from '../me.js';
import { Empty, Head, Shown } from '../parts.js';
import { listOf } from '../router.js';
import { useSort } from '../sort.js';
import { Table } from '../table.js';
import { WIDE } from '../verbs.js';
import { useWidth } from '../width.js';
import { count, duration, several } from '../words.js';

/** @typedef {import('../types.js').KindUse} KindUse */

const Passes = late(() => import('../passes.js').then((script) => script.Passes), 'Reading its stages …');
const Start = late(() => import('../start.js').then((script) => script.Start));

/** Up to this width of the window two buttons stand below each other, in pixels. */
const TIGHT = 1_360;

/** @param {KindUse} row @param {string[]} states */
const sum = (row, states) => states.reduce((all, state) => all + (row.states[state] ?? 0), 0);

/** What admits those of a kind. @param {KindUse} row */
const of = (row) => `kind:${quoted(row.kind)}`;

/** @param {number} number @param {string} filter @param {string} [tone] */
const link = (number, filter, tone = '') => (number ? html`<a class=${tone} href=${listOf(filter)}>${count(number)}</a>` : html`<span class="none">–</span>`);

/** @param {KindUse} row */
function next(row) {
  if (!row.registered) return 'nothing: no code of this kind is registered, so its families are set aside';
  if (row.paused) return 'held until an operator resumes it';
  return Object.keys(row.versions ?? {}).length ? 'stages start as they become ready' : 'it runs as soon as one is submitted';
}

/** @param {{query: URLSearchParams}} props */
export function Kinds({ query }) {
  const loaded = useLoad('kinds', {}, { on: ['gauges', 'change'], pause: 2_000, filter: 'root:0' });
  const may = useRights();
  const isStacked = useWidth(TIGHT) && may('operate') && may('submit');
  const [open, set] = useState(/** @type {{kind: string, verb: string, takes?: 'value'|'params'|null}|null} */ (null));
  const items = /** @type {KindUse[]} */ (loaded.data?.items ?? []);
  /** @type {import('../table.js').Column<KindUse>[]} */
  const columns = [
    {
      name: 'Kind, and what comes next', width: 'minmax(190px, 1.3fr)', two: true, bare: true, sort: (row) => row.kind, show: (row) => html`
        <span class="two" title=${next(row)}><span><a class="mono" href=${listOf(of(row))}><bdi>${row.kind}</bdi></a>${!row.registered && html` <span class="tag bad">not registered</span>`}${row.paused && html` <span class="tag">paused</span>`}</span>
          <span class="next">${next(row)}</span></span>`,
    },
    { name: 'Versions', width: 'minmax(52px, 0.4fr)', help: 'Live procedures by the version of their payload; of a saga, the versions of its machine', show: (row) => versions(row) },
    { name: 'Initial', width: '44px', align: 'right', sort: (row) => sum(row, ['Initializing']), help: 'Initializing: the first stage has not run', show: (row) => link(row.states.Initializing ?? 0, `${of(row)} state:initializing`) },
    { name: 'Runnable', width: '58px', align: 'right', sort: (row) => sum(row, ['Runnable']), show: (row) => link(row.states.Runnable ?? 0, `${of(row)} state:runnable`) },
    { name: 'Waiting', width: '48px', align: 'right', sort: (row) => sum(row, ['Waiting', 'WaitingTimeout']), show: (row) => link(sum(row, ['Waiting', 'WaitingTimeout']), `${of(row)} state:waiting,waitingtimeout`) },
    { name: 'Failed', width: '42px', align: 'right', sort: (row) => sum(row, ['Failed']), help: 'Rolling back, or ended so', show: (row) => link(row.states.Failed ?? 0, `${of(row)} state:failed`, 'bad') },
    { name: 'Undone', width: '48px', align: 'right', sort: (row) => sum(row, ['RolledBack']), help: 'Rolled back', show: (row) => link(row.states.RolledBack ?? 0, `${of(row)} state:rolledback`) },
    { name: 'Success', width: '52px', align: 'right', sort: (row) => sum(row, ['Success']), show: (row) => link(row.states.Success ?? 0, `${of(row)} state:success`) },
  ];
  if (items.some((row) => row.last_minute)) {
    columns.push({ name: 'In the last minute', width: '112px', two: true, help: 'How many were born within the last 60 seconds, how many ended, and how many of these not well. It leads to charts of the last hour and day', show: (row) => html`<a class="plain" href=${`kinds/charts?${new URLSearchParams({ kind: row.kind })}`} title=${`Charts of ${row.kind}`}>${recent(row.last_minute)}</a>` });
  }
  if (items.some((row) => row.since_start)) {
    columns.push({ name: 'Stages since the start', width: 'minmax(116px, 1.2fr)', two: true, help: 'What user code of a stage took on average; the longest under the pointer', show: (row) => times(row) });
  }
  if (may('operate') || may('submit')) {
    columns.push({
      name: 'Actions', width: may('operate') && may('submit') && !isStacked ? '152px' : '92px', align: 'right', pin: true, show: (row) => html`<span class=${isStacked ? 'stacked' : ''}>
        ${may('submit') && row.starts_with && html`<button type="button" title=${row.starts_with === 'params' ? 'Starts a saga of this machine' : 'Submits one of this kind'} onClick=${() => set({ kind: row.kind, verb: 'submit', takes: row.starts_with })}>Start…</button>`}
        ${may('operate') && !row.paused && html`<button type="button" onClick=${() => set({ kind: row.kind, verb: 'pause' })}>Pause…</button>`}
        ${may('operate') && row.paused && html`<button type="button" onClick=${() => set({ kind: row.kind, verb: 'resume' })}>Resume…</button>`}</span>`,
    });
  }
  const { rows, ...sorted } = useSort(items, columns);
  return html`
    <div class="screen">
      <${Head} title="Kinds" note=${loaded.data && `${several(items.length, 'kind')}; of the finished the newest 10,000 are counted.`}><a class="button" href="kinds/charts">Charts</a><//>
      <${Shown} loaded=${loaded}>
        ${items.length === 0
          ? html`<${Empty}>No kind is registered, and no procedure is there.<//>`
          : html`${query.get('stages') && html`<${Passes} key=${query.get('stages')} kind=${query.get('stages')} />`}
          <${Table} label="Kinds" rows=${rows} sorted=${sorted} columns=${columns} rowKey=${(/** @type {KindUse} */ row) => row.kind} height=${isStacked ? 66 : 44} />`}
      <//>
      ${open?.verb === 'submit' && html`<${Start} kind=${open.kind} takes=${open.takes} onClose=${() => set(null)} />`}
      ${open && open.verb !== 'submit' && html`<${Ask} key=${open.kind + open.verb} verb=${WIDE[open.verb]} path=${`kinds/${encodeURIComponent(open.kind)}/${open.verb}`} target=${{ id: open.kind, kind: open.kind }}
        onClose=${() => { set(null); loaded.reload(); }} />`}
    </div>`;
}

/** What happens now. @param {import('../types.js').Rate|undefined} rate */
function recent(rate) {
  if (!rate || (rate.started === 0 && rate.ended === 0)) return html`<span class="none">none</span>`;
  return html`<span class="two"><span>${count(rate.started)} started</span>
    <span class="next">${count(rate.ended)} ended${rate.failed > 0 && html`, <span class="bad">${count(rate.failed)} failed</span>`}</span></span>`;
}

/** What stages of a kind take: those that took most in all first. @param {KindUse} row */
function times(row) {
  const known = row.since_start;
  if (!known || known.stages.length === 0) return html`<span class="none">none has run</span>`;
  const stages = [...known.stages].sort((one, other) => other.mean_ms * other.runs - one.mean_ms * one.runs);
  const all = stages.map((stage) => `${stage.stage}: ${count(stage.runs)} times, ${duration(stage.mean_ms)} on average, ${duration(stage.longest_ms)} at most`).join('\n');
  return html`<span class="two" title=${all}><span><a href=${`kinds?${new URLSearchParams({ stages: row.kind })}`} aria-label=${`Stages of ${row.kind}, as observed`}>${stages.slice(0, 3).map((stage) => `${stage.stage} ${duration(stage.mean_ms)}`).join(' · ')}</a></span>
    <span class="next">${several(known.submitted, 'submitted', 'submitted')}${known.retries > 0 && `, ${several(known.retries, 'retry', 'retries')}`}${known.panics > 0 && html`, <span class="bad">${several(known.panics, 'panic')}</span>`}</span></span>`;
}

/** Of a saga they are those of its machine: values have one. @param {KindUse} row */
function versions(row) {
  if (row.machine_versions?.length) return row.machine_versions.map(({ version, starts }) => html`<span class=${starts ? 'version' : 'version dim'} key=${version} title=${starts ? 'New sagas go by it' : 'Sagas that began with it go by it'}>${version ?? '–'} </span>`);
  const found = Object.entries(row.versions ?? {});
  if (found.length === 0) return html`<span class="none" title="None of them is live">none</span>`;
  return found.map(([version, number]) => html`<span class="version" key=${version}>v${version} <span class="dim">${count(number)}</span></span>`);
}
