/** Sets and streams: how each stands, how many of its nodes do, and which of them wait for a person. */
import { html, useEffect, useRef, useState } from '../dom.js';
import { get } from '../api.js';
import { labelsOf } from '../labels.js';
import { useLoad } from '../load.js';
import { Ago, Empty, Head, Id, Shape, Shown } from '../parts.js';
import { Worded } from '../queue.js';
import { pageOf, setQuery } from '../router.js';
import { useSort } from '../sort.js';
import { Table } from '../table.js';
import { count, newestFirst } from '../words.js';
import { FilterBox } from './list.js';

/** Rows of a page, and that are kept at most: beyond them a narrower filter is better. */
const ROWS = 500;
const KEPT = 10_000;
/** How long after a reading the next is made while nodes are being counted, in milliseconds. */
const COUNTING = 1_000;

/** @typedef {import('../types.js').Flow} Flow */

const QUICK = [
  { name: 'Unfinished', filter: '' },
  { name: 'Finished', filter: 'state:ended' },
];

/** The states of nodes, those that need somebody first. */
const STATES = ['pending', 'error', 'running', 'ready', 'wait', 'success', 'cancelled'];

/** @param {{row: Flow}} props */
function Stands({ row }) {
  if (row.set_aside) return html`<span class="state bad" title="Its family is set aside, and stands as it stood then."><${Shape} shape="warn" />quarantined</span>`;
  if (row.state === null) return html`<span class="dim">counting …</span>`;
  return html`<${Worded} word=${row.state} />`;
}

/** What a stream does. @param {{queue: NonNullable<Flow['queue']>}} props */
const Queued = ({ queue }) => html`<span>${queue.in_hand && html`${queue.in_hand} in hand · `}${count(queue.waiting)} waiting${queue.oldest && html` for <${Ago} time=${queue.oldest} label="the oldest since" />`} · ${count(queue.done)} done${queue.sealed && ' · finishes'}</span>`;

/** @param {{counts: Flow['counts']}} props */
function Counted({ counts }) {
  if (!counts) return html`<span class="none">–</span>`;
  const found = STATES.filter((state) => (counts[state] ?? 0) > 0);
  return html`<span title=${found.map((state) => `${count(counts[state] ?? 0)} ${state.toUpperCase()}`).join(', ')}>${found.map((state, at) => html`${at > 0 && ' · '}<span class=${['pending', 'error'].includes(state) ? 'bad' : ''}>${count(counts[state] ?? 0)} ${state}</span>`)}</span>`;
}

/** @param {Flow} row */
const tabOf = (row) => (row.queue ? 'queue' : 'graph');

/** @type {import('../table.js').Column<Flow>[]} */
const COLUMNS = [
  { name: 'State', width: '118px', bare: true, sort: (row) => row.state, show: (row) => html`<${Stands} row=${row} />` },
  { name: 'Id', width: '58px', bare: true, sort: (row) => Number(row.id.split('.')[0]), show: (row) => html`<${Id} id=${row.id} tab=${tabOf(row)} />` },
  {
    name: 'Name', width: 'minmax(110px, 0.7fr)', two: true, bare: true, sort: (row) => row.name ?? row.key ?? row.id, help: 'Its title, and below it its key and its labels', show: (row) => {
      const more = [row.key !== row.name && row.key, ...labelsOf(row).map(({ text }) => text)].filter(Boolean).join(' · ');
      return html`<span class="two" title=${[row.name, more].filter(Boolean).join(' · ')}><span><a href=${pageOf(row.id, tabOf(row))}><bdi>${row.name ?? row.key ?? row.id}</bdi></a></span><bdi class="next mono">${more}</bdi></span>`;
    },
  },
  { name: 'Nodes', width: 'minmax(150px, 1fr)', show: (row) => (row.queue ? html`<${Queued} queue=${row.queue} />` : html`<${Counted} counts=${row.counts} />`) },
  { name: 'Waits for a person', width: 'minmax(110px, 0.8fr)', help: 'The nodes that hold up others, or themselves', show: (row) => (row.pending.length === 0 ? html`<span class="none">–</span>` : html`<bdi class="bad" title=${row.pending.join(', ')}>${row.pending.join(', ')}</bdi>`) },
  { name: 'Since', width: '78px', align: 'right', sort: (row) => Date.parse(row.since), help: 'When one of its nodes last changed', show: (row) => html`<${Ago} time=${row.since} label="as it is since" />` },
  { name: 'Age', width: '78px', align: 'right', sort: (row) => Date.parse(row.submitted), show: (row) => html`<${Ago} time=${row.submitted} label="submitted" />` },
];

/** @param {{query: URLSearchParams}} props */
export function Flows({ query }) {
  const filter = query.get('filter') ?? '';
  const loaded = useLoad('flows', { filter, limit: ROWS, order: 'newest' }, { on: ['change'], pause: 2_000, filter: 'root:0' });
  const [more, setMore] = useState(/** @type {any} */ (null));
  const isReading = useRef(false);
  const behind = more?.filter === filter ? more : { ...loaded.data, items: [], unreadable: [] };
  const unreadable = [...(loaded.data?.unreadable ?? []), ...behind.unreadable];
  // Where some have ended, the first page reaches into the next.
  const found = new Map([...behind.items, ...(loaded.data?.items ?? [])].map((row) => [row.id, row]));
  const isLost = (/** @type {Flow} */ row) => row.state === null && unreadable.includes(row.id);
  const rows = /** @type {Flow[]} */ ([...found.values()].sort((one, other) => newestFirst(one.id, other.id)).map((row) => (isLost(row) ? { ...row, state: 'not readable' } : row)));
  const { rows: ordered, ...sorted } = useSort(rows, COLUMNS);
  const next = async () => {
    if (isReading.current || !behind.cursor || rows.length >= KEPT) return;
    isReading.current = true;
    try {
      const page = await get('flows', { filter, limit: ROWS, cursor: behind.cursor, order: 'newest' });
      setMore({ ...page, filter, items: [...behind.items, ...page.items], unreadable: [...behind.unreadable, ...page.unreadable] });
    } finally {
      isReading.current = false;
    }
  };
  // The first page alone is read again.
  const isCounting = rows.slice(0, loaded.data?.items.length ?? 0).some((row) => row.state === null);
  useEffect(() => {
    if (!isCounting) return undefined;
    const timer = window.setTimeout(loaded.reload, COUNTING);
    return () => window.clearTimeout(timer);
  }, [loaded.data]);
  const note = loaded.data && [`${count(rows.length)} shown`, behind.cursor && 'and more', behind.truncated && 'it stopped early', unreadable.length > 0 && `not readable: ${unreadable.slice(0, 5).join(', ')}`].filter(Boolean).join(' · ');
  return html`
    <div class="screen list">
      <${Head} title="Sets and streams" note=${note}>
        <div class="quick" role="group" aria-label="Filters in common use">
          ${QUICK.map((quick) => html`<button type="button" key=${quick.name} aria-pressed=${quick.filter === filter} onClick=${() => setQuery({ filter: quick.filter }, false)}>${quick.name}</button>`)}
        </div>
      <//>
      <${FilterBox} filter=${filter} error=${loaded.error} rows=${rows} />
      <${Shown} loaded=${loaded} what="sets and streams">
        ${loaded.data && (rows.length === 0
          ? html`<${Empty}>${behind.truncated ? html`None so far. <button type="button" onClick=${next}>Scan on</button>` : filter ? 'No set and no stream matches.' : 'No set and no stream is unfinished.'}<//>`
          : html`<${Table} label="Sets and streams" rows=${ordered} sorted=${sorted} columns=${COLUMNS} rowKey=${key} rowId=${key} height=${44} onEnd=${next} tone=${tone} />`)}
      <//>
    </div>`;
}

/** @param {Flow} row */
const key = (row) => row.id;
/** @param {Flow} row */
const tone = (row) => (row.state === 'PENDING' ? 'bad' : '');
