/** What a stream does: the node in hand, those that run next, and the newest that have ended. */
import { html, useEffect, useRef, useState } from './dom.js';
import { get } from './api.js';
import { useLoad } from './load.js';
import { Ago, Empty, Hour, Shape, Shown } from './parts.js';
import { shown, worded } from './states.js';
import { Table } from './table.js';
import { noted } from './tabs.js';
import { bytes, count } from './words.js';

/** @typedef {import('./types.js').Queued} Queued @typedef {import('./types.js').StreamRecord} StreamRecord @typedef {import('./types.js').Queue} Queue */

/** How a node or a stream stands. @param {{word: string}} props */
export function Worded({ word }) {
  const { tone, shape, help } = worded(word);
  return html`<span class=${`state ${tone}`} title=${help}><${Shape} shape=${shape} />${word}</span>`;
}

/** @type {import('./table.js').Column<Queued>[]} */
const NEXT = [
  { name: 'Place', width: '64px', align: 'right', show: (row) => count(row.place) },
  { name: 'Name', width: 'minmax(90px, 1fr)', bare: true, show: (row) => html`<bdi title=${row.name}>${row.name ?? html`<span class="none">–</span>`}</bdi>` },
  { name: 'Kind', width: 'minmax(80px, 1fr)', show: (row) => html`<bdi>${row.kind}</bdi>` },
  { name: 'State', width: '118px', show: (row) => html`<${Worded} word=${row.state} />` },
  { name: 'Why', width: 'minmax(120px, 2fr)', show: (row) => html`<bdi class=${row.question === null ? '' : 'bad'}>${row.question === null ? row.reason : shown(row.question)}</bdi>` },
  { name: 'Since', width: '84px', align: 'right', show: (row) => html`<${Ago} time=${row.since} />` },
];

/** @type {import('./table.js').Column<StreamRecord>[]} */
const RECORDS = [
  { name: 'Place', width: '64px', align: 'right', show: (row) => count(row.place) },
  { name: 'Name', width: 'minmax(90px, 1fr)', bare: true, show: (row) => html`<bdi title=${row.name}>${row.name ?? html`<span class="none">–</span>`}</bdi>` },
  { name: 'Kind', width: 'minmax(80px, 1fr)', show: (row) => html`<bdi>${row.kind}</bdi>` },
  { name: 'State', width: '118px', show: (row) => html`<${Worded} word=${row.state} />` },
  { name: 'Attempts', width: '70px', align: 'right', help: 'Of its last run; 0 if a person has ended it', show: (row) => count(row.attempts) },
  { name: 'Output', width: '70px', align: 'right', show: (row) => bytes(row.output_bytes) },
  { name: 'Note', width: 'minmax(80px, 1fr)', help: 'What its code noted, as far as the host shows it', show: (row) => (row.note === null ? html`<span class="none">–</span>` : html`<bdi class="mono">${noted(row.note)}</bdi>`) },
  { name: 'Cause', width: 'minmax(80px, 1fr)', show: (row) => (row.cause === null ? html`<span class="none">–</span>` : html`<bdi class="bad">${shown(row.cause)}</bdi>`) },
  { name: 'Ended', width: '98px', align: 'right', show: (row) => html`<${Hour} time=${row.ended} />` },
];

/** @param {Queued|StreamRecord} row */
const key = (row) => String(row.place);

/** By place. @param {Map<number, StreamRecord>|undefined} known @param {StreamRecord[]} records @returns {Map<number, StreamRecord>} */
const join = (known, records) => new Map([...(known ?? []), ...records.map((record) => /** @type {const} */ ([record.place, record]))]);

/** @param {{id: string}} props */
export function QueueTab({ id }) {
  const loaded = useLoad(`procedures/${id}/queue`, {}, { on: ['change'], pause: 2_000 });
  const [more, set] = useState(/** @type {{known: Map<number, StreamRecord>, before: number|null}|null} */ (null));
  const isReading = useRef(false);
  const queue = /** @type {Queue|null} */ (loaded.data);
  const before = (more ?? queue)?.before;
  const older = async () => {
    if (!queue || !before || isReading.current) return;
    isReading.current = true;
    try {
      const page = await get(`procedures/${id}/queue`, { before, limit: 500 });
      set((old) => ({ known: join(old?.known, [...queue.records, ...page.records]), before: page.before }));
    } finally {
      isReading.current = false;
    }
  };
  // If so many ended at once that others between are not known, it begins anew.
  useEffect(() => set((old) => (old && queue?.records.some(({ place }) => old.known.has(place)) ? { ...old, known: join(old.known, queue.records) } : null)), [queue]);
  const records = more ? [...more.known.values()].sort((one, other) => other.place - one.place) : queue?.records ?? [];
  const next = queue ? [...(queue.in_hand ? [queue.in_hand] : []), ...queue.next] : [];
  return html`<${Shown} loaded=${loaded} what="its queue">${queue && html`
    <p class="line"><${Worded} word=${queue.state} /> ${count(queue.waiting)} waiting${queue.oldest && html`, the oldest for <${Ago} time=${queue.oldest} />`} · ${count(queue.done)} done${queue.per_minute !== null && `, ${count(queue.per_minute)} a minute`}${queue.sealed && ' · nothing more is taken'}</p>
    <div class="gates queue">
      ${next.length === 0 ? html`<${Empty}>Nothing waits.<//>` : html`<${Table} label="Queue" rows=${next} columns=${NEXT} rowKey=${key} height=${30} foot=${queue.waiting > queue.next.length && html`<${Empty}>${count(queue.waiting - queue.next.length)} more wait behind these.<//>`} />`}
      ${records.length === 0 ? html`<${Empty}>None of its nodes has ended.<//>` : html`<${Table} label="Records" rows=${records} columns=${RECORDS} rowKey=${key} height=${30} onEnd=${older} />`}
    </div>`}<//>`;
}
