/** A table of any length: only the rows in sight are there. Rows keep their focus by their key. */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './dom.js';
import { takeKeys } from './keys.js';
import { go, pageOf } from './router.js';

const BEYOND = 8;

/**
 * @template T
 * @typedef {object} Column
 * @property {string} name
 * @property {string} [width] A track of a CSS grid.
 * @property {string} [align]
 * @property {string} [help]
 * @property {(row: T) => import('./types.js').Node} show
 */

/**
 * Keeps the window of a scrolled list.
 * @param {number} count @param {number} height @param {() => void} [onEnd]
 */
export function useWindow(count, height, onEnd) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const [view, set] = useState({ top: 0, size: 900 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => set((old) => {
      const next = { top: element.scrollTop, size: element.clientHeight };
      return old.top === next.top && old.size === next.size ? old : next;
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
  return { box, from, to, reveal };
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
 *   height?: number, label: string, onEnd?: () => void, tone?: (row: T) => string, foot?: import('./types.js').Node}} props
 */
export function Table({ rows, columns, rowKey, rowId = () => null, height = 34, label, onEnd, tone, foot }) {
  const { box, from, to, reveal } = useWindow(rows.length, height, onEnd);
  const { marked, mark } = useRows(rows, rowKey, rowId, reveal);
  const tracks = columns.map((column) => column.width ?? 'minmax(0, 1fr)').join(' ');
  const shown = rows.slice(from, to).map((row, place) => {
    const key = rowKey(row);
    return html`<${Row} key=${key} row=${row} columns=${columns} tracks=${tracks} at=${from + place} height=${height} id=${rowId(row)}
      tone=${tone ? tone(row) : ''} isMarked=${key === marked} onMark=${() => mark(key)} />`;
  });
  return html`
    <div class="table" role="table" aria-label=${label} aria-rowcount=${rows.length + 1} ref=${box}>
      <div role="row" class="row titles" style=${{ gridTemplateColumns: tracks }} aria-rowindex="1">
        ${columns.map((column) => html`<div role="columnheader" class=${`cell ${column.align ?? ''}`} title=${column.help}>${column.name}</div>`)}
      </div>
      <div class="rows" role="rowgroup" style=${{ height: `${rows.length * height}px` }}>${shown}</div>
      ${foot}
    </div>`;
}

/**
 * One row. While nothing of it changes it is not made anew, however fast the list scrolls.
 * @param {{row: any, columns: Column<any>[], tracks: string, at: number, height: number, id: string|null, tone: string, isMarked: boolean, onMark: () => void}} props
 */
function Row({ row, columns, tracks, at, height, id, tone, isMarked, onMark }) {
  return useMemo(() => {
    const open = (/** @type {MouseEvent} */ event) => {
      onMark();
      if (id && event.target instanceof Element && !event.target.closest('a, button, input') && !getSelection()?.toString()) go(pageOf(id));
    };
    return html`
      <div role="row" class=${`row ${tone} ${id ? 'opens' : ''}`} tabindex=${isMarked ? 0 : -1} data-marked=${isMarked || undefined} aria-rowindex=${at + 2} onClick=${open}
        style=${{ gridTemplateColumns: tracks, height: `${height}px`, transform: `translateY(${at * height}px)` }}>
        ${columns.map((column) => html`<div role="cell" class=${`cell ${column.align ?? ''}`} key=${column.name}>${column.show(row)}</div>`)}
      </div>`;
  }, [row, columns, tracks, at, tone, isMarked]);
}
