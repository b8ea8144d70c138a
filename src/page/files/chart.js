/** Where the states of a machine stand: as a designer drew them, or in layers; and a frame around each branch. */
import dagre from './vendor/dagre.mjs';

/**
 * @typedef {{x: number, y: number}} Point
 * @typedef {{name: string, type: string, region: number, width: number, height: number, place: Point|null}} Node
 * @typedef {{from: string, to: string, label: string}} Arrow
 * @typedef {{title: string|null, parent: number|null}} Region
 * @typedef {{d: string, at: Point}} Line
 * @typedef {{x: number, y: number, width: number, height: number, title: string}} Frame
 * @typedef {{spots: Map<string, Point>, lines: Line[], frames: Frame[], width: number, height: number}} Chart
 */

/** Places that are farther out are no drawing. */
const FAR = 100_000;
/** Between nodes, and between a frame and what is in it. */
const GAP = 30;
const PAD = 14;
/** Height of a frame's title. */
const TITLE = 18;

/** @param {Node[]} nodes @param {Arrow[]} arrows @param {Region[]} regions @param {boolean} isTall @returns {Chart} */
export function chart(nodes, arrows, regions, isTall) {
  const isDrawn = nodes.length > 0 && nodes.every(({ place }) => place && Math.abs(place.x) < FAR && Math.abs(place.y) < FAR);
  return isDrawn ? asDrawn(nodes, arrows, regions) : inLayers(nodes, arrows, regions, isTall);
}

/** @param {Node[]} nodes @param {Arrow[]} arrows @param {Region[]} regions @param {boolean} isTall @returns {Chart} */
function inLayers(nodes, arrows, regions, isTall) {
  // The vendored types are of simple graphs.
  const graph = /** @type {any} */ (new /** @type {any} */ (dagre.graphlib.Graph)({ compound: true, multigraph: true }));
  graph.setGraph({ rankdir: isTall ? 'TB' : 'LR', nodesep: 30, ranksep: 34, edgesep: 12, marginx: 12, marginy: 12 + TITLE });
  regions.forEach((region, at) => {
    if (at > 0) graph.setNode(`region ${at}`, {});
    if (at > 0 && region.parent) graph.setParent(`region ${at}`, `region ${region.parent}`);
  });
  for (const { name, width, height, region } of nodes) {
    graph.setNode(`state ${name}`, { width, height });
    if (region > 0) graph.setParent(`state ${name}`, `region ${region}`);
  }
  // Two layers to a Join, so that no compensator stands beside it and in the way.
  const joins = new Set(nodes.filter(({ type }) => type === 'Join').map(({ name }) => name));
  arrows.forEach(({ from, to, label }, at) => graph.setEdge(`state ${from}`, `state ${to}`, { minlen: joins.has(to) ? 2 : 1, ...(label ? { width: label.length * 6 + 8, height: 14, labelpos: 'c' } : {}) }, String(at)));
  dagre.layout(graph);
  const spots = new Map(nodes.map(({ name }) => [name, /** @type {Point} */ (graph.node(`state ${name}`))]));
  const lines = arrows.map(({ from, to }, at) => {
    const { points, x, y } = graph.edge(`state ${from}`, `state ${to}`, String(at));
    return { d: curve(points), at: x === undefined ? middle(points) : { x, y } };
  });
  const frames = regions.flatMap(({ title }, at) => {
    const frame = at > 0 && graph.node(`region ${at}`);
    return frame?.width ? [{ x: frame.x - frame.width / 2, y: frame.y - frame.height / 2 - TITLE + 4, width: frame.width, height: frame.height + TITLE - 4, title: title ?? '' }] : [];
  });
  const { width = 1, height = 1 } = graph.graph();
  return { spots, lines, frames, width, height };
}

/** @param {Node[]} nodes @param {Arrow[]} arrows @param {Region[]} regions @returns {Chart} */
function asDrawn(nodes, arrows, regions) {
  const { x: wide, y: high } = spread(nodes);
  const raw = nodes.map((node) => ({ node, x: at(node).x * wide, y: at(node).y * high }));
  const frames = framesOf(raw, regions);
  const all = [...raw.map(({ node, x, y }) => ({ x: x - node.width / 2, y: y - node.height / 2, width: node.width, height: node.height })), ...frames];
  const left = Math.min(...all.map(({ x }) => x)) - PAD;
  const top = Math.min(...all.map(({ y }) => y)) - PAD;
  const spots = new Map(raw.map(({ node, x, y }) => [node.name, { x: x - left, y: y - top }]));
  const sizes = new Map(nodes.map((node) => [node.name, node]));
  /** @type {Map<string, number>} */
  const drawn = new Map();
  const lines = arrows.map(({ from, to }) => {
    const pair = [from, to].sort().join('\n');
    const number = drawn.get(pair) ?? 0;
    drawn.set(pair, number + 1);
    return straight(ends(spots, sizes, from), ends(spots, sizes, to), number);
  });
  return {
    spots, lines,
    frames: frames.map((frame) => ({ ...frame, x: frame.x - left, y: frame.y - top })),
    width: Math.max(...all.map(({ x, width }) => x + width)) - left + PAD,
    height: Math.max(...all.map(({ y, height }) => y + height)) - top + PAD,
  };
}

/** @param {Node} node @returns {Point} */
const at = (node) => node.place ?? { x: 0, y: 0 };

/** How far a drawing is spread so that no two nodes overlap: they are larger here than in a designer. @param {Node[]} nodes @returns {Point} */
function spread(nodes) {
  const found = { x: 1, y: 1 };
  nodes.forEach((one, index) => {
    for (const other of nodes.slice(index + 1)) {
      const x = ((one.width + other.width) / 2 + GAP) / Math.max(1, Math.abs(at(one).x - at(other).x));
      const y = ((one.height + other.height) / 2 + GAP) / Math.max(1, Math.abs(at(one).y - at(other).y));
      if (x < y) found.x = Math.max(found.x, x);
      else found.y = Math.max(found.y, y);
    }
  });
  return { x: Math.min(found.x, 4), y: Math.min(found.y, 4) };
}

/** Around all that lies in each branch. @param {{node: Node, x: number, y: number}[]} spots @param {Region[]} regions @returns {Frame[]} */
function framesOf(spots, regions) {
  const isIn = (/** @type {number|null} */ region, /** @type {number} */ outer) => {
    for (let next = region; next; next = regions[next]?.parent ?? null) if (next === outer) return true;
    return false;
  };
  return regions.flatMap(({ title }, region) => {
    const inside = region > 0 ? spots.filter(({ node }) => isIn(node.region, region)) : [];
    if (inside.length === 0) return [];
    const left = Math.min(...inside.map(({ node, x }) => x - node.width / 2)) - PAD;
    const top = Math.min(...inside.map(({ node, y }) => y - node.height / 2)) - PAD - TITLE;
    const right = Math.max(...inside.map(({ node, x }) => x + node.width / 2)) + PAD;
    const bottom = Math.max(...inside.map(({ node, y }) => y + node.height / 2)) + PAD;
    return [{ x: left, y: top, width: right - left, height: bottom - top, title: title ?? '' }];
  });
}

/** @typedef {Point & {width: number, height: number}} End */

/** @param {Map<string, Point>} spots @param {Map<string, Node>} sizes @param {string} name @returns {End} */
function ends(spots, sizes, name) {
  const { width = 0, height = 0 } = sizes.get(name) ?? {};
  return { .../** @type {Point} */ (spots.get(name) ?? { x: 0, y: 0 }), width, height };
}

/** A line from border to border; further ones of a pair bend. @param {End} from @param {End} to @param {number} number @returns {Line} */
function straight(from, to, number) {
  const length = Math.max(1, Math.hypot(to.x - from.x, to.y - from.y));
  const bend = number * 26;
  const over = { x: (from.x + to.x) / 2 + ((from.y - to.y) / length) * bend, y: (from.y + to.y) / 2 + ((to.x - from.x) / length) * bend };
  const [first, last] = [border(from, over), border(to, over)];
  return { d: `M${first.x} ${first.y}Q${over.x} ${over.y} ${last.x} ${last.y}`, at: { x: (first.x + last.x + 2 * over.x) / 4, y: (first.y + last.y + 2 * over.y) / 4 } };
}

/** Where a line towards a point leaves a node. @param {End} node @param {Point} to @returns {Point} */
function border(node, to) {
  const [x, y] = [to.x - node.x, to.y - node.y];
  const share = Math.min(x ? node.width / 2 / Math.abs(x) : Infinity, y ? node.height / 2 / Math.abs(y) : Infinity, 1);
  return { x: node.x + x * share, y: node.y + y * share };
}

/** @param {Point[]} points @returns {Point} */
const middle = (points) => points[Math.floor(points.length / 2)] ?? { x: 0, y: 0 };

/** Through the middles between the points, bent at each of them. @param {Point[]} points */
function curve([first, ...rest]) {
  if (!first) return '';
  return `M${first.x} ${first.y}${rest.map((point, at) => {
    const next = rest[at + 1];
    return next ? `Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}` : `L${point.x} ${point.y}`;
  }).join('')}`;
}
