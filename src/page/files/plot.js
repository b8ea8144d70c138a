/** A chart of lines over time. What is drawn also stands in a table; under the pointer it is told in words. */
import uPlot from './vendor/uplot.mjs';
import { html, useEffect, useRef, useState } from './dom.js';
import { styles } from './late.js';

/**
 * @typedef {{name: string, tone: string, isDashed?: boolean, values: (number|null)[]}} Line
 * @typedef {{title: string, note: string, times: number[], lines: Line[], show: (value: number) => string, sum: string}} Props
 */

await Promise.all([styles('uplot.css'), styles('charts.css')]);

const HEIGHT = 170;

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

/** Hours and minutes. @param {string|number} time */
export const clockOf = (time) => clock.format(new Date(time));

/** @param {Props} props */
export function Plot({ title, note, times, lines, show, sum }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const plot = useRef(/** @type {uPlot|null} */ (null));
  const [at, point] = useState(/** @type {number|null} */ (null));
  const [theme, turn] = useState(0);
  const data = /** @type {[number[], ...(number|null)[][]]} */ ([times.map((time) => time / 1_000), ...lines.map(({ values }) => values)]);
  useEffect(() => {
    const again = () => turn((count) => count + 1);
    addEventListener('themed', again);
    return () => removeEventListener('themed', again);
  }, []);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const drawn = new uPlot(options(element, lines, show, point), data, element);
    plot.current = drawn;
    const watch = new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [theme]);
  useEffect(() => plot.current?.setData(data), [JSON.stringify(data)]);
  const time = at === null ? undefined : times[at];
  const said = lines.map(({ name, values }) => {
    const value = at === null ? null : values[at] ?? null;
    return { name, text: value === null ? 'none' : show(value) };
  });
  return html`
    <figure class="plot">
      <figcaption>
        <h2>${title}</h2> <span class="dim">${note}</span>
        <p class="key">${time === undefined
          ? lines.map(({ name, tone, isDashed }) => html`<span key=${name}><i class=${`stroke ${tone} ${isDashed ? 'dashed' : ''}`} aria-hidden="true"></i>${name}</span>`)
          : html`<span>${clockOf(time)}</span>${said.map(({ name, text }) => html`<span key=${name}>${name} <b>${text}</b></span>`)}`}</p>
      </figcaption>
      <div class="drawn" ref=${box} role="img" aria-label=${`${title}. ${sum}`}></div>
    </figure>`;
}

/** Where a value has no neighbour: no line leads to it, so it is drawn as a point. @param {(number|null)[]} values */
const lonely = (values) => values.flatMap((value, at) => ((value ?? null) !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null ? [at] : []));

/** @param {HTMLElement} element @param {Line[]} lines @param {(value: number) => string} show @param {(at: number|null) => void} point */
function options(element, lines, show, point) {
  const style = getComputedStyle(element);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: colour('dim'), grid: { stroke: colour('grid'), width: 1 }, ticks: { stroke: colour('line'), width: 1 }, font: `11px ${style.fontFamily}` };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    // Nothing is dragged: a finger that moves over it scrolls the page.
    cursor: { drag: { x: false, y: false }, y: false, points: { size: 6 } },
    scales: { x: { time: true }, y: { range: (/** @type {any} */ _, /** @type {number|null} */ __, /** @type {number|null} */ most) => [0, most ? most * 1.1 : 1] } },
    axes: [
      { ...axis, size: 30, space: 60, values: (/** @type {any} */ _, /** @type {(number|null)[]} */ ticks) => ticks.map((tick) => (tick === null ? null : clockOf(tick * 1_000))) },
      { ...axis, size: 64, values: (/** @type {any} */ _, /** @type {(number|null)[]} */ ticks) => ticks.map((tick) => (tick === null ? null : show(tick))) },
    ],
    series: [{}, ...lines.map(({ name, tone, isDashed }) => ({
      label: name, stroke: colour(tone), width: 1.75, dash: isDashed ? [5, 4] : undefined, spanGaps: false,
      points: { size: 5, fill: colour(tone), filter: (/** @type {uPlot} */ drawn, /** @type {number} */ at, /** @type {boolean} */ all) => (all ? null : lonely(drawn.data[at] ?? [])) },
    }))],
    hooks: { setCursor: [(/** @type {uPlot} */ drawn) => point(drawn.cursor.idx ?? null)] },
  };
}
