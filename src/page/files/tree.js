/**
 * A family as rows: members in their tree, and many siblings of one kind as one row that opens.
 *
 * @typedef {import('./types.js').TreeRow} TreeRow
 *
 * @typedef {object} Branch
 * @property {string} key
 * @property {number} depth
 * @property {TreeRow|null} row None of a group.
 * @property {string} kind
 * @property {TreeRow[]} members Of a group, or the row alone.
 * @property {Branch[]} below
 */

/** Siblings of one kind, from so many on, are a group. */
const GROUP = 6;
/** A family of more than this opens folded. */
export const OPEN = 40;
/** The kind of a set's root: its members are a graph, even while it has none. */
const SET = 'procession.set';

/** The siblings before a row's gate. @param {import('./types.js').Row} row @returns {string[]} */
export const after = (row) => row.before ?? [];

/** Whether its members run after one another. @param {TreeRow[]} rows */
export const hasGraph = (rows) => rows.some((row) => after(row).length > 0) || rows[0]?.kind === SET;

/** @param {TreeRow[]} rows As the API has them: each behind its parent. @returns {Branch[]} */
export function grow(rows) {
  /** @type {Branch[]} */
  const top = [];
  /** @type {Branch[]} */
  const path = [];
  for (const row of rows) {
    const branch = { key: row.id, depth: row.depth, row, kind: row.kind, members: [row], below: [] };
    path.length = row.depth;
    const parent = path[row.depth - 1];
    (parent ? parent.below : top).push(branch);
    path[row.depth] = branch;
  }
  // By hand and not by recursion: a family may be deeper than the stack.
  const rest = [...top];
  for (let branch = rest.pop(); branch; branch = rest.pop()) {
    if (branch.row) branch.below = grouped(branch);
    for (const child of branch.below) {
      child.depth = branch.depth + 1;
      rest.push(child);
    }
  }
  return top;
}

/** Puts many children of one kind into a row of their own. @param {Branch} branch @returns {Branch[]} */
function grouped(branch) {
  /** @type {Map<string, Branch[]>} */
  const kinds = new Map();
  for (const child of branch.below) {
    const mine = kinds.get(child.kind);
    if (mine) mine.push(child);
    else kinds.set(child.kind, [child]);
  }
  return [...kinds].flatMap(([kind, children]) => (children.length < GROUP ? children
    : [{ key: `${branch.key} ${kind}`, depth: 0, row: null, kind, members: children.flatMap((child) => child.members), below: children }]));
}

/**
 * The rows that are seen.
 * @param {Branch[]} branches @param {(branch: Branch) => boolean} isOpen @returns {Branch[]}
 */
export function seen(branches, isOpen) {
  /** @type {Branch[]} */
  const found = [];
  const rest = [...branches].reverse();
  for (let branch = rest.pop(); branch; branch = rest.pop()) {
    found.push(branch);
    if (branch.below.length && isOpen(branch)) rest.push(...[...branch.below].reverse());
  }
  return found;
}
