/** What one verb for many has done so far: how many of how many, which were refused and why, what is left. */
import { html } from './dom.js';
import { useLoad } from './load.js';
import { Empty, Id, Shown } from './parts.js';
import { listOf } from './router.js';
import { Table } from './table.js';
import { VERBS } from './verbs.js';
import { count, several } from './words.js';

/** @typedef {{id: string, number: string|null, refused: string|null}} Outcome */
/** @typedef {{verb: string|null, filter: string|null, who: string|null, reason: string|null, done: number, refused: number, left: number, items: Outcome[]}} Progress */

export const BULK = 'procession.bulk';

/** @param {Outcome} outcome */
function became(outcome) {
  if (outcome.refused !== null) return html`<span class="bad">refused</span>`;
  return outcome.number === null ? 'nothing had to change' : html`<span class="good">done</span>`;
}

/** @type {import('./table.js').Column<Outcome>[]} */
const COLUMNS = [
  { name: 'Procedure', width: '110px', show: (outcome) => html`<${Id} id=${outcome.id} tab="audit" />` },
  { name: 'What became of it', width: '170px', show: became },
  { name: 'Why', width: 'minmax(240px, 1fr)', show: (outcome) => (outcome.refused === null ? html`<span class="none">–</span>` : html`<bdi title=${outcome.refused}>${outcome.refused}</bdi>`) },
  { name: 'Entry in the audit', width: '130px', align: 'right', show: (outcome) => outcome.number ?? html`<span class="none">–</span>` },
];

/** What is left, and what will come of it. @param {import('./types.js').Row} row @param {Progress} body */
function rest(row, body) {
  if (body.left === 0) return 'none is left';
  if (row.ended) return `${several(body.left, 'procedure was', 'procedures were')} not asked before it ended`;
  return `${count(body.left)} left`;
}

/** @param {{id: string, row: import('./types.js').Row}} props */
export function BulkTab({ id, row }) {
  const loaded = useLoad(`procedures/${id}/bulk`, {}, { on: ['change'], pause: 1_000 });
  const body = /** @type {Progress|null} */ (loaded.data);
  return html`<${Shown} loaded=${loaded} what="what it did">${body && html`<${Told} row=${row} body=${body} />`}<//>`;
}

/** @param {{row: import('./types.js').Row, body: Progress}} props */
function Told({ row, body }) {
  const asked = body.done + body.refused;
  const all = asked + body.left;
  const [name = '', ...more] = (body.verb ?? '').split(' ');
  // What somebody may have to look at comes first.
  const rows = [...body.items.filter((outcome) => outcome.refused !== null), ...body.items.filter((outcome) => outcome.refused === null)];
  return html`
    <div class="bulk">
      <dl class="of">
        <div><dt>Verb</dt><dd>${[VERBS[name]?.name ?? name, ...more].join(' ') || 'unknown'}</dd></div>
        <div><dt>For all of</dt><dd>${body.filter === null ? html`<span class="dim">a list of ids</span>` : html`<a class="mono" href=${listOf(body.filter)} title="What the filter admits now; the bulk is for those that it admitted when it was begun"><bdi>${body.filter}</bdi></a>`}</dd></div>
        <div><dt>Asked by</dt><dd><bdi>${body.who}</bdi></dd></div>
        <div><dt>Reason</dt><dd><bdi>${body.reason}</bdi></dd></div>
      </dl>
      <p class="told" role="status">${`${count(body.done)} of ${count(all)} done · ${count(body.refused)} refused · ${rest(row, body)}`}</p>
      <div class="track" role="progressbar" aria-label="Asked so far" aria-valuemin="0" aria-valuemax=${all} aria-valuenow=${asked}>
        <span class="fill" style=${{ width: part(body.done, all) }}></span><span class="fill refused" style=${{ width: part(body.refused, all) }}></span>
      </div>
    </div>
    ${rows.length === 0 ? html`<${Empty}>${all === 0 ? 'There was none to ask.' : 'None of them was asked yet.'}<//>`
      : html`<${Table} label="Outcomes" rows=${rows} columns=${COLUMNS} rowKey=${(/** @type {Outcome} */ outcome) => outcome.id} rowId=${(/** @type {Outcome} */ outcome) => outcome.id} />`}`;
}

/** @param {number} some @param {number} all */
const part = (some, all) => `${all ? (100 * some) / all : 0}%`;
