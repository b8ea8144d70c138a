/** What was executed, attempt by attempt, and on demand what each of them said, noted and logged. */
import { html, useEffect, useMemo, useRef, useState } from './dom.js';
import { get } from './api.js';
import { written } from './json.js';
import { styles } from './late.js';
import { useLoad } from './load.js';
import { Empty, Hour, Shown } from './parts.js';
import { pageOf, useRoute } from './router.js';
import { shown } from './states.js';
import { Table } from './table.js';
import { noted } from './tabs.js';
import { bytes, count, duration, several } from './words.js';

await styles('attempt.css');

/** @typedef {import('./types.js').Entry} Entry */
/** @typedef {{time: string, level: string, target: string, text: any}} LogEvent */
/** @typedef {{id: string, call: string, stage: string, visit: number, attempt: number, events: LogEvent[], left_out: number}} AttemptLog */
/** @typedef {{kept: boolean, items: AttemptLog[], more: number, forgotten: number}} Logs */

/** @type {Record<string, string>} */
const ENDINGS = { retry: 'bad', fail: 'bad', panic: 'bad', undo_failed: 'bad', undone: 'undo', undo_skipped: 'undo', done: 'good' };

/** @type {Record<string, string>} */
const LEVELS = { ERROR: 'bad', WARN: 'warm' };

/** @param {Entry} entry */
const isUndo = (entry) => entry.ending.startsWith('undo');

/** @type {import('./table.js').Column<Entry>[]} */
const COLUMNS = [
  { name: 'Stage', width: 'minmax(100px, 1fr)', bare: true, show: (entry) => html`<bdi title=${entry.stage}>${entry.stage}</bdi>` },
  { name: 'Visit', width: '52px', align: 'right', help: 'Which step of the procedure it was, counted from 0; attempts of one step have one number', show: (entry) => entry.visit },
  { name: 'Attempt', width: '66px', align: 'right', help: 'Of a step that failed often only the last few attempts are kept', show: (entry) => html`<span class=${entry.attempt > 1 ? 'warm' : ''}>${entry.attempt}</span>` },
  { name: 'Ended with', width: '98px', show: (entry) => html`<span class=${ENDINGS[entry.ending] ?? ''}>${entry.ending.replaceAll('_', ' ')}</span>` },
  { name: 'Error', width: 'minmax(120px, 2fr)', show: (entry) => (entry.error === null ? html`<span class="none">–</span>` : html`<bdi class="bad" title=${shown(entry.error)}>${shown(entry.error)}</bdi>`) },
  { name: 'Note', width: 'minmax(60px, 1fr)', help: 'What its code noted, as far as the host shows it', show: (entry) => (entry.note === undefined ? html`<span class="none">–</span>` : html`<bdi class="mono" title=${noted(entry.note)}>${noted(entry.note)}</bdi>`) },
  { name: 'Begun', width: '98px', align: 'right', show: (entry) => html`<${Hour} time=${entry.begun} />` },
  { name: 'Waited', width: '80px', align: 'right', help: 'From ready to begun', show: (entry) => duration(entry.waited_ms) },
  { name: 'Took', width: '80px', align: 'right', show: (entry) => duration(entry.took_ms) },
  { name: 'Stands', width: '66px', help: 'It stands on the rollback stack, and would be undone', show: (entry) => (entry.stands ? 'yes' : html`<span class="none">–</span>`) },
];

/** @type {import('./table.js').Column<Entry>} */
const VALUE = { name: 'Value', width: '70px', align: 'right', help: 'The size of the value that it left, where its kind keeps values; a dash where it left the value as it was', show: (entry) => (entry.value?.changed ? bytes(entry.value.size) : html`<span class="none">–</span>`) };
/** Columns that give room to it. @type {Record<string, string>} */
const NARROWER = { Stage: 'minmax(76px, 1fr)', Error: 'minmax(60px, 2fr)' };

/** @param {string} id @param {string|null} open @param {boolean} hasValues @returns {import('./table.js').Column<Entry>[]} */
function columnsOf(id, open, hasValues) {
  const number = { name: '#', width: '46px', align: 'right', help: 'Leads to all that is known of it', show: (/** @type {Entry} */ entry) => html`<a href=${`${pageOf(id, TAB)}&entry=${entry.number}`} aria-label=${`Details of ${nameOf(entry)}`} aria-current=${String(entry.number) === open ? 'true' : undefined}>${entry.number}</a>` };
  if (!hasValues) return [number, ...COLUMNS];
  const narrow = COLUMNS.map((column) => ({ ...column, width: NARROWER[column.name] ?? column.width }));
  const at = narrow.findIndex(({ name }) => name === 'Begun');
  return [number, ...narrow.slice(0, at), VALUE, ...narrow.slice(at)];
}

/** In the address, in place of an entry's number: the attempt that runs, and has no entry yet. */
const RUNNING = 'running';
/** The tab, as the address names it. */
const TAB = 'history';

/** @param {import('./tabs.js').Given} props */
export function History({ id, row }) {
  const loaded = useLoad(`procedures/${id}/history`, { limit: 500 }, { on: ['change'], pause: 2_000 });
  const [more, set] = useState(/** @type {{items: Entry[], cursor: string|null}|null} */ (null));
  const open = useRoute().query.get('entry');
  const rows = /** @type {Entry[]} */ ([...(loaded.data?.items ?? []), ...(more?.items ?? [])]);
  const cursor = more ? more.cursor : loaded.data?.cursor;
  const isReading = useRef(false);
  const next = async () => {
    if (isReading.current || !cursor) return;
    isReading.current = true;
    try {
      const page = await get(`procedures/${id}/history`, { cursor, limit: 500 });
      set((old) => ({ items: [...(old?.items ?? []), ...page.items], cursor: page.cursor }));
    } finally {
      isReading.current = false;
    }
  };
  const hasValues = rows.some(({ value }) => value?.changed);
  const columns = useMemo(() => columnsOf(id, open, hasValues), [id, open, hasValues]);
  const entry = rows.find(({ number }) => String(number) === open);
  return html`<${Shown} loaded=${loaded} what="its history">
    ${row.going && html`<p class="line running">An attempt runs. ${open === RUNNING ? html`<a href=${pageOf(id, TAB)}>Close its logs</a>` : html`<a href=${`${pageOf(id, TAB)}&entry=${RUNNING}`}>Show its logs</a>`}</p>`}
    ${open === RUNNING && row.going && html`<${Running} id=${id} rows=${rows} />`}
    ${entry && html`<${Attempt} key=${entry.number} id=${id} entry=${entry} rows=${rows} />`}
    ${rows.length === 0 ? html`<${Empty}>None of its stages has run yet.<//>`
      : html`<${Table} label="History" rows=${rows} columns=${columns} rowKey=${(/** @type {Entry} */ item) => String(item.number)} height=${30} onEnd=${next} />`}<//>`;
}

/** @param {Entry} entry */
const nameOf = (entry) => `${isUndo(entry) ? 'the undo of ' : ''}${entry.stage}, visit ${entry.visit}, attempt ${entry.attempt}`;

/** All that is known of one attempt. @param {{id: string, entry: Entry, rows: Entry[]}} props */
function Attempt({ id, entry, rows }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => box.current?.focus(), []);
  return html`
    <section class="attempt" ref=${box} tabindex="-1" aria-label=${`Attempt: ${nameOf(entry)}`}>
      <header><h3><bdi>${isUndo(entry) ? 'Undo of ' : ''}${entry.stage}</bdi> <span class="dim">visit ${entry.visit}, attempt ${entry.attempt}</span> <span class=${ENDINGS[entry.ending] ?? ''}>${entry.ending.replaceAll('_', ' ')}</span></h3>
        <a href=${pageOf(id, TAB)}>Close</a></header>
      ${entry.error !== null && html`<h4>Error</h4><pre class="bad" dir="auto">${shown(entry.error)}</pre>`}
      ${entry.note !== undefined && html`<h4>Note</h4><pre dir="auto">${noted(entry.note)}</pre>`}
      ${entry.value && html`<${ValueBehind} id=${id} entry=${entry} rows=${rows} />`}
      <h4>Logs</h4>
      <${AttemptLogs} id=${id} query=${{ visit: entry.visit, attempt: entry.attempt, undo: String(isUndo(entry)) }} />
    </section>`;
}

/** @typedef {{entry: number, left_by: number|null, too_large: number|null, value: any}} Behind */
/** @typedef {{path: string, change: string, from?: any, to?: any}} Change */
/** @typedef {{to: Behind, from: Behind|null, difference: {items: Change[], truncated: boolean}|null}} Values */

/** In place of an entry's number: before the first stage. */
const FIRST = 0;

/** The value behind an entry, and what differs from that behind another. @param {{id: string, entry: Entry, rows: Entry[]}} props */
function ValueBehind({ id, entry, rows }) {
  const before = rows.filter(({ number }) => number < entry.number).at(-1)?.number ?? FIRST;
  const [from, compare] = useState(before);
  const loaded = useLoad(`procedures/${id}/values`, { entry: entry.number, from });
  const found = /** @type {Values|null} */ (loaded.data);
  const others = rows.filter(({ number, value }) => number !== entry.number && (value?.changed || number === before));
  return html`
    <h4>Value ${entry.value?.changed ? html`<span>that it left, ${bytes(entry.value.size)}</span>` : 'as it was before'}</h4>
    <${Shown} loaded=${loaded} what="its value">${found && html`
      <${Whole} of=${found.to} />
      <label class="compare">Compared with <select value=${String(from)} onChange=${(/** @type {any} */ event) => compare(Number(event.target.value))}>
        <option value=${String(FIRST)}>the first value</option>
        ${others.map((other) => html`<option key=${other.number} value=${String(other.number)}>#${other.number}, ${nameOf(other)}</option>`)}
      </select></label>
      <${Difference} found=${found} />`}<//>`;
}

/** @param {{of: Behind}} props */
function Whole({ of }) {
  if (of.too_large !== null) return html`<p class="dim">It has ${bytes(of.too_large)}, more than is kept or shown.</p>`;
  if (of.value === null) return html`<p class="dim">It is not kept: its kind kept no values then, or older entries are gone.</p>`;
  const inner = of.value.value ?? of.value.raw;
  if (!('value' in of.value)) return html`<p class="dim">Redacted: the host shows only its size, ${bytes(of.value.size ?? 0)}.</p>`;
  return html`<pre dir="auto">${typeof inner === 'string' ? inner : written(inner, 2)}</pre>`;
}

/** @type {Record<string, string>} */
const MARKS = { added: '+', removed: '−', changed: '~' };

/** @param {{found: Values}} props */
function Difference({ found: { from, difference } }) {
  if (!difference) return html`<p class="dim">${from && from.value === null && from.too_large === null ? 'The other value is not kept.' : 'They cannot be compared: not both are shown.'}</p>`;
  if (difference.items.length === 0) return html`<p class="dim">They are the same.</p>`;
  const told = (/** @type {any} */ value) => (value === undefined ? html`<span class="none">–</span>` : html`<bdi>${written(value)}</bdi>`);
  return html`
    <div class="scrolls"><table class="plain-table differs" aria-label="What has changed">
      <thead><tr><th>Place</th><th>Before</th><th>After</th></tr></thead>
      <tbody>${difference.items.map(({ path, change, ...sides }) => html`<tr key=${path + change}><th scope="row" class="mono"><span class=${change === 'added' ? 'good' : change === 'removed' ? 'bad' : 'warm'} title=${change}>${MARKS[change]}</span> <bdi>${path || 'all of it'}</bdi></th><td class="mono">${told(sides.from)}</td><td class="mono">${told(sides.to)}</td></tr>`)}</tbody>
    </table></div>
    ${difference.truncated && html`<p class="dim">There are more changes than are told.</p>`}`;
}

/** @param {{id: string, query: Record<string, string|number>}} props */
function AttemptLogs({ id, query }) {
  const loaded = useLoad(`procedures/${id}/logs`, query, { on: ['change'], pause: 2_000 });
  const logs = /** @type {Logs|null} */ (loaded.data);
  return html`<${Shown} loaded=${loaded} what="its logs">${logs && html`<${Lines} logs=${logs} log=${logs.items.at(-1)} none="It logged nothing that is kept." />`}<//>`;
}

/** The newest attempt, if it has no entry yet. @param {{id: string, rows: Entry[]}} props */
function Running({ id, rows }) {
  const loaded = useLoad(`procedures/${id}/logs`, { limit: 1 }, { on: ['change', 'gauges'], pause: 2_000 });
  const logs = /** @type {Logs|null} */ (loaded.data);
  const last = logs?.items.at(-1);
  const hasEnded = last && rows.some((entry) => entry.visit === last.visit && entry.attempt === last.attempt && isUndo(entry) === (last.call === 'undo'));
  return html`<section class="attempt" aria-label="The attempt that runs"><${Shown} loaded=${loaded} what="its logs">
    ${logs && html`<${Lines} logs=${logs} log=${hasEnded ? undefined : last} none="It has logged nothing yet." />`}<//></section>`;
}

/** @param {{logs: Logs, log: AttemptLog|undefined, none: string}} props */
function Lines({ logs, log, none }) {
  if (!logs.kept) return html`<p class="dim">The host keeps no logs of attempts. To see them here, add <code>StageLogs</code> to its tracing subscriber, and give it to the dashboard.</p>`;
  if (!log) return html`<p class="dim">${none} Logs are in memory: those of before the last start are gone${logs.forgotten > 0 && html`, and so are those of ${several(logs.forgotten, 'attempt')} that logged nothing for longest`}.</p>`;
  return html`
    ${log.left_out > 0 && html`<p class="dim">The newest ${count(log.events.length)} events; ${several(log.left_out, 'older one')} ${log.left_out === 1 ? 'is' : 'are'} not kept.</p>`}
    <ol class="log">${log.events.map((event, at) => html`<li key=${log.left_out + at}>
      <${Hour} time=${event.time} /> <span class=${`level ${LEVELS[event.level] ?? ''}`}>${event.level}</span> <span class="target dim"><bdi>${event.target}</bdi></span> <${Text} text=${event.text} /></li>`)}</ol>`;
}

/** What an event says, or its size where the host shows no more. @param {{text: any}} props */
function Text({ text }) {
  if (text === null || typeof text !== 'object') return html`<span class="said">${shown(text)}</span>`;
  if (text.message === undefined) return html`<span class="said dim">redacted${typeof text.size === 'number' && `, ${bytes(text.size)}`}</span>`;
  const fields = /** @type {{name: string, value: any}[]} */ (text.fields ?? []);
  return html`<span class="said"><bdi>${shown(text.message)}</bdi>${fields.map(({ name, value }) => html` <span class="pair"><span class="dim">${name}=</span><bdi>${shown(value)}</bdi></span>`)}${text.cut && html` <span class="dim" title="Something in it was longer than is kept">…</span>`}</span>`;
}
