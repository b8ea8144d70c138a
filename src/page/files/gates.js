/** A family whose members run after one another, drawn: who runs after whom, and how each stands. */
import { html, useMemo } from './dom.js';
import { Verbs } from './actions.js';
import { arrange } from './layout.js';
import { useLoad } from './load.js';
import { Empty, Id, outline, Shown, State } from './parts.js';
import { pageOf } from './router.js';
import { shown, standing, why, worded } from './states.js';
import { Table } from './table.js';
import { after } from './tree.js';
import { count } from './words.js';

/** @typedef {import('./types.js').GraphRow} GraphRow @typedef {import('./types.js').FamilyGraph} Family */
/** @typedef {{name: string, text: string, width: number, height: number, rows: number, first: string, kind: string, stands: import('./states.js').Standing, isHere: boolean}} Node */

/** Nodes that are drawn at most: more of them are folded by layer and state. */
const DRAWN = 300;
/** Members that a table cell names at most. */
const NAMED = 6;
/** Characters of a node's text at most. */
const TEXT = 28;
/** @param {import('./types.js').Row} row */
const called = (row) => row.name ?? row.id;

/** @param {Family} graph @param {string} self @returns {Node[]} */
function nodesOf({ items, groups }, self) {
  const node = (/** @type {string} */ name, /** @type {string} */ whole, /** @type {import('./states.js').Standing} */ stands, /** @type {object} */ rest) => {
    const text = whole.length > TEXT ? `${whole.slice(0, TEXT - 1)}…` : whole;
    return /** @type {Node} */ ({ name, text, stands, width: Math.max(text.length, stands.word.length + 2) * 7.4 + 22, height: 42, ...rest });
  };
  if (!groups) return items.map((row) => node(row.id, called(row), standing(row), { rows: 1, first: row.id, kind: row.kind, isHere: row.id === self }));
  const names = new Map(items.map((row) => [row.id, called(row)]));
  return groups.slice(0, DRAWN).map((group, at) => {
    const isOne = group.count === 1;
    return node(String(at), isOne ? names.get(group.first) ?? group.first : `${count(group.count)} nodes`, worded(group.standing), { rows: group.count, first: group.first, kind: '', isHere: isOne && group.first === self });
  });
}

/** @param {Family} graph @returns {import('./layout.js').Arrow[]} */
function arrowsOf({ items, groups }) {
  if (groups) return groups.slice(0, DRAWN).flatMap((group, to) => group.after.filter((from) => from < DRAWN).map((from) => ({ from: String(from), to: String(to) })));
  const drawn = new Set(items.map(({ id }) => id));
  return items.flatMap((row) => after(row).filter((id) => drawn.has(id)).map((from) => ({ from, to: row.id })));
}

/** @param {{id: string}} props */
export function FamilyGraph({ id }) {
  const loaded = useLoad(`procedures/${id}/graph`, { max: DRAWN }, { on: ['change'], pause: 2_000 });
  const graph = /** @type {Family} */ (loaded.data ?? { items: [], total: 0, counts: {}, truncated: false });
  const nodes = nodesOf(graph, id);
  const arrows = arrowsOf(graph);
  const shape = [...nodes.map(({ name, text, width }) => `${name} ${text} ${width}`), ...arrows.map(({ from, to }) => `${from}>${to}`)].join();
  const layout = useMemo(() => arrange(nodes, arrows), [shape]);
  const current = new Map(nodes.map((node) => [node.name, node]));
  const notes = [
    'An arrow leads to what runs after it.',
    Object.entries(graph.counts).map(([word, number]) => `${count(number)} ${word}`).join(', '),
    graph.groups && `${count(graph.total)} nodes, folded by layer and state`,
    graph.groups && graph.groups.length > DRAWN && `the first ${DRAWN} groups are drawn`,
    graph.of_first && `of its first ${count(graph.of_first)} members alone`,
    graph.truncated && `only the first ${count(graph.items.length)} are listed`,
  ];
  return html`
    <${Shown} loaded=${loaded} what="its graph">
      ${nodes.length === 0 ? html`<${Empty}>No member of this family runs after another.<//>` : html`
        <div class="gates">
          <section class="graph" aria-label="Who runs after whom">
            <header><p class="dim">${notes.filter(Boolean).join(' · ')}</p></header>
            <div class="sheet-of-graph">
              <svg width=${layout.width} height=${layout.height} viewBox=${`0 0 ${layout.width} ${layout.height}`} role="img" aria-label=${`${count(nodes.length)} nodes; the table beside says the same`}>
                <defs><marker id="gate-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="tip-of" /></marker></defs>
                ${layout.lines.map((line) => html`<path key=${line.key} class="edge" d=${line.d} marker-end="url(#gate-arrow)" />`)}
                ${layout.spots.map((spot) => html`<${Spot} key=${spot.name} spot=${spot} node=${current.get(spot.name) ?? spot} />`)}
              </svg>
            </div>
          </section>
          <${Table} label="Graph" rows=${graph.items} columns=${columns(graph.items)} rowKey=${(/** @type {GraphRow} */ row) => row.id} rowId=${(/** @type {GraphRow} */ row) => row.id} height=${30} />
        </div>`}
    <//>`;
}

/** @param {{spot: Node & {x: number, y: number}, node: Node}} props */
function Spot({ spot, node }) {
  const { word, tone, shape, help } = node.stands;
  const inner = html`
    <g class=${`node state ${tone} ${node.isHere ? 'chosen' : ''}`} transform=${`translate(${spot.x - spot.width / 2} ${spot.y - spot.height / 2})`}>
      <title>${node.rows === 1 ? `${node.text}, ${node.first}${node.kind && ` of ${node.kind}`}` : `${count(node.rows)} nodes`}: ${help}</title>
      <rect width=${spot.width} height=${spot.height} rx="6" />
      <text x="10" y="17">${spot.text}</text>
      <g class="stands" transform="translate(10 23)"><path d=${outline(shape)} fill-rule="evenodd" transform="scale(.8)" /><text x="18" y="11">${word}</text></g>
    </g>`;
  return node.rows === 1 ? html`<a href=${pageOf(node.first, 'graph')}>${inner}</a>` : inner;
}

/** @param {GraphRow[]} rows @returns {import('./table.js').Column<GraphRow>[]} */
function columns(rows) {
  const names = new Map(rows.map((row) => [row.id, called(row)]));
  /** @type {import('./table.js').Column<GraphRow>[]} */
  const found = [
    { name: 'Name', width: 'minmax(70px, 1fr)', show: (row) => html`<bdi title=${`${called(row)} of ${row.kind}`}>${row.name ?? html`<span class="none">–</span>`}</bdi>` },
    { name: 'Procedure', width: '66px', show: (row) => html`<${Id} id=${row.id} tab="graph" bare />` },
    { name: 'State', width: '126px', show: (row) => html`<${State} row=${row} />` },
    { name: 'Why', width: 'minmax(96px, 2fr)', show: (row) => html`<${Why} row=${row} />` },
    { name: 'Runs after', width: 'minmax(76px, 1fr)', show: (row) => html`<${RunsAfter} row=${row} names=${names} />` },
  ];
  if (rows.some((row) => row.node === 'PENDING')) found.push({ name: 'Actions', width: '96px', pin: true, show: (row) => row.node === 'PENDING' && html`<${Verbs} target=${{ id: row.id, row }} only=${[row.reason === 'repeat_limit' ? 'resume' : 'retry']} />` });
  return found;
}

/** What it asks, or what holds it up. @param {{row: GraphRow}} props */
function Why({ row }) {
  const asks = row.question === undefined ? '' : shown(row.question);
  const text = [row.node === null ? why(row) : asks || row.why, row.node !== null && row.cause && shown(row.cause.text)].filter(Boolean).join(': ');
  return text ? html`<bdi title=${text}>${text}</bdi>` : html`<span class="none">–</span>`;
}

/** @param {{row: GraphRow, names: Map<string, string>}} props */
function RunsAfter({ row, names }) {
  const before = after(row);
  if (before.length === 0) return html`<span class="none">nothing</span>`;
  const some = before.slice(0, NAMED).map((id) => names.get(id) ?? id).join(', ');
  const more = before.length > NAMED ? ` and ${count(before.length - NAMED)} more` : '';
  return html`<span title=${before.map((id) => names.get(id) ?? id).slice(0, 100).join(', ')}><bdi>${some}</bdi>${more}</span>`;
}
