interface Place { x: number; y: number; width: number; height: number }
declare class Graph {
  setGraph(label: object): void;
  setDefaultEdgeLabel(make: () => object): void;
  setNode(name: string, label: object): void;
  setEdge(from: string, to: string): void;
  node(name: string): Place;
  edge(from: string, to: string): { points: { x: number; y: number }[] };
  graph(): { width?: number; height?: number };
}
declare const dagre: { graphlib: { Graph: typeof Graph }; layout(graph: Graph): void };
export default dagre;
