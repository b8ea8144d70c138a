/** How much the engine commits: the last five minutes as a line. */
import { html, useEffect, useRef, useState } from './dom.js';
import { Ago, Id } from './parts.js';
import { count, duration } from './words.js';

/** Steps of the line: silence at its beginning is drawn, too. */
const STEPS = 150;

/** @param {number} rate */
const figure = (rate) => (rate >= 10 ? count(Math.round(rate)) : count(Math.round(rate * 10) / 10));

/** @param {{body: any}} props */
export function Pulse({ body }) {
  const box = useRef(/** @type {HTMLCanvasElement|null} */ (null));
  const [, again] = useState(0);
  const { step_ms: step = 2_000, commits = [] } = body.pulse ?? {};
  const line = /** @type {number[]} */ (commits).map((number) => (number * 1000) / step);
  useEffect(() => {
    if (box.current) draw(box.current, line);
  });
  useEffect(() => {
    const redraw = () => again((times) => times + 1);
    addEventListener('themed', redraw);
    addEventListener('resize', redraw);
    return () => {
      removeEventListener('themed', redraw);
      removeEventListener('resize', redraw);
    };
  }, []);
  const now = line.at(-1) ?? 0;
  const most = Math.max(0, ...line);
  const oldest = body.oldest_runnable;
  return html`
    <section class="pulse" aria-label="Throughput">
      <dl>
        <div><dt>Commits a second</dt><dd>${figure(now)}</dd></div>
        <div title="Within which 99 of 100 of the newest 1,000 batches were on disk"><dt>Commit p99</dt><dd>${body.commit_p99_ms === null ? 'none yet' : duration(body.commit_p99_ms)}</dd></div>
        <div title="Ready, and not with a worker"><dt>Oldest waiting</dt><dd>${oldest ? html`<${Ago} time=${oldest.since} /> <${Id} id=${oldest.id} />` : 'none'}</dd></div>
      </dl>
      <figure>
        <canvas ref=${box} role="img" aria-label=${`Commits a second in the last five minutes: ${figure(now)} now, ${figure(most)} at most`}></canvas>
        <figcaption><span>5 m ago</span><span>peak ${figure(most)}/s</span><span>now</span></figcaption>
      </figure>
    </section>`;
}

/** @param {HTMLCanvasElement} canvas @param {number[]} line */
function draw(canvas, line) {
  const ratio = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext('2d');
  if (!context) return;
  const colours = getComputedStyle(canvas);
  context.scale(ratio, ratio);
  context.clearRect(0, 0, width, height);
  context.strokeStyle = colours.getPropertyValue('--line');
  context.beginPath();
  context.moveTo(0, height - 0.5);
  context.lineTo(width, height - 0.5);
  context.stroke();
  if (line.length < 2) return;
  const top = Math.max(...line, 1) * 1.1;
  const step = width / (STEPS - 1);
  const begin = width - step * (line.length - 1);
  context.beginPath();
  line.forEach((rate, at) => {
    const [x, y] = [begin + at * step, height - 1 - (rate / top) * (height - 4)];
    if (at === 0) context.moveTo(x, y);
    else context.lineTo(x, y);
  });
  context.lineWidth = 1.5;
  context.lineJoin = 'round';
  context.strokeStyle = colours.getPropertyValue('--accent');
  context.stroke();
  context.lineTo(width, height);
  context.lineTo(begin, height);
  context.closePath();
  context.globalAlpha = 0.12;
  context.fillStyle = colours.getPropertyValue('--accent');
  context.fill();
}
