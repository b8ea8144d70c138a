/** A family whose children have gates, drawn: who runs after whom, and how each stands. */
import { html, useMemo } from './dom.js';
import { arrange } from './layout.js';
import { Empty, Id, outline, Shown, State } from './parts.js';
import { pageOf } from './router.js';
import { standing } from './states.js';
import { Table } from './table.js';
import { count } from './words.js';

/** @typedef {import('./types.js').TreeRow} TreeRow */
/** @typedef {{name: string, text: string, width: number, height: number, members: TreeRow[]}} Node */

/** Nodes that are drawn at most; members of a larger graph are folded by layer and state. */
const DRAWN = 300;
/** Members that a table cell names at most. */
const NAMED = 6;
/** Characters of a node's text at most. */
const TEXT = 28;

/** The siblings before its gate. @param {TreeRow} row @returns {string[]} */
const after = (row) => row.before ?? [];

/** @param {TreeRow} row */
const called = (row) => row.name ?? row.id;

/** @param {TreeRow[]} rows */
export const hasGates = (rows) => rows.some((row) => after(row).length > 0);

/** Members that have a gate, and those that a gate names. @param {TreeRow[]} rows */
function membersOf(rows) {
  const named = new Set(rows.flatMap(after));
  return rows.filter((row) => after(row).length > 0 || named.has(row.id));
}

/** The layer of each member: one more than the highest of those that it runs after. @param {TreeRow[]} members */
function layersOf(members) {
  /** @type {Map<string, number>} */
  const layers = new Map();
  // A gate names earlier siblings alone, so one pass in the order of the rows will do.
  for (const row of members) layers.set(row.id, after(row).reduce((most, id) => Math.max(most, (layers.get(id) ?? 0) + 1), 0));
  return layers;
}

/** One node for each member, or for all of one layer that stand alike. @param {TreeRow[]} members @returns {Node[]} */
function nodesOf(members) {
  const layers = layersOf(members);
  const folds = members.length > DRAWN;
  /** @type {Map<string, TreeRow[]>} */
  const groups = new Map();
  for (const row of members) {
    const key = folds ? `${row.parent} ${layers.get(row.id)} ${standing(row).word}` : row.id;
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return [...groups].map(([name, group]) => {
    const [first] = /** @type {[TreeRow, ...TreeRow[]]} */ (group);
    const whole = group.length > 1 ? `${count(group.length)} members` : called(first);
    const text = whole.length > TEXT ? `${whole.slice(0, TEXT - 1)}…` : whole;
    return { name, text, members: group, width: Math.max(text.length, standing(first).word.length + 2) * 7.4 + 22, height: 42 };
  });
}

/** @param {Node[]} nodes @returns {import('./layout.js').Arrow[]} */
function arrowsOf(nodes) {
  const nodeOf = new Map(nodes.flatMap(({ name, members }) => members.map(({ id }) => [id, name])));
  /** @type {Map<string, import('./layout.js').Arrow>} */
  const arrows = new Map();
  for (const { name: to, members } of nodes) {
    for (const id of members.flatMap(after)) {
      const from = nodeOf.get(id);
      if (from !== undefined) arrows.set(`${from}>${to}`, { from, to });
    }
  }
  return [...arrows.values()];
}

/** @param {{id: string, tree: import('./load.js').Loaded}} props */
export function FamilyGraph({ id, tree }) {
  const rows = /** @type {TreeRow[]} */ (tree.data?.items ?? []);
  const members = membersOf(rows);
  const nodes = nodesOf(members).slice(0, DRAWN);
  const arrows = arrowsOf(nodes);
  const shape = [...nodes.map(({ name, text, width }) => `${name} ${text} ${width}`), ...arrows.map(({ from, to }) => `${from}>${to}`)].join();
  const layout = useMemo(() => arrange(nodes, arrows), [shape]);
  const current = new Map(nodes.map((node) => [node.name, node]));
  const names = new Map(rows.map((row) => [row.id, called(row)]));
  return html`
    <${Shown} loaded=${tree} what="its family">
      ${members.length === 0 ? html`<${Empty}>No member of this family runs after another.<//>` : html`
        <div class="gates">
          <section class="graph" aria-label="Who runs after whom">
            <header><p class="dim">An arrow leads to what runs after it.${members.length > DRAWN && ` ${count(members.length)} members, folded by layer and state.`}</p></header>
            <div class="sheet-of-graph">
              <svg width=${layout.width} height=${layout.height} viewBox=${`0 0 ${layout.width} ${layout.height}`} role="img" aria-label=${`${count(nodes.length)} nodes; the table beside says the same`}>
                <defs><marker id="gate-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="tip-of" /></marker></defs>
                ${layout.lines.map((line) => html`<path key=${line.key} class="edge" d=${line.d} marker-end="url(#gate-arrow)" />`)}
                ${layout.spots.map((spot) => html`<${Spot} key=${spot.name} spot=${spot} members=${current.get(spot.name)?.members ?? spot.members} self=${id} />`)}
              </svg>
            </div>
          </section>
          <${Table} label="Graph" rows=${members} columns=${columns(names)} rowKey=${(/** @type {TreeRow} */ row) => row.id} rowId=${(/** @type {TreeRow} */ row) => row.id} height=${30} />
        </div>`}
    <//>`;
}

/** @param {{spot: Node & {x: number, y: number}, members: TreeRow[], self: string}} props */
function Spot({ spot, members, self }) {
  const [first] = /** @type {[TreeRow, ...TreeRow[]]} */ (members);
  const { word, tone, shape, help } = standing(first);
  const inner = html`
    <g class=${`node state ${tone} ${members.some(({ id }) => id === self) ? 'chosen' : ''}`} transform=${`translate(${spot.x - spot.width / 2} ${spot.y - spot.height / 2})`}>
      <title>${members.length === 1 ? `${called(first)}, ${first.id} of ${first.kind}` : `${count(members.length)} members`}: ${help}</title>
      <rect width=${spot.width} height=${spot.height} rx="6" />
      <text x="10" y="17">${spot.text}</text>
      <g class="stands" transform="translate(10 23)"><path d=${outline(shape)} fill-rule="evenodd" transform="scale(.8)" /><text x="18" y="11">${word}</text></g>
    </g>`;
  return members.length === 1 ? html`<a href=${pageOf(first.id, 'graph')}>${inner}</a>` : inner;
}

/** @param {Map<string, string>} names @returns {import('./table.js').Column<TreeRow>[]} */
const columns = (names) => [
  { name: 'Name', width: 'minmax(90px, 1fr)', show: (row) => row.name ?? html`<span class="none">–</span>` },
  { name: 'Procedure', width: '90px', show: (row) => html`<${Id} id=${row.id} tab="graph" />` },
  { name: 'Kind', width: 'minmax(80px, 1fr)', show: (row) => row.kind },
  { name: 'State', width: '150px', show: (row) => html`<${State} row=${row} />` },
  { name: 'Runs after', width: 'minmax(140px, 2fr)', show: (row) => html`<${RunsAfter} row=${row} names=${names} />` },
];

/** @param {{row: TreeRow, names: Map<string, string>}} props */
function RunsAfter({ row, names }) {
  const before = after(row);
  if (before.length === 0) return html`<span class="none">nothing</span>`;
  const some = before.slice(0, NAMED).map((id) => names.get(id) ?? id).join(', ');
  const more = before.length > NAMED ? ` and ${count(before.length - NAMED)} more` : '';
  return html`<span title=${before.map((id) => names.get(id) ?? id).slice(0, 100).join(', ')}>${some}${more}</span>`;
}
