/** Rows of a list that is read page by page, and changes meanwhile. */

/** @typedef {import('./types.js').Row} Row */

/** Pages that are read anew at once, at most. */
const PAGES = 40;

/**
 * The rows behind the first page.
 * @typedef {{asked: string, from: string|null, rows: Row[], cursor: string|null, scanned: number, truncated: boolean}} More
 *   `from`: the cursor of the first page, where these begin.
 */

/**
 * Appends a page that was read at `cursor`. A page that does not continue what is there now is left out, because rows
 * would be missing between them, or would be there twice.
 * @param {More|null} old @param {{items: Row[], cursor: string|null, scanned: number, truncated: boolean}} page
 * @param {{asked: string, from: string|null, cursor: string|null}} where
 * @returns {More|null}
 */
export function append(old, page, { asked, from, cursor }) {
  const mine = old && old.asked === asked && old.from === from ? old : null;
  if (cursor !== (mine ? mine.cursor : from)) return old;
  return { asked, from, rows: [...(mine?.rows ?? []), ...page.items], cursor: page.cursor, scanned: (mine?.scanned ?? 0) + page.scanned, truncated: page.truncated };
}

/**
 * Reads the rows behind the first page anew, as many as there were: what changed while nothing was heard may be any of them.
 * @param {More} old @param {string|null} from Where the first page ends by now.
 * @param {(cursor: string) => Promise<{items: Row[], cursor: string|null, scanned: number, truncated: boolean}>} read
 * @returns {Promise<More>}
 */
export async function reread(old, from, read) {
  /** @type {More} */
  let made = { asked: old.asked, from, rows: [], cursor: from, scanned: 0, truncated: false };
  // A page may be empty because its time was up, so pages are counted as well.
  for (let pages = 0; made.cursor !== null && made.rows.length < old.rows.length && pages < PAGES; pages += 1) {
    const { cursor } = made;
    made = append(made, await read(cursor), { asked: old.asked, from, cursor }) ?? made;
  }
  return made;
}

/**
 * Lays what has changed over rows that are shown, which stay in their order.
 * @param {Row[]} rows @param {any} change @param {boolean} namesStates @param {(one: string, other: string) => number} compare
 * @param {string|null} cursor @param {string} [from]
 */
export function fold(rows, change, namesStates, compare, cursor, from) {
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
  const born = [...news.values()].filter((row) => row !== null && (!cursor || compare(row.id, cursor) < 0) && (!from || compare(row.id, from) > 0));
  if (born.length === 0) return kept;
  return [...kept, .../** @type {Row[]} */ (born)].sort((one, other) => compare(one.id, other.id));
}
