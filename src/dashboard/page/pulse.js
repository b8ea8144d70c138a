/** How much the engine commits: the last minutes as a line. */
import { html, useEffect, useRef, useState } from './dom.js';
import { hear } from './live.js';
import { count, duration } from './words.js';
import { Ago, Id } from './parts.js';

const KEPT = 180;

/** Commits by second, as the gauges tell them. @type {{at: number, commits: number}[]} */
const samples = [];

/** @param {any} body */
function note(body) {
  const at = Date.parse(body.now ?? new Date().toISOString());
  const commits = body.engine?.commits;
  if (typeof commits !== 'number') return;
  samples.push({ at, commits });
  if (samples.length > KEPT) samples.shift();
}

hear((event, body) => {
  if (event === 'gauges') note(body);
});

/** @returns {{at: number, rate: number}[]} */
function rates() {
  const found = [];
  for (let place = 1; place < samples.length; place += 1) {
    const [one, other] = [samples[place - 1], samples[place]];
    if (!one || !other || other.at <= one.at) continue;
    found.push({ at: other.at, rate: Math.max(0, (other.commits - one.commits) * 1000 / (other.at - one.at)) });
  }
  return found;
}

/** @param {{body: any}} props */
export function Pulse({ body }) {
  const [, again] = useState(0);
  const box = useRef(/** @type {HTMLCanvasElement|null} */ (null));
  useEffect(() => hear((event) => event === 'gauges' && again((times) => times + 1)), []);
  /** @type {{at: number, rate: number}[]} */
  const line = body.rates ?? rates();
  useEffect(() => {
    if (box.current) draw(box.current, line.map(({ rate }) => rate));
  });
  const last = line.at(-1)?.rate ?? 0;
  const top = Math.max(...line.map(({ rate }) => rate), 0);
  return html`
    <section class="pulse" aria-label="Throughput">
      <dl>
        <div><dt>commits a second</dt><dd>${line.length ? count(Math.round(last * 10) / 10) : '–'}</dd></div>
        <div><dt>at most here</dt><dd>${line.length ? count(Math.round(top * 10) / 10) : '–'}</dd></div>
        ${body.commit_p99_ms != null && html`<div><dt>commit p99</dt><dd>${duration(body.commit_p99_ms)}</dd></div>`}
        <div><dt>oldest runnable</dt><dd>${body.oldest_runnable ? html`<${Ago} time=${body.oldest_runnable.since} /> <${Id} id=${body.oldest_runnable.id} />` : 'none waits'}</dd></div>
      </dl>
      <canvas ref=${box} role="img" aria-label=${`Commits a second, ${Math.round(last)} now`}></canvas>
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
  const top = Math.max(...line, 1) * 1.15;
  const step = width / (Math.max(line.length, 60) - 1);
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
