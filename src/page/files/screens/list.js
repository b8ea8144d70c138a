/** Procedures that a filter admits; those that have not ended, unless it speaks of states. */
import { html, useCallback, useEffect, useMemo, useRef, useState } from '../dom.js';
import { Bulk } from '../actions.js';
import { get, Problem } from '../api.js';
import { labelsOf } from '../labels.js';
import { useLoad } from '../load.js';
import { Ago, Empty, Head, Id, Shown, State } from '../parts.js';
import { go, pageOf, setQuery, useRoute } from '../router.js';
import { standing, why } from '../states.js';
import { Table } from '../table.js';
import { byId, count, local, several } from '../words.js';
import { now } from '../clock.js';

/** Rows of the first page, which is seen at once, and of those behind it. */
const FIRST = 100;
const PAGE = 500;
/** Rows that are kept at most: beyond them a narrower filter is better. */
const KEPT = 10_000;

/** @typedef {import('../types.js').Row} Row */

const QUICK = [
  { name: 'Unfinished', filter: '' },
  { name: 'Waiting for a lock', filter: 'reason:lock' },
  { name: 'Retrying', filter: 'state:retrying' },
  { name: 'Rolling back', filter: 'state:rolling_back' },
  { name: 'Old', filter: 'age:>1h' },
  { name: 'Finished', filter: 'state:ended' },
];

/** @type {import('../table.js').Column<Row>[]} */
const COLUMNS = [
  { name: 'State', width: '138px', show: (row) => html`<${State} row=${row} />` },
  { name: 'Id', width: '58px', show: (row) => html`<${Id} id=${row.id} />` },
  { name: 'Kind', width: 'minmax(104px, 0.3fr)', show: (row) => html`<span title=${`${row.kind}, version ${row.version}`}>${row.kind} <span class="dim">v${row.version}</span></span>` },
  { name: 'Key', width: 'minmax(70px, 0.2fr)', help: 'Its idempotency key or its name, and its labels', show: (row) => html`<${Names} row=${row} />` },
  {
    name: 'Why, and what comes next', width: 'minmax(240px, 1fr)', show: (row) => html`
      <span class="two" title=${`${why(row)}. Next: ${row.next}.`}><span>${local(why(row), now())}</span><span class="next">${local(row.next, now())}</span></span>`,
  },
  { name: 'Since', width: '78px', align: 'right', show: (row) => html`<${Ago} time=${row.since} label="as it is since" />` },
  { name: 'Attempt', width: '56px', align: 'right', help: 'Failed attempts of the stage that is next', show: (row) => html`<span class=${row.attempt ? 'warm' : 'none'}>${row.attempt || '–'}</span>` },
  { name: 'Prio', width: '38px', align: 'right', help: 'Higher goes first where it waits', show: (row) => html`<span class=${row.priority ? '' : 'none'}>${row.priority || '–'}</span>` },
  { name: 'Root', width: '44px', show: (row) => (row.root === row.id ? html`<span class="none">–</span>` : html`<${Id} id=${row.root} />`) },
];

/** The key or the name, and below it the labels. @param {{row: Row}} props */
function Names({ row }) {
  const labels = labelsOf(row).map(({ text }) => text).join(' ');
  const called = row.key ?? row.name;
  const key = html`<span class="mono">${called ?? html`<span class="none">–</span>`}</span>`;
  if (!labels) return html`<span title=${[row.key, row.name].filter(Boolean).join(' · ')}>${key}</span>`;
  return html`<span class="two" title=${[row.key, row.name, labels].filter(Boolean).join(' · ')}>${key}<span class="next mono">${labels}</span></span>`;
}

/** @param {{query: URLSearchParams}} props */
export function List({ query }) {
  const filter = query.get('filter') ?? '';
  const [more, setMore] = useState(/** @type {{filter: string, rows: Row[], cursor: string|null, scanned: number, truncated: boolean}|null} */ (null));
  const isReading = useRef(false);
  const namesStates = /(^|\s)(state|failure):/.test(filter);

  const heard = (/** @type {string} */ event, /** @type {any} */ body) => {
    if (event !== 'change') return;
    loaded.patch((data) => ({ ...data, items: fold(data.items, body, namesStates, data.cursor) }));
    setMore((old) => old && { ...old, rows: fold(old.rows, body, namesStates, old.cursor, old.rows[0]?.id) });
  };
  const loaded = useLoad('procedures', { filter, limit: FIRST }, { filter, pause: 2_000, heard });
  const body = loaded.data;
  const behind = more && more.filter === filter ? more : null;
  useEffect(() => setMore(null), [filter]);

  const rows = useMemo(() => (body ? [...body.items, ...(behind?.rows ?? [])] : []), [body, behind]);
  const cursor = behind ? behind.cursor : (body?.cursor ?? null);
  const scanned = (body?.scanned ?? 0) + (behind?.scanned ?? 0);
  const isCut = behind ? behind.truncated : body?.truncated;

  const next = useCallback(async () => {
    if (isReading.current || !cursor || rows.length >= KEPT) return;
    isReading.current = true;
    try {
      const page = await get('procedures', { filter, limit: PAGE, cursor });
      setMore((old) => {
        const mine = old && old.filter === filter ? old : null;
        return { filter, rows: [...(mine?.rows ?? []), ...page.items], cursor: page.cursor, scanned: (mine?.scanned ?? 0) + page.scanned, truncated: page.truncated };
      });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    } finally {
      isReading.current = false;
    }
  }, [filter, cursor, rows.length]);

  const words = [
    body && `${several(rows.length, 'row')}${cursor ? ', and more' : ''}`,
    // One that came since was looked at, too.
    body && `${count(Math.max(scanned, rows.length))} scanned`,
    isCut && 'it stopped early: narrow the filter, or scroll to go on',
  ].filter(Boolean).join(' · ');
  return html`
    <div class="screen list">
      <${Head} title="Procedures" note=${words}><${Bulk} filter=${filter} /><${Quick} filter=${filter} /><//>
      <${FilterBox} filter=${filter} error=${loaded.error} />
      <${Shown} loaded=${loaded}>
        ${body && (rows.length === 0
          ? html`<${Nothing} filter=${filter} isCut=${isCut} onMore=${next} />`
          : html`<${Table} label="Procedures" rows=${rows} columns=${COLUMNS} rowKey=${key} rowId=${key} height=${44} onEnd=${next} tone=${tone}
              foot=${rows.length >= KEPT && html`<${Empty}>${count(KEPT)} rows are shown at most. Narrow the filter.<//>`} />`)}
      <//>
    </div>`;
}

/** @param {Row} row */
const key = (row) => row.id;
/** @param {Row} row */
const tone = (row) => (standing(row).tone === 'bad' ? 'bad' : '');

/**
 * Lays what has changed over rows that are shown, which stay in their order.
 * @param {Row[]} rows @param {any} change @param {boolean} namesStates @param {string|null} cursor @param {string} [from]
 */
function fold(rows, change, namesStates, cursor, from) {
  /** @type {Map<string, Row|null>} */
  const news = new Map();
  for (const id of change.left) news.set(id, null);
  for (const row of change.rows) news.set(row.id, row.ended && !namesStates ? null : row);
  const gone = new Set(change.gone.map(String));
  const kept = [];
  for (const row of rows) {
    const found = news.get(row.id);
    news.delete(row.id);
    if (gone.has(row.id.split('.')[0]) || found === null) continue;
    kept.push(found ?? row);
  }
  const born = [...news.values()].filter((row) => row !== null && (!cursor || byId(row.id, cursor) < 0) && (!from || byId(row.id, from) > 0));
  if (born.length === 0) return kept;
  return [...kept, .../** @type {Row[]} */ (born)].sort((one, other) => byId(one.id, other.id));
}

/** @param {{filter: string}} props */
const Quick = ({ filter }) => html`
  <div class="quick" role="group" aria-label="Filters in common use">
    ${QUICK.map((quick) => html`<button type="button" key=${quick.name} aria-pressed=${quick.filter === filter} onClick=${() => setQuery({ filter: quick.filter }, false)}>${quick.name}</button>`)}
  </div>`;

/** @param {{filter: string, error: Problem|null}} props */
export function FilterBox({ filter, error }) {
  const [text, set] = useState(filter);
  const timer = useRef(0);
  useEffect(() => set(filter), [filter]);
  const write = (/** @type {string} */ value, /** @type {number} */ wait) => {
    set(value);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setQuery({ filter: value.trim() }), wait);
  };
  /** One word may be a key, and then leads to its procedure. */
  const enter = async () => {
    const word = text.trim();
    if (/^[^\s:"]+$/.test(word)) {
      try {
        const { items: [found] } = await get('procedures', { filter: `key:"=${word.replaceAll('\\', '\\\\')}" state:live,ended`, limit: 1 });
        if (found) {
          window.clearTimeout(timer.current);
          return go(pageOf(found.id));
        }
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
      }
    }
    return write(text, 0);
  };
  const position = error?.kind === 'filter' ? error.position : null;
  return html`
    <form class="filter" role="search" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); enter(); }}>
      <label><span class="hidden">Filter</span>
        <input data-filter type="search" value=${text} spellcheck="false" autocomplete="off" aria-invalid=${position !== null}
          placeholder="state:waiting reason:lock kind:create_table key:req- label:customer=4711 age:>10m attempts:>3 err:timeout root:42 rule:S2"
          onBlur=${() => text.trim() !== filter && write(text, 0)}
          onInput=${(/** @type {InputEvent} */ event) => write(/** @type {HTMLInputElement} */ (event.target).value, 250)} />
      </label>
      <kbd>/</kbd>
      ${position !== null && html`<p class="place" aria-hidden="true">${' '.repeat(Math.max(0, position - 1))}↑</p>`}
    </form>`;
}

/** @param {{filter: string, isCut: boolean, onMore: () => void}} props */
function Nothing({ filter, isCut, onMore }) {
  const { path } = useRoute();
  const states = useLoad(path === 'procedures' ? 'attention' : null);
  const counted = states.data?.states ?? {};
  const ended = (counted.Success ?? 0) + (counted.RolledBack ?? 0);
  if (isCut) return html`<${Empty}>None of the rows that were scanned matches. <button type="button" onClick=${onMore}>Scan on</button><//>`;
  if (/(^|\s)state:/.test(filter)) return html`<${Empty}>No procedure matches.<//>`;
  return html`
    <${Empty}>
      ${filter ? 'No running procedure matches.' : 'Nothing is unfinished.'} ${ended > 0 && html`
        <button type="button" onClick=${() => setQuery({ filter: `${filter} state:live,ended`.trim() }, false)}>Search the ${count(ended)} newest finished ones too</button>`}
    <//>`;
}
