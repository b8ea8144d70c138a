/** A table of any length: only the rows in sight are there. Rows keep their focus by their key. */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './dom.js';
import { takeKeys } from './keys.js';
import { go, pageOf } from './router.js';

const BEYOND = 8;

/** Gaps between columns, and the room at both ends of a row, in pixels, as the style has them. */
const GAP = 14;
const ENDS = 28;
/** Where a table is narrower than this, and than its columns, its rows are cards. */
const CARDS = 700;
/** Height of a line of a card, in pixels (some first columns have two lines), and the padding above and below. */
const LINE = 20;
const TWO = 37;
const AROUND = 18;

/**
 * @template T
 * @typedef {object} Column
 * @property {string} name
 * @property {string} [width] A track of a CSS grid.
 * @property {string} [align]
 * @property {string} [help]
 * @property {boolean} [pin] It has buttons, and stays in sight where the table scrolls sideways.
 * @property {boolean} [two] It has two lines.
 * @property {boolean} [bare] A card shows it without its name.
 * @property {boolean} [spare] A card leaves it out.
 * @property {(row: T) => string|number|null} [sort] What its rows are sorted by, if they can be.
 * @property {(row: T) => import('./types.js').Node} show
 */

/** @param {Column<any>} column */
const least = ({ width = '60px' }) => Number(/(\d+)px/.exec(width)?.[1] ?? 60);

/** Whether a column has a line of its own in a card. @param {Column<any>} column */
const isLong = ({ width = 'fr', pin }) => pin || width.includes('fr');

/**
 * How rows are laid out in a table of this width: as they are, as rows that scroll sideways, or as cards.
 * @param {Column<any>[]} columns @param {number} width @param {number} height Of a row that is no card.
 */
function layoutOf(columns, width, height) {
  const tracks = columns.map((column) => column.width ?? 'minmax(0, 1fr)').join(' ');
  const minWidth = columns.reduce((sum, column) => sum + least(column), GAP * (columns.length - 1) + ENDS);
  if (width === 0 || width >= minWidth) return { isCard: false, height, style: { gridTemplateColumns: tracks } };
  if (width >= CARDS) return { isCard: false, height, style: { gridTemplateColumns: tracks, minWidth: `${minWidth}px` } };
  /** @type {number[]} */
  const lines = [];
  let isHalf = false;
  for (const column of columns) {
    if (column.spare) continue;
    const line = column.pin ? TWO : column.two ? TWO : LINE;
    if (isHalf && !isLong(column)) lines.push(Math.max(lines.pop() ?? 0, line));
    else lines.push(line);
    isHalf = !isHalf && !isLong(column);
  }
  return { isCard: true, height: lines.reduce((sum, line) => sum + line, AROUND), style: { gridTemplateRows: lines.map((line) => `${line}px`).join(' ') } };
}

/**
 * Keeps the window of a scrolled list.
 * @param {number} count @param {number|((width: number) => number)} of The height of a row, by the width of all. @param {() => void} [onEnd]
 */
export function useWindow(count, of, onEnd) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const [view, set] = useState({ top: 0, size: 900, width: 0 });
  const height = typeof of === 'number' ? of : of(view.width);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => set((old) => {
      const next = { top: element.scrollTop, size: element.clientHeight, width: element.clientWidth };
      return old.top === next.top && old.size === next.size && old.width === next.width ? old : next;
    });
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    measure();
    return () => {
      watch.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, []);
  const from = Math.max(0, Math.floor(view.top / height) - BEYOND);
  const to = Math.min(count, Math.ceil((view.top + view.size) / height) + BEYOND);
  useEffect(() => {
    if (onEnd && to >= count && count > 0) onEnd();
  }, [to, count]);
  /** @param {number} at */
  const reveal = (at) => {
    const element = box.current;
    if (!element) return;
    const top = at * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + element.clientHeight - height) element.scrollTop = top + 2 * height - element.clientHeight;
  };
  return { box, from, to, reveal, width: view.width };
}

/**
 * Moves a mark over rows with `j` and `k`.
 * @template T
 * @param {T[]} rows @param {(row: T) => string} key @param {(row: T) => string|null} id
 * @param {(at: number) => void} reveal @param {(row: T) => void} [open]
 */
export function useRows(rows, key, id, reveal, open) {
  const [marked, mark] = useState(/** @type {string|null} */ (null));
  const latest = useRef({ rows, marked });
  latest.current = { rows, marked };
  useEffect(() => {
    const place = () => latest.current.rows.findIndex((row) => key(row) === latest.current.marked);
    return takeKeys({
      move: (steps) => {
        const all = latest.current.rows;
        if (all.length === 0) return;
        const at = Math.max(0, Math.min(all.length - 1, place() < 0 ? 0 : place() + steps));
        const row = /** @type {T} */ (all[at]);
        mark(key(row));
        reveal(at);
        requestAnimationFrame(() => /** @type {HTMLElement|null} */ (document.querySelector('[data-marked]'))?.focus({ preventScroll: true }));
      },
      open: () => {
        const row = latest.current.rows[place()];
        const target = row && id(row);
        if (row && open) open(row);
        else if (target) go(pageOf(target));
      },
      id: () => {
        const row = latest.current.rows[place()];
        return row ? id(row) : null;
      },
    });
  }, []);
  return { marked, mark };
}

/**
 * @template T
 * @param {{rows: T[], columns: Column<T>[], rowKey: (row: T) => string, rowId?: (row: T) => string|null,
 *   height?: number, label: string, onEnd?: () => void, tone?: (row: T) => string, foot?: import('./types.js').Node,
 *   sorted?: import('./sort.js').Sorted}} props
 */
export function Table({ rows, columns, rowKey, rowId = () => null, height: usual = 34, label, onEnd, tone, foot, sorted }) {
  const { box, from, to, reveal, width } = useWindow(rows.length, (/** @type {number} */ wide) => layoutOf(columns, wide, usual).height, onEnd);
  const { isCard, height, style } = layoutOf(columns, width, usual);
  const pins = columns.some(({ pin }) => pin) ? 'pins' : '';
  const { marked, mark } = useRows(rows, rowKey, rowId, reveal);
  const shown = rows.slice(from, to).map((row, place) => {
    const key = rowKey(row);
    return html`<${Row} key=${key} row=${row} columns=${columns} look=${isCard ? `card ${pins}` : pins} style=${style} at=${from + place} height=${height} id=${rowId(row)}
      tone=${tone ? tone(row) : ''} isMarked=${key === marked} onMark=${() => mark(key)} />`;
  });
  return html`
    <div class="table" role="table" aria-label=${label} aria-rowcount=${rows.length + 1} ref=${box}>
      <div role="row" class=${isCard ? 'hidden' : `row titles ${pins}`} style=${isCard ? {} : style} aria-rowindex="1">
        ${columns.filter(({ spare }) => !isCard || !spare).map((column) => html`<${Title} key=${column.name} column=${column} sorted=${isCard ? undefined : sorted} />`)}
      </div>
      <div class="rows" role="rowgroup" style=${{ height: `${rows.length * height}px` }}>${shown}</div>
      ${foot}
    </div>`;
}

/** The title of a column, which sorts by it. @param {{column: Column<any>, sorted?: import('./sort.js').Sorted}} props */
function Title({ column: { name, align = '', help, pin, sort }, sorted }) {
  const isBy = sorted?.by === name;
  const order = sorted && sort ? (isBy ? (sorted.isDown ? 'descending' : 'ascending') : 'none') : undefined;
  return html`
    <div role="columnheader" class=${`cell ${align} ${pin ? 'pin' : ''}`} title=${help} aria-sort=${order}>
      ${order ? html`<button type="button" class="plain" onClick=${() => sorted?.toggle(name)}>${name}</button>` : name}
    </div>`;
}

/**
 * One row. While nothing of it changes it is not made anew, however fast the list scrolls.
 * @param {{row: any, columns: Column<any>[], look: string, style: object, at: number, height: number, id: string|null, tone: string, isMarked: boolean, onMark: () => void}} props
 */
function Row({ row, columns, look, style, at, height, id, tone, isMarked, onMark }) {
  const isCard = look.startsWith('card');
  return useMemo(() => {
    const open = (/** @type {MouseEvent} */ event) => {
      onMark();
      if (id && event.target instanceof Element && !event.target.closest('a, button, input, dialog') && !getSelection()?.toString()) go(pageOf(id));
    };
    return html`
      <div role="row" class=${`row ${look} ${tone} ${id ? 'opens' : ''}`} tabindex=${isMarked ? 0 : -1} data-marked=${isMarked || undefined} aria-rowindex=${at + 2} onClick=${open}
        style=${{ ...style, height: `${height}px`, transform: `translateY(${at * height}px)` }}>
        ${columns.filter(({ spare }) => !isCard || !spare).map((column) => html`<div role="cell" class=${`cell ${column.align ?? ''} ${column.pin ? 'pin' : ''} ${isLong(column) ? 'full' : ''}`} data-name=${isCard && !column.bare && !column.pin ? column.name : undefined} key=${column.name}>${column.show(row)}</div>`)}
      </div>`;
  }, [row, columns, look, height, JSON.stringify(style), at, tone, isMarked]);
}
