/** As much of uPlot as the page uses. */
interface Series { label?: string; stroke?: string; width?: number; dash?: number[]; points?: object; spanGaps?: boolean }
interface Axis { stroke?: string; grid?: object; ticks?: object; font?: string; size?: number; space?: number; values?: (plot: uPlot, ticks: (number|null)[]) => (string|null)[] }
interface Options {
  width: number; height: number; series: Series[]; axes: Axis[]; scales: Record<string, object>; legend: object; cursor: object;
  padding?: (number|null)[]; hooks: { setCursor?: ((plot: uPlot) => void)[] };
}
type Data = [number[], ...(number|null)[][]];
declare class uPlot {
  constructor(options: Options, data: Data, into: HTMLElement);
  data: (number|null)[][];
  cursor: { idx: number|null|undefined };
  setData(data: Data): void;
  setSize(size: { width: number; height: number }): void;
  destroy(): void;
}
export default uPlot;
