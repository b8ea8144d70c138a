/**
 * Bars of a timeline: what the API tells of stages and queues, and between them the waits, each
 * with its reason. They are drawn on one canvas, for the rows in sight alone.
 *
 * @typedef {object} Span
 * @property {number} from
 * @property {number} to
 * @property {string} what A word of the legend.
 * @property {string|null} stage
 * @property {string|null} ending
 * @property {number} count
 * @property {boolean} [goes] It has not ended.
 * @property {number|null} [attempt] Which attempt of its stage it is.
 * @property {number} [unkept] The number of attempts that it stands for and that are no longer kept.
 */

/** What stands between a stage that ended so and the next one. @type {Record<string, string>} */
const BETWEEN = { spawn: 'children', wait: 'event', sleep: 'timer', retry: 'backoff', undo_failed: 'backoff', panic: 'backoff' };

/** @type {Record<string, string>} */
const REASONS = { lock: 'lock', permit: 'permit', children: 'children', event: 'event', timer: 'timer', backoff: 'backoff', paused: 'paused', poison: 'paused', repeat_limit: 'paused', decision: 'event', rollback_failed: 'stuck', quarantined: 'stuck' };

export const LEGEND = ['stage', 'failed', 'undo', 'queue', 'permit', 'lock', 'children', 'event', 'timer', 'backoff', 'paused', 'stuck'];

const FAILED = ['retry', 'fail', 'panic', 'undo_failed'];

/** @param {import('./types.js').Bar} bar @returns {Span} */
function spanOf(bar) {
  const isBad = FAILED.includes(bar.ending ?? '');
  const what = isBad ? 'failed' : { admission: 'permit', several: 'stage' }[bar.what] ?? bar.what;
  return { from: Date.parse(bar.from), to: Date.parse(bar.to), what, stage: bar.stage, ending: bar.ending, count: bar.count, attempt: bar.attempt };
}

/**
 * Spans by member, in order, with the waits between them.
 * @param {import('./types.js').Bar[]} bars @param {import('./types.js').TreeRow[]} rows
 * @returns {Map<string, Span[]>}
 */
export function spansOf(bars, rows) {
  /** @type {Map<string, Span[]>} */
  const found = new Map();
  for (const bar of bars) {
    const mine = found.get(bar.id);
    if (mine) mine.push(spanOf(bar));
    else found.set(bar.id, [spanOf(bar)]);
  }
  for (const row of rows) {
    const mine = (found.get(row.id) ?? []).sort((one, other) => one.from - other.from || one.to - other.to);
    const whole = /** @type {Span[]} */ ([]);
    let before = /** @type {Span|null} */ (null);
    whole.push(...unkept(mine, Date.parse(row.submitted)));
    for (const span of mine) {
      const reason = before?.ending ? BETWEEN[before.ending] : undefined;
      if (before && reason && span.from > before.to) whole.push({ from: before.to, to: span.from, what: reason, stage: null, ending: null, count: 1 });
      whole.push(span);
      before = span;
    }
    const open = openSpan(row);
    const reason = before?.ending ? BETWEEN[before.ending] : undefined;
    if (open && before && open.from > before.to && reason) whole.push({ from: before.to, to: open.from, what: reason, stage: null, ending: null, count: 1 });
    if (open) whole.push(open);
    found.set(row.id, whole);
  }
  return found;
}

/** The time of the attempts that were not kept: of a stage that failed often the newest alone are. @param {Span[]} spans @param {number} begun @returns {Span[]} */
function unkept(spans, begun) {
  const found = [];
  let last = /** @type {Span|null} */ (null);
  let free = begun;
  for (const span of spans) {
    if (!span.attempt) continue;
    const known = last?.stage === span.stage && last.attempt && last.attempt < span.attempt ? last.attempt : 0;
    const lost = span.attempt - 1 - known;
    if (lost > 0 && span.from > free) found.push({ from: free, to: span.from, what: 'backoff', stage: span.stage, ending: null, count: 1, unkept: lost });
    last = span;
    free = span.to;
  }
  return found;
}

/** What lasts until now. @param {import('./types.js').TreeRow} row @returns {Span|null} */
function openSpan(row) {
  if (row.ended) return null;
  const what = row.reason ? (REASONS[row.reason] ?? 'queue') : row.going ? (row.state === 'Failed' ? 'undo' : 'stage') : 'queue';
  return { from: Date.parse(row.since), to: Infinity, what, stage: row.reason ? null : row.stage, ending: null, count: 1, goes: true };
}

/** @typedef {{from: number, to: number, width: number}} Scale */

/** @param {Scale} scale @param {number} time */
export const place = (scale, time) => ((time - scale.from) / (scale.to - scale.from)) * scale.width;

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 43_200_000, 86_400_000, 604_800_000];

/** @param {Scale} scale @returns {number[]} */
export function ticks(scale) {
  const wanted = (scale.to - scale.from) / Math.max(2, scale.width / 110);
  const step = STEPS.find((size) => size >= wanted) ?? 2_592_000_000;
  const found = [];
  for (let at = Math.ceil(scale.from / step) * step; at < scale.to; at += step) found.push(at);
  return found;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {{spans: Span[], isGroup: boolean, past_no_return: string|null, ended: number|null}[]} lanes
 * @param {Scale} scale @param {number} height @param {number} at
 */
export function draw(canvas, lanes, scale, height, at) {
  const ratio = devicePixelRatio || 1;
  const [width, tall] = [Math.round(scale.width * ratio), Math.round(lanes.length * height * ratio)];
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== tall) canvas.height = tall;
  canvas.style.width = `${scale.width}px`;
  canvas.style.height = `${lanes.length * height}px`;
  const context = canvas.getContext('2d');
  if (!context) return;
  const style = getComputedStyle(canvas);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, scale.width, lanes.length * height);
  context.fillStyle = colour('grid');
  for (const tick of ticks(scale)) context.fillRect(Math.round(place(scale, tick)), 0, 1, lanes.length * height);
  context.font = `11px ${style.fontFamily}`;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  lanes.forEach((lane, index) => {
    const top = index * height;
    context.globalAlpha = lane.isGroup ? 0.5 : 1;
    for (const span of lane.isGroup ? summed(lane.spans, at) : lane.spans) bar(context, span, scale, top, height, at, colour, lane.isGroup);
    context.globalAlpha = 1;
    if (lane.past_no_return) flag(context, lane, scale, top, height, colour('text'));
  });
}

const WORK = ['stage', 'failed', 'undo'];

/** Of a group the work is drawn, and one band behind it for as long as it lasted. @param {Span[]} spans @param {number} at @returns {Span[]} */
function summed(spans, at) {
  const [first] = spans;
  if (!first) return [];
  const band = { ...first, what: 'queue', stage: null };
  for (const span of spans) {
    band.from = Math.min(band.from, span.from);
    band.to = Math.max(band.to, Math.min(span.to, at));
  }
  return [band, ...spans.filter((span) => WORK.includes(span.what))];
}

/**
 * @param {CanvasRenderingContext2D} context @param {Span} span @param {Scale} scale @param {number} top
 * @param {number} height @param {number} at @param {(name: string) => string} colour @param {boolean} isGroup
 */
function bar(context, span, scale, top, height, at, colour, isGroup) {
  const from = Math.max(0, place(scale, span.from));
  const to = Math.min(scale.width, place(scale, Math.min(span.to, at)));
  if (to < 0 || from > scale.width) return;
  const isWork = WORK.includes(span.what);
  const wide = Math.max(isWork ? 2.5 : 1, to - from);
  const inset = isWork ? 5 : 7;
  context.fillStyle = colour(`bar-${span.what}`);
  context.beginPath();
  context.roundRect(from, top + inset, wide, height - 2 * inset, Math.min(3, wide / 2));
  context.fill();
  if (isGroup || wide < 30) return;
  const text = isWork ? (span.stage ?? '') : span.what;
  if (context.measureText(text).width > wide - 12) return;
  context.fillStyle = colour(isWork ? 'bar-text' : 'bar-word');
  context.fillText(text, from + 6, top + height / 2 + 0.5);
}

/**
 * Marks the end of the stage behind which there is no way back.
 * @param {CanvasRenderingContext2D} context @param {{spans: Span[], past_no_return: string|null}} lane
 * @param {Scale} scale @param {number} top @param {number} height @param {string} colour
 */
function flag(context, lane, scale, top, height, colour) {
  const span = lane.spans.find((each) => each.stage === lane.past_no_return?.replaceAll('"', ''));
  if (!span) return;
  const x = Math.round(place(scale, span.from)) - 2;
  context.fillStyle = colour;
  context.fillRect(x, top + 2, 2, height - 4);
  context.beginPath();
  context.moveTo(x + 2, top + 2);
  context.lineTo(x + 8, top + 5);
  context.lineTo(x + 2, top + 8);
  context.fill();
}
