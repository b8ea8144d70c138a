/** What is kept of one procedure, beside its family: waits, history, data, signals, traces, acts. */
import { html, useState } from './dom.js';
import { post, Problem } from './api.js';
import { BULK, BulkTab } from './bulk.js';
import { now } from './clock.js';
import { written } from './json.js';
import { late } from './late.js';
import { useLoad } from './load.js';
import { useMe, useRights } from './me.js';
import { QueueTab } from './queue.js';
import { Ago, download, Empty, Hour, Id, Shown, Trouble } from './parts.js';
import { COLUMNS } from './screens/audit.js';
import { shown } from './states.js';
import { Table } from './table.js';
import { hasGraph } from './tree.js';
import { STREAM } from './verbs.js';
import { bytes, local } from './words.js';

/** @typedef {{id: string, row: import('./types.js').Row, body: any, waits: import('./load.js').Loaded}} Given */

/** Links that are shown at most: what waits for so many is told by its family. */
const LINKS = 100;

/** @param {Given} props */
function Waits({ row, waits }) {
  const found = /** @type {import('./types.js').Waits|null} */ (waits.data);
  if (row.ended) return html`<${Empty}>It has ended, and waits for nothing.<//>`;
  return html`<${Shown} loaded=${waits}>${found && html`
    ${found.deadlocks.map((cycle) => html`<p class="warning">A circle: ${cycle.cycle.map((link) => html`<${Id} id=${link.from} /> waits for <${Id} id=${link.to} /> (${link.why}). `)} The victim would be <${Id} id=${cycle.victim} />.</p>`)}
    ${found.links.length === 0
      ? html`<p class="line">It waits for no other procedure. ${found.ends.map((end) => html`It continues ${local(end.until, now())}.`)}</p>`
      : html`
        <div class="scrolls"><table class="plain-table">
          <thead><tr><th>Who</th><th>waits for</th><th>because of</th><th>for</th></tr></thead>
          <tbody>${found.links.slice(0, LINKS).map((link) => html`<tr key=${`${link.from}-${link.to}-${link.why}`}><th scope="row"><${Id} id=${link.from} /></th><td><${Id} id=${link.to} /></td><td><bdi>${link.why === 'latch' ? 'its children' : link.why}</bdi></td><td><${Ago} time=${link.since} /></td></tr>`)}
          ${found.ends.slice(0, LINKS).map((end) => html`<tr class="end" key=${`end ${end.id}`}><th scope="row"><${Id} id=${end.id} /></th><td colspan="2">continues ${local(end.until, now())}</td><td><${Ago} time=${end.since} /></td></tr>`)}</tbody>
        </table></div>`}
    ${(found.truncated || found.links.length > LINKS) && html`<${Empty}>There are more links than are shown.<//>`}`}<//>`;
}

/** What a stage noted, or its size where the host shows no more. @param {any} note */
export const noted = (note) => {
  if (note === null || typeof note !== 'object') return shown(note);
  if (note.value !== undefined) return written(note.value);
  return typeof note.size === 'number' ? bytes(note.size) : shown(note);
};

/** What was revealed: as of when, and of which revision. @typedef {{payload: any, output: any, now: string, revision: string}} Revealed */

/** @param {Given} props */
function Data({ id, body, row }) {
  const may = useRights();
  const [asks, ask] = useState('');
  const [reason, setReason] = useState('');
  const [found, set] = useState(/** @type {Revealed|null} */ (null));
  const [error, setError] = useState(/** @type {Problem|null} */ (null));
  const isOld = found !== null && found.revision !== row.revision;
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    // The values are read once this is sent: a change meanwhile counts as one behind them.
    const { revision } = row;
    try {
      const told = await post(`procedures/${id}/${asks}`, { reason });
      // One line, as the command line takes it.
      if (asks === 'export') download(`family-${told.id}.jsonl`, written({ type: 'family', ...told.export }));
      else set({ ...told, revision });
      ask('');
      setReason('');
      setError(null);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      setError(problem);
    }
  };
  return html`
    <div class="data">
      <${Value} name="Payload" value=${found?.payload ?? body.payload} kind=${row.kind} asOf=${found?.payload && found.now} isOld=${isOld} />
      <${Value} name="Output" value=${found?.output ?? body.output} kind=${row.kind} asOf=${found?.output && found.now} isOld=${isOld} none=${row.ended ? 'It ended without an output.' : 'There is none before its end.'} />
      ${may('payload') && html`
        <form class="reveal" onSubmit=${send}>
          ${asks
            ? html`<label class="field"><span>Reason</span><input type="text" value=${reason} autofocus placeholder="Recorded in the audit log" onInput=${(/** @type {any} */ event) => setReason(event.target.value)} /></label>
              <button type="submit" key="send" class="main" disabled=${!reason.trim()}>${asks === 'export' ? 'Export' : 'Reveal'}</button><button type="button" onClick=${() => ask('')}>Cancel</button>`
            : html`${(!found || isOld) && !('value' in (body.payload ?? {})) && html`<button type="button" key="reveal" onClick=${() => ask('reveal')}>${found ? 'Reveal again…' : 'Reveal…'}</button>`}<button type="button" key="export" title="Saves its whole family as it is stored, for the command line" onClick=${() => ask('export')}>Export…</button><span class="dim">This will be recorded in the audit log.</span>`}
        </form>`}
      ${error && html`<${Trouble} error=${error} />`}
    </div>`;
}

/** @param {{name: string, value: any, kind: string, asOf?: string, isOld: boolean, none?: string}} props `isOld`: the procedure has changed since then. */
function Value({ name, value, kind, asOf, isOld, none }) {
  const inner = value && typeof value === 'object' && 'value' in value ? value.value : value?.raw;
  return html`
    <section class="value">
      <h3>${name}${value && html` <span class="dim">of <bdi>${kind}</bdi>, ${bytes(value.size ?? 0)}${asOf && html`, as of <${Hour} time=${asOf} />${isOld && ': the procedure has changed since'}`}</span>`}</h3>
      ${!value ? html`<p class="dim">${none}</p>` : inner === undefined ? html`<p class="dim">Redacted: only its kind and size are shown.</p>`
        : html`<pre dir="auto">${typeof inner === 'string' ? inner : written(inner, 2)}</pre>`}
    </section>`;
}

/** @typedef {{waiting: number, names: {name: string, waiting: number}[], more: boolean, oldest: string|null, closed: string[]}} Queue */

/** What waits for it, by name, and which names are closed. @param {{queue: Queue}} props */
function Mailbox({ queue }) {
  if (queue.waiting === 0 && queue.closed.length === 0) return null;
  return html`
    <dl class="part">
      <dt>Waiting</dt><dd>${queue.waiting}${queue.names.length > 0 && html`: ${queue.names.map((of, at) => html`${at > 0 && ', '}<bdi class="mono">${of.name}</bdi> ${of.waiting}`)}${queue.more && ' and other names'}`}</dd>
      ${queue.oldest && html`<dt>The oldest</dt><dd><${Ago} time=${queue.oldest} /></dd>`}
      ${queue.closed.length > 0 && html`<dt title="The last signal of these was sent: further ones are refused">Closed</dt><dd class="mono"><bdi>${queue.closed.join(', ')}</bdi></dd>`}
    </dl>`;
}

/** @param {Given} props */
function Signals({ id }) {
  const loaded = useLoad(`procedures/${id}/signals`, {}, { on: ['change'], pause: 2_000 });
  const items = /** @type {{number: number, name: string, key: string|null, consumed: boolean, payload: any}[]} */ (loaded.data?.items ?? []);
  const queue = /** @type {Queue|null|undefined} */ (loaded.data?.mailbox);
  return html`<${Shown} loaded=${loaded} what="its signals">
    ${queue && html`<${Mailbox} queue=${queue} />`}
    ${items.length === 0 ? html`<${Empty}>No signal is kept for it. One that comes before it is waited for is kept, and taken at once.<//>` : html`
      <div class="scrolls"><table class="plain-table">
        <thead><tr><th>#</th><th>Event</th><th>Key</th><th>Payload</th><th>State</th><th>Next</th></tr></thead>
        <tbody>${items.map((signal) => html`<tr key=${signal.number}><th scope="row">${signal.number}</th><td class="mono"><bdi>${signal.name}</bdi></td><td class="mono"><bdi>${signal.key ?? '–'}</bdi></td><td>${signal.payload?.redacted ? bytes(signal.payload.size) : JSON.stringify(signal.payload)}</td><td>${signal.consumed ? 'taken' : 'kept'}</td><td class="next">${signal.consumed ? 'nothing: a stage has it' : 'the stage that waits for it takes it'}</td></tr>`)}</tbody>
      </table></div>`}
    ${loaded.data?.truncated && html`<${Empty}>There are more than are shown.<//>`}<//>`;
}

/** @param {Given} props */
function Traces({ row }) {
  const [, trace = '', span = ''] = (row.trace ?? '').split('-');
  const url = useMe()?.trace_url?.replaceAll('{trace_id}', trace).replaceAll('{span_id}', span);
  if (!trace) return html`<${Empty}>No trace was named when it was submitted. Spans of its stages carry its id as <code>procedure</code>.<//>`;
  return html`
    <dl class="part"><dt>Trace</dt><dd class="mono">${url ? html`<a href=${url} target="_blank" rel="noopener noreferrer">${trace}</a>` : trace}</dd><dt>Span of the submitter</dt><dd class="mono">${span}</dd></dl>
    <p class="dim">Spans of all its stages, and of those below it, link to this one: <span class="mono">${row.trace}</span></p>`;
}

/** @param {Given} props */
function Acts({ id }) {
  const root = id.split('.')[0];
  const loaded = useLoad('audit', { filter: `target:${root}`, limit: 500 }, { on: ['change'], pause: 2_000 });
  const rows = /** @type {import('./types.js').Act[]} */ (loaded.data?.items ?? []);
  return html`<${Shown} loaded=${loaded} what="the audit">
    ${rows.length === 0
      ? html`<${Empty}>No operator has touched this family.<//>`
      : html`<${Table} label="Acts" rows=${rows} columns=${COLUMNS} rowKey=${(/** @type {import('./types.js').Act} */ act) => act.number} />`}<//>`;
}

/** Fetched when they are opened. */
const History = late(() => import('./history.js').then((script) => script.History), 'Reading its history …');
const Graph = late(() => import('./gates.js').then((script) => script.FamilyGraph), 'Reading its graph …');
const Machine = late(() => import('./machine.js').then((script) => script.Machine), 'Reading its machine …');

/** @type {{name: string, title: string, Show: (props: any) => import('./types.js').Node}[]} */
const TABS = [
  { name: 'waits', title: 'Waits', Show: Waits },
  { name: 'history', title: 'History', Show: History },
  { name: 'data', title: 'Payload and output', Show: Data },
  { name: 'signals', title: 'Signals', Show: Signals },
  { name: 'traces', title: 'Trace links', Show: Traces },
  { name: 'audit', title: 'Actions and audit', Show: Acts },
];
const BULK_TAB = { name: 'bulk', title: 'Bulk', Show: BulkTab };
const QUEUE = { name: 'queue', title: 'Queue', Show: QueueTab };
const MACHINE = { name: 'machine', title: 'Machine', Show: Machine };
const GRAPH = { name: 'graph', title: 'Graph', Show: Graph };
/** What has ended waits for nothing, so its history is first. */
const OF_ENDED = [...TABS.slice(1, 2), ...TABS.slice(0, 1), ...TABS.slice(2)];

/** The tabs of a procedure, the one first that it opens with. @param {import('./types.js').Row} row @param {import('./types.js').TreeRow[]} family */
export function tabsOf(row, family) {
  const tabs = row.ended ? OF_ENDED : TABS;
  if (row.kind === BULK) return [BULK_TAB, ...tabs];
  if (row.kind === STREAM) return [QUEUE, ...tabs];
  if (row.kind.startsWith('saga.')) return [MACHINE, ...tabs];
  return hasGraph(family) ? [...tabs, GRAPH] : tabs;
}
