/** The stages of a kind as they were observed since the engine started: drawn with counts on the edges, and as a table. */
import { html, useMemo } from './dom.js';
import { chart } from './chart.js';
import { styles } from './late.js';
import { useLoad } from './load.js';
import { Empty, Shown } from './parts.js';
import { Table } from './table.js';
import { useWidth } from './width.js';
import { count, duration, several } from './words.js';

await styles('machine.css');

/**
 * @typedef {{success: number, rolled_back: number, failed: number}} Ends
 * @typedef {{stage: string, begun: number, runs: number, mean_ms: number|null, longest_ms: number|null, retries: number, ended: Ends, undone: number, undo_failed: number}} Pass
 * @typedef {{from: string, to: string, count: number}} Edge
 * @typedef {{kind: string, submitted: number, items: Pass[], edges: Edge[]}} Stages
 * @typedef {{name: string, text: string, says: string, tone: string, type: string, region: number, width: number, height: number, place: null}} Node
 * @typedef {{from: string, to: string, label: string, isUndo: boolean}} Arrow
 */

/** Below this width the graph goes down instead of to the right. */
const NARROW = 800;
/** Characters of a name that are drawn. */
const NAME = 24;
/** Edges that are drawn at most: those that were taken most. */
const EDGES = 200;

/** Where a procedure comes from and goes to, beside stages. No stage has a name with a blank in front. @type {Record<string, {text: string, tone: string}>} */
const ENDS = {
  ' begin': { text: 'Start', tone: '' },
  ' success': { text: 'Success', tone: 'good' },
  ' rolled_back': { text: 'Rolled back', tone: 'undo' },
  ' failed': { text: 'Failed', tone: 'bad' },
  ' undone': { text: 'Undone', tone: 'undo' },
};

/** @param {string} text */
const cut = (text) => (text.length > NAME ? `${text.slice(0, NAME - 1)}…` : text);

/** @param {{kind: string}} props */
export function Passes({ kind }) {
  const loaded = useLoad(`kinds/${encodeURIComponent(kind)}/stages`, {}, { on: ['gauges', 'change'], pause: 5_000 });
  const found = /** @type {Stages|null} */ (loaded.data);
  return html`
    <section class="machine" aria-label=${`Stages of ${kind}`}>
      <header class="graph-of"><h2>Stages of <bdi class="mono">${kind}</bdi></h2> <a href="kinds">Close</a>
        <p class="dim">As observed since the engine started; what a kind may do beyond that is not here. ${found && `${several(found.submitted, 'procedure')} began.`}</p></header>
      <${Shown} loaded=${loaded} what="its stages">${found && (found.items.length === 0
        ? html`<${Empty}>None of its stages has run since the engine started.<//>`
        : html`<${Drawing} found=${found} /><${Stage} found=${found} />`)}<//>
    </section>`;
}

/** Everything that leads from somewhere to somewhere, and how often. @param {Stages} found @returns {Arrow[]} */
function arrowsOf({ items, edges }) {
  const arrow = (/** @type {string} */ from, /** @type {string} */ to, /** @type {number} */ number, isUndo = false) => (number > 0 && from !== to ? [{ from, to, number, isUndo }] : []);
  const all = [
    ...items.flatMap(({ stage, begun }) => arrow(' begin', stage, begun)),
    ...edges.flatMap((edge) => arrow(edge.from, edge.to, edge.count)),
    ...items.flatMap(({ stage, ended }) => Object.entries(ended).flatMap(([end, number]) => arrow(stage, ` ${end}`, number))),
    ...items.flatMap(({ stage, undone, undo_failed }) => arrow(stage, ' undone', undone + undo_failed, true)),
  ];
  return all.sort((one, other) => other.number - one.number).slice(0, EDGES).map(({ from, to, number, isUndo }) => ({ from, to, isUndo, label: count(number) }));
}

/** What a node says below its name. @param {Pass} pass @param {number} again */
const says = (pass, again) => [
  several(pass.runs, 'run'),
  pass.retries > 0 && `${several(pass.retries, 'retry', 'retries')}`,
  again > 0 && `again ${count(again)} times`,
].filter(Boolean).join(' · ');

/** @param {Stages} found @param {Arrow[]} arrows @returns {Node[]} */
function nodesOf({ items, edges }, arrows) {
  const passes = new Map(items.map((pass) => [pass.stage, pass]));
  const names = new Set([...passes.keys(), ...arrows.flatMap(({ from, to }) => [from, to])]);
  return [...names].map((name) => {
    const end = ENDS[name];
    const pass = passes.get(name);
    const again = edges.find(({ from, to }) => from === name && to === name)?.count ?? 0;
    const words = pass ? says(pass, again) : '';
    const text = end?.text ?? cut(name);
    const width = Math.ceil((Math.max(text.length * 7.6, words.length * 6.1) + 30) / 24) * 24;
    return { name, text, says: words, tone: end?.tone ?? (pass && pass.retries > 0 ? 'retry' : ''), type: end ? 'end' : 'stage', region: 0, width, height: words ? 44 : 30, place: null };
  });
}

/** @param {{found: Stages}} props */
function Drawing({ found }) {
  const isTall = useWidth(NARROW);
  const arrows = arrowsOf(found);
  const nodes = nodesOf(found, arrows);
  const shape = JSON.stringify([isTall, nodes.map(({ name, width }) => [name, width]), arrows]);
  const layout = useMemo(() => chart(nodes, arrows, [], isTall), [shape]);
  return html`
    <div class="graph"><div class="sheet-of-graph">
      <svg width=${layout.width} height=${layout.height} viewBox=${`0 0 ${layout.width} ${layout.height}`} role="img" aria-label=${`${several(found.items.length, 'stage')}; the table below says the same`}>
        <defs>${['', 'undo'].map((tone) => html`<marker id=${`passes-${tone}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class=${`tip-of ${tone}`} /></marker>`)}</defs>
        ${arrows.map((arrow, at) => {
          const line = layout.lines[at];
          return line && html`<g class=${`way ${arrow.isUndo ? 'back' : ''}`} key=${`${arrow.from} ${arrow.to}`}><path class="edge" d=${line.d} marker-end=${`url(#passes-${arrow.isUndo ? 'undo' : ''})`} /><text x=${line.at.x} y=${line.at.y + 4} text-anchor="middle">${arrow.label}</text></g>`;
        })}
        ${nodes.map(({ name, text, says: words, tone, type, width, height }) => {
          const spot = layout.spots.get(name);
          return spot && html`<g class=${`node spot ${tone}`} key=${name} transform=${`translate(${spot.x - width / 2} ${spot.y - height / 2})`}><title>${ENDS[name]?.text ?? name}</title>
            <rect class="body" width=${width} height=${height} rx=${type === 'end' ? height / 2 : 6} />
            <text class="name" x=${width / 2} y=${words ? 18 : 19} text-anchor="middle">${text}</text>
            ${words && html`<g class="words"><text x=${width / 2} y="35" text-anchor="middle">${words}</text></g>`}</g>`;
        })}
      </svg>
    </div></div>`;
}

/** @param {number} number */
const number = (number) => (number > 0 ? count(number) : html`<span class="none">–</span>`);

/** The same as a table. @param {{found: Stages}} props */
function Stage({ found }) {
  const next = (/** @type {string} */ stage) => found.edges.filter(({ from }) => from === stage).sort((one, other) => other.count - one.count).map(({ to, count: times }) => `${to} ${count(times)}`).join(', ');
  /** @type {import('./table.js').Column<Pass>[]} */
  const columns = [
    { name: 'Stage', width: 'minmax(110px, 1fr)', bare: true, show: (pass) => html`<bdi class="mono">${pass.stage}</bdi>` },
    { name: 'Runs', width: '70px', align: 'right', help: 'Of the stage and of its undo', show: (pass) => number(pass.runs) },
    { name: 'On average', width: '74px', align: 'right', show: (pass) => (pass.mean_ms === null ? html`<span class="none">–</span>` : duration(pass.mean_ms)) },
    { name: 'Begun', width: '66px', align: 'right', help: 'Procedures whose first stage it was', show: (pass) => number(pass.begun) },
    { name: 'Retries', width: '66px', align: 'right', show: (pass) => number(pass.retries) },
    { name: 'Followed by', width: 'minmax(104px, 2fr)', show: (pass) => html`<bdi title=${next(pass.stage)}>${next(pass.stage) || '–'}</bdi>` },
    { name: 'Success', width: '70px', align: 'right', help: 'Procedures that ended at it', show: (pass) => number(pass.ended.success) },
    { name: 'Rolled back', width: '80px', align: 'right', help: 'Procedures that stood at it when they were rolled back', show: (pass) => number(pass.ended.rolled_back) },
    { name: 'Failed', width: '60px', align: 'right', show: (pass) => number(pass.ended.failed) },
    { name: 'Undone', width: '66px', align: 'right', show: (pass) => number(pass.undone) },
    { name: 'Undo failed', width: '80px', align: 'right', show: (pass) => number(pass.undo_failed) },
  ];
  return html`<${Table} label="Stages" rows=${found.items} columns=${columns} rowKey=${(/** @type {Pass} */ pass) => pass.stage} />`;
}
