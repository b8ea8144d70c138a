/** Procedures that a filter admits; those that have not ended, unless it speaks of states. */
import { html, useCallback, useEffect, useMemo, useRef, useState } from '../dom.js';
import { Bulk } from '../actions.js';
import { get, Problem } from '../api.js';
import { late } from '../late.js';
import { labelsOf, namesStates as doesNameStates } from '../labels.js';
import { useLoad } from '../load.js';
import { append, fold, reread } from '../pages.js';
import { Ago, At, Empty, Head, Id, Shown, State } from '../parts.js';
import { go, pageOf, setQuery, useRoute } from '../router.js';
import { standing, why } from '../states.js';
import { TILES } from './attention.js';
import { useSort } from '../sort.js';
import { Table } from '../table.js';
import { byId, count, local, newestFirst, several } from '../words.js';
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
  { name: 'State', width: '138px', bare: true, sort: (row) => standing(row).word, show: (row) => html`<${State} row=${row} />` },
  { name: 'Id', width: '58px', bare: true, sort: (row) => Number(row.id.split('.')[0]), show: (row) => html`<${Id} id=${row.id} />` },
  { name: 'Kind', width: 'minmax(104px, 0.3fr)', sort: (row) => row.kind, show: (row) => html`<span title=${`${row.kind}, version ${row.version}`}><bdi>${row.kind}</bdi> <span class="dim">v${row.version}</span></span>` },
  { name: 'Key', width: 'minmax(96px, 0.35fr)', two: true, sort: (row) => row.key ?? row.name ?? null, help: 'Its idempotency key or its name, and its labels', show: (row) => html`<${Names} row=${row} />` },
  {
    name: 'Why, and what comes next', width: 'minmax(220px, 1fr)', two: true, bare: true, show: (row) => html`
      <span class="two" title=${`${why(row)}. Next: ${row.next}.`}><bdi>${local(why(row), now())}</bdi><bdi class="next">${local(row.next, now())}</bdi></span>`,
  },
  { name: 'Since', width: '78px', align: 'right', sort: (row) => Date.parse(row.since), show: (row) => html`<${Ago} time=${row.since} label="as it is since" />` },
  { name: 'Attempt', width: '56px', align: 'right', sort: (row) => row.attempt, help: 'Failed attempts of the stage that is next', show: (row) => html`<span class=${row.attempt ? 'warm' : 'none'}>${row.attempt || '–'}</span>` },
  { name: 'Prio', width: '38px', align: 'right', spare: true, sort: (row) => row.priority, help: 'Higher goes first where it waits', show: (row) => html`<span class=${row.priority ? '' : 'none'}>${row.priority || '–'}</span>` },
  { name: 'Root', width: '44px', spare: true, show: (row) => (row.root === row.id ? html`<span class="none">–</span>` : html`<${Id} id=${row.root} />`) },
  { name: 'Stage', width: 'minmax(80px, 0.25fr)', sort: (row) => row.stage, show: (row) => html`<bdi title=${row.stage}>${row.stage}</bdi>` },
  { name: 'Next try', width: '130px', sort: (row) => (row.until ? Date.parse(row.until) : null), show: (row) => (row.until ? html`<${At} time=${row.until} />` : html`<span class="none">–</span>`) },
  { name: 'Submitted', width: '78px', align: 'right', sort: (row) => Date.parse(row.submitted), show: (row) => html`<${Ago} time=${row.submitted} label="submitted" />` },
];

/** Those that are shown unless others were chosen. */
const USUAL = COLUMNS.slice(0, -3).map(({ name }) => name);
const CHOSEN = 'procession.columns';

/** The columns that this browser was told to show. @returns {string[]} */
function kept() {
  try {
    const names = JSON.parse(localStorage.getItem(CHOSEN) ?? 'null');
    const known = COLUMNS.map(({ name }) => name).filter((name) => names?.includes?.(name));
    return known.length > 0 ? known : USUAL;
  } catch {
    return USUAL; // there is no store, or something else wrote there
  }
}

/** @param {string[]} names */
function keep(names) {
  try {
    if (names.join() === USUAL.join()) localStorage.removeItem(CHOSEN);
    else localStorage.setItem(CHOSEN, JSON.stringify(names));
  } catch {
    // It holds for this page, then.
  }
}

const Columns = late(() => import('../columns.js').then((script) => script.Columns));

/** @param {{chosen: string[], sorted: import('../sort.js').Sorted, onChoose: (names: string[]) => void}} props */
function Choose({ chosen, sorted, onChoose }) {
  const [isOpen, open] = useState(false);
  return html`
    <span class="menu">
      <button type="button" aria-expanded=${isOpen} title="Which columns are shown, and by which rows are sorted" onClick=${() => open(!isOpen)}>Columns</button>
      ${isOpen && html`<${Columns} all=${COLUMNS} chosen=${chosen} usual=${USUAL} sorted=${sorted} onChoose=${onChoose} onClose=${() => open(false)} />`}
    </span>`;
}

/** The key or the name, and below it the labels. @param {{row: Row}} props */
function Names({ row }) {
  const labels = labelsOf(row).map(({ text }) => text).join(' ');
  const called = row.key ?? row.name;
  const key = html`<bdi class="mono">${called ?? html`<span class="none">–</span>`}</bdi>`;
  if (!labels) return html`<span title=${[row.key, row.name].filter(Boolean).join(' · ')}>${key}</span>`;
  return html`<span class="two" title=${[row.key, row.name, labels].filter(Boolean).join(' · ')}>${key}<bdi class="next mono">${labels}</bdi></span>`;
}

/** @param {{query: URLSearchParams}} props */
export function List({ query }) {
  const filter = query.get('filter') ?? '';
  const isOldestFirst = query.get('sort') === 'Id';
  const order = isOldestFirst ? null : 'newest';
  const asked = `${order} ${filter}`;
  const [more, setMore] = useState(/** @type {import('../pages.js').More|null} */ (null));
  const isReading = useRef(false);
  const namesStates = doesNameStates(filter);
  /** Something was missed: the rows behind the first page are to be read anew with it. */
  const isStale = useRef(false);
  /** What is heard while they are. */
  const meanwhile = useRef(/** @type {any[]|null} */ (null));

  const compare = isOldestFirst ? byId : newestFirst;
  const heard = (/** @type {string} */ event, /** @type {any} */ body) => {
    if (event === 'again') isStale.current = true;
    if (event !== 'change') return false;
    meanwhile.current?.push(body);
    loaded.patch((data) => ({ ...data, items: fold(data.items, body, namesStates, compare, data.cursor) }));
    // A cut event does not name all rows that left the filter: only reading anew tells which are still there.
    setMore((old) => old && !body.cut ? changed(old, body) : null);
    return body.cut;
  };
  const changed = (/** @type {import('../pages.js').More} */ old, /** @type {any} */ body) => ({ ...old, rows: fold(old.rows, body, namesStates, compare, old.cursor, old.rows[0]?.id) });
  const loaded = useLoad('procedures', { filter, limit: FIRST, order }, { filter, pause: 2_000, heard });
  const body = loaded.data;
  const from = body?.cursor ?? null;
  const behind = more && more.asked === asked && more.from === from ? more : null;
  useEffect(() => setMore(null), [asked]);

  const read = useMemo(() => (body ? [...body.items, ...(behind?.rows ?? [])] : []), [body, behind]);
  const cursor = behind ? behind.cursor : from;
  const scanned = (body?.scanned ?? 0) + (behind?.scanned ?? 0);
  const isCut = behind ? behind.truncated : body?.truncated;

  const next = useCallback(async () => {
    if (isReading.current || !cursor || read.length >= KEPT) return;
    isReading.current = true;
    try {
      const page = await get('procedures', { filter, limit: PAGE, cursor, order });
      setMore((old) => append(old, page, { asked, from, cursor }));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    } finally {
      isReading.current = false;
    }
  }, [asked, from, cursor, read.length]);
  useEffect(() => {
    if (!isStale.current || isReading.current) return;
    isStale.current = false;
    if (!behind) return;
    isReading.current = true;
    /** @type {any[]} */
    const changes = [];
    meanwhile.current = changes;
    reread(behind, from, (at) => get('procedures', { filter, limit: PAGE, cursor: at, order })).then(
      (anew) => setMore((old) => {
        if (old?.asked !== asked || old.from !== from) return old;
        return changes.some((body) => body.cut) ? null : changes.reduce(changed, anew);
      }),
      (error) => {
        if (!(error instanceof Problem)) throw error;
        // The next reading of the first page tries it again.
        isStale.current = true;
      },
    ).finally(() => {
      isReading.current = false;
      meanwhile.current = null;
    });
  }, [body, behind]);
  const counted = cursor ? TILES.find((tile) => tile.filter === (filter || 'state:live')) : undefined;
  const attention = useLoad(counted ? 'attention' : null, {}, { on: ['gauges'], pause: 5_000 });
  const total = cursor ? (attention.data && counted?.of(attention.data)) ?? null : read.length;
  const [chosen, choose] = useState(kept);
  const columns = useMemo(() => COLUMNS.filter(({ name }) => chosen.includes(name)), [chosen]);
  const { rows, ...sorted } = useSort(read, columns);

  const words = [
    body && (total === null ? `more than ${several(read.length, 'row')}` : several(Math.max(total, read.length), 'row')),
    cursor && `the ${isOldestFirst ? 'oldest' : 'newest'} ${count(read.length)} are here${sorted.by && sorted.by !== 'Id' ? ', sorted' : ''}`,
    // One that came since was looked at, too.
    body && `${count(Math.max(scanned, read.length))} scanned`,
    isCut && 'it stopped early: narrow the filter, or scroll to go on',
  ].filter(Boolean).join(' · ');
  return html`
    <div class="screen list">
      <${Head} title="Procedures" note=${words}><${Bulk} filter=${filter} /><${Quick} filter=${filter} /><${Choose} chosen=${chosen} sorted=${sorted} onChoose=${(/** @type {string[]} */ names) => { keep(names); choose(names); }} /><//>
      <${FilterBox} filter=${filter} error=${loaded.error} rows=${read} />
      <${Shown} loaded=${loaded}>
        ${body && (rows.length === 0
          ? html`<${Nothing} filter=${filter} isCut=${isCut} onMore=${next} />`
          : html`<${Table} label="Procedures" rows=${rows} columns=${columns} sorted=${sorted} rowKey=${key} rowId=${key} height=${44} onEnd=${next} tone=${tone}
              foot=${rows.length >= KEPT && html`<${Empty}>${count(KEPT)} rows are shown at most. Narrow the filter.<//>`} />`)}
      <//>
    </div>`;
}

/** @param {Row} row */
const key = (row) => row.id;
/** @param {Row} row */
const tone = (row) => (standing(row).tone === 'bad' ? 'bad' : '');

/** @param {{filter: string}} props */
const Quick = ({ filter }) => html`
  <div class="quick" role="group" aria-label="Filters in common use">
    ${QUICK.map((quick) => html`<button type="button" key=${quick.name} aria-pressed=${quick.filter === filter} onClick=${() => setQuery({ filter: quick.filter }, false)}>${quick.name}</button>`)}
  </div>`;

const Completions = late(() => import('../complete.js').then((script) => script.Completions));

/** @param {{filter: string, error: Problem|null, rows: any[]}} props `rows`: whose keys and labels are offered. */
export function FilterBox({ filter, error, rows }) {
  const [text, set] = useState(filter);
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  const [isHelped, help] = useState(false);
  const [choice, setChoice] = useState({ isOpen: false, active: '' });
  const timer = useRef(0);
  // A blank at the end stays while somebody writes on.
  useEffect(() => set((old) => (old.trim() === filter ? old : filter)), [filter]);
  const write = (/** @type {string} */ value, /** @type {number} */ wait) => {
    set(value);
    window.clearTimeout(timer.current);
    // A field without its value is no filter yet.
    if (wait > 0 && /:\s*$/.test(value)) return;
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
        <input data-filter type="search" role="combobox" ref=${field} value=${text} spellcheck="false" autocomplete="off" autocapitalize="off" aria-invalid=${position !== null}
          aria-autocomplete="list" aria-controls="choices" aria-expanded=${isHelped && choice.isOpen} aria-activedescendant=${(isHelped && choice.active) || undefined}
          placeholder="A key, an id, or terms as state: kind: label: age:" onFocus=${() => help(true)}
          onBlur=${() => { help(false); if (text.trim() !== filter) write(text, 0); }}
          onInput=${(/** @type {InputEvent} */ event) => write(/** @type {HTMLInputElement} */ (event.target).value, 250)} />
      </label>
      <kbd>/</kbd>
      ${isHelped && field.current && html`<${Completions} field=${field.current} rows=${rows} onTake=${(/** @type {string} */ made) => write(made, 250)} onState=${setChoice} />`}
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
