/** Where the nodes and arrows of a graph stand: layers from left to right. */
import dagre from './vendor/dagre.mjs';

/** @typedef {{from: string, to: string}} Arrow */
/** @typedef {{key: string, from: string, to: string, d: string}} Line */

/**
 * @template {{name: string, width: number, height: number}} T
 * @param {T[]} nodes @param {Arrow[]} arrows
 * @returns {{spots: (T & {x: number, y: number})[], lines: Line[], width: number, height: number}}
 */
export function arrange(nodes, arrows) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: 'LR', nodesep: 14, ranksep: 46, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { name, width, height } of nodes) graph.setNode(name, { width, height });
  for (const { from, to } of arrows) graph.setEdge(from, to);
  dagre.layout(graph);
  const spots = nodes.map((node) => {
    const { x, y } = graph.node(node.name);
    return { ...node, x, y };
  });
  const lines = arrows.map(({ from, to }) => ({ key: `${from} ${to}`, from, to, d: curve(graph.edge(from, to).points) }));
  const { width = 0, height = 0 } = graph.graph();
  return { spots, lines, width: Math.max(1, width), height: Math.max(1, height) };
}

/** @param {{x: number, y: number}[]} points */
function curve(points) {
  const [first, ...rest] = points;
  if (!first) return '';
  // Through the middles between the points, bent at each of them.
  let path = `M${first.x} ${first.y}`;
  rest.forEach((point, at) => {
    const next = rest[at + 1];
    path += next ? `Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}` : `L${point.x} ${point.y}`;
  });
  return path;
}
