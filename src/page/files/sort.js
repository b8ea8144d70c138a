/** Rows in the order of a column: which one is in the address. */
import { useMemo } from './dom.js';
import { setQuery, useRoute } from './router.js';

/** @typedef {{by: string|null, isDown: boolean, toggle: (name: string) => void, set: (name: string, isDown: boolean) => void}} Sorted */

/** @param {string|number|null} one @param {string|number|null} other What has none is last. */
function compare(one, other) {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  return typeof one === 'number' && typeof other === 'number' ? one - other : String(one).localeCompare(String(other), undefined, { numeric: true });
}

/**
 * Sorts by the column that the address names: a press on a title sorts up, a second one down, a third one not at all.
 * @template T
 * @param {T[]} rows @param {import('./table.js').Column<T>[]} columns
 * @returns {Sorted & {rows: T[]}}
 */
export function useSort(rows, columns) {
  const named = useRoute().query.get('sort') ?? '';
  const isDown = named.startsWith('-');
  const column = columns.find(({ name, sort }) => sort && name === named.replace(/^-/, ''));
  const by = column?.name ?? null;
  const set = (/** @type {string} */ name, /** @type {boolean} */ down) => setQuery({ sort: name && down ? `-${name}` : name });
  const toggle = (/** @type {string} */ name) => set(by === name && isDown ? '' : name, by === name);
  const sorted = useMemo(() => {
    const value = column?.sort;
    if (!value) return rows;
    const found = rows.map((row) => ({ row, of: value(row) }));
    const way = isDown ? -1 : 1;
    found.sort((one, other) => (one.of === null || other.of === null ? 1 : way) * compare(one.of, other.of));
    return found.map(({ row }) => row);
  }, [rows, by, isDown]);
  return { rows: sorted, by, isDown, toggle, set };
}
