/** Who waits for whom, drawn: only what is connected to what was chosen, or to a circle. */
import { html, useMemo } from './dom.js';
import { arrange } from './layout.js';
import { pageOf } from './router.js';
import { count } from './words.js';

const NODES = 300;

/** @typedef {{from: string, to: string, why: string}} Edge */
/** @typedef {{name: string, isLock: boolean, x: number, y: number, width: number, height: number}} Spot */

/** @param {import('./types.js').LockUse[]} locks @param {import('./types.js').Waits|null} waits @param {import('./types.js').Cycle[]} cycles @returns {Edge[]} */
function edgesOf(locks, waits, cycles) {
  /** @type {Map<string, Edge>} */
  const found = new Map();
  const add = (/** @type {string} */ from, /** @type {string} */ to, /** @type {string} */ why) => found.set(`${from} ${to}`, { from, to, why });
  for (const lock of locks) {
    for (const id of lock.waiting) add(id, `lock ${lock.path}`, 'waits');
    for (const { id, mode } of lock.holders) add(`lock ${lock.path}`, id, mode);
  }
  for (const link of [...(waits?.links ?? []), ...cycles.flatMap(({ cycle }) => cycle)]) {
    if (!link.why.startsWith('lock ')) add(link.from, link.to, link.why === 'latch' ? 'children' : link.why);
  }
  return [...found.values()];
}

/** Characters of a node's text at most. */
const TEXT = 40;

/** @param {string} text */
const cut = (text) => (text.length > TEXT ? `${text.slice(0, TEXT - 1)}…` : text);

/** @param {string} name */
function spotOf(name) {
  const isLock = name.startsWith('lock ');
  return { name, isLock, width: cut(isLock ? name.slice(5) : name).length * 7.4 + 26, height: 26 };
}

/** What is connected to the seeds, and how much was left out. @param {Edge[]} edges @param {string[]} seeds */
function connected(edges, seeds) {
  /** @type {Map<string, string[]>} */
  const beside = new Map();
  for (const { from, to } of edges) {
    beside.set(from, [...(beside.get(from) ?? []), to]);
    beside.set(to, [...(beside.get(to) ?? []), from]);
  }
  const reached = new Set(seeds.filter((seed) => beside.has(seed)));
  const queue = [...reached];
  let left = 0;
  for (let at = 0; at < queue.length; at += 1) {
    for (const next of beside.get(/** @type {string} */ (queue[at])) ?? []) {
      if (reached.has(next)) continue;
      if (reached.size >= NODES) {
        left += 1;
        continue;
      }
      reached.add(next);
      queue.push(next);
    }
  }
  return { reached, left };
}

/** @param {{locks: import('./types.js').LockUse[], cycles: import('./types.js').Cycle[], waits: import('./types.js').Waits|null, id: string|null, path: string|null}} props */
export function Graph({ locks, cycles, waits, id, path }) {
  const edges = edgesOf(locks, waits, cycles);
  const circle = new Set(cycles.flatMap(({ cycle }) => cycle.flatMap((link) => [link.from, link.to, link.why])));
  const seeds = id ? [id] : path ? [`lock ${path}`] : cycles.flatMap(({ cycle }) => cycle.map((link) => link.from));
  const { reached, left } = connected(edges, seeds);
  const drawn = edges.filter(({ from, to }) => reached.has(from) && reached.has(to));
  const shape = drawn.map(({ from, to }) => `${from}>${to}`).join();
  const layout = useMemo(() => arrange([...reached].map(spotOf), drawn), [shape]);
  if (seeds.length === 0) return html`<p class="empty">Choose a resource, and its part of the graph is drawn here.</p>`;
  if (reached.size === 0) return html`<p class="empty">${id ?? path} waits for nobody, and nobody waits for it.</p>`;
  return html`
    <section class="graph" aria-label="Who waits for whom">
      <header><h2>${id ? html`Around <span class="mono">${id}</span>` : path ? html`Around <span class="mono">${path}</span>` : 'The circle'}</h2>
        <p class="dim">An arrow leads to what is waited for. ${left > 0 && `${count(left)} more are left out.`}</p>
        ${(id || path) && html`<a href="waits">Leave the selection</a>`}</header>
      <div class="sheet-of-graph">
        <svg width=${layout.width} height=${layout.height} viewBox=${`0 0 ${layout.width} ${layout.height}`} role="img" aria-label=${`${layout.spots.length} nodes; the table above says the same`}>
          <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="tip-of" /></marker>
            <marker id="bad-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" class="tip-of bad" /></marker></defs>
          ${layout.lines.map((line) => {
            const isBad = circle.has(line.from) && circle.has(line.to);
            return html`<path key=${line.key} class=${`edge ${isBad ? 'bad' : ''}`} d=${line.d} marker-end=${`url(#${isBad ? 'bad-' : ''}arrow)`} />`;
          })}
          ${layout.spots.map((spot) => html`<${Node} key=${spot.name} spot=${spot} isChosen=${spot.name === id || spot.name === `lock ${path}`} isBad=${circle.has(spot.name)} />`)}
        </svg>
      </div>
    </section>`;
}

/** @param {{spot: Spot, isChosen: boolean, isBad: boolean}} props */
function Node({ spot, isChosen, isBad }) {
  const text = spot.isLock ? spot.name.slice(5) : spot.name;
  const inner = html`
    <g class=${`node ${spot.isLock ? 'lock' : 'one'} ${isChosen ? 'chosen' : ''} ${isBad ? 'bad' : ''}`} transform=${`translate(${spot.x - spot.width / 2} ${spot.y - spot.height / 2})`}>
      <rect width=${spot.width} height=${spot.height} rx=${spot.isLock ? 3 : spot.height / 2} />
      <text x=${spot.width / 2} y=${spot.height / 2 + 4} text-anchor="middle">${cut(text)}</text>
      ${cut(text) !== text && html`<title>${text}</title>`}
    </g>`;
  return spot.isLock ? inner : html`<a href=${pageOf(spot.name)}>${inner}</a>`;
}
