/** A family as a tree, and beside it, on the same rows, when each member waited and ran. */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './dom.js';
import { draw, LEGEND, place, spansOf, ticks } from './bars.js';
import { now, useNow } from './clock.js';
import { useLoad } from './load.js';
import { Id, Shown, State } from './parts.js';
import { setQuery } from './router.js';
import { standing } from './states.js';
import { useRows, useWindow } from './table.js';
import { grow, OPEN, seen } from './tree.js';
import { count, duration, hour, several } from './words.js';

const HEIGHT = 28;
/** Room that the label of a tick takes, in pixels: one that would be cut is left out. */
const LABEL = 78;

/** @typedef {import('./tree.js').Branch} Branch @typedef {import('./types.js').TreeRow} TreeRow */

/** Characters of folds in the address, at most: those that were made first go. */
const FOLDS = 1_000;

/** Loads the members of a family, and keeps them as they change. @param {string} id */
export function useTree(id) {
  const heard = (/** @type {string} */ event, /** @type {any} */ body) => {
    if (event !== 'change') return;
    const news = new Map(body.rows.map((/** @type {TreeRow} */ row) => [row.id, row]));
    tree.patch((data) => ({ ...data, items: data.items.map((/** @type {TreeRow} */ row) => ({ ...row, .../** @type {object} */ (news.get(row.id)) })) }));
  };
  const tree = useLoad(`procedures/${id}/tree`, {}, { on: ['change'], pause: 3_000, heard });
  return tree;
}

/** @param {{id: string, query: URLSearchParams, tree: import('./load.js').Loaded}} props */
export function Family({ id, query, tree }) {
  const timeline = useLoad(`procedures/${id}/timeline`, { bars: 5_000 }, { on: ['change'], pause: 3_000 });
  const rows = /** @type {TreeRow[]} */ (tree.data?.items ?? []);
  const branches = useMemo(() => grow(rows), [rows]);
  const opensAll = rows.length <= OPEN;
  const [opened, folded] = ['open', 'fold'].map((name) => new Set(query.getAll(name)));
  const opens = (/** @type {Branch} */ branch) => opensAll || branch.depth === 0;
  const isOpen = (/** @type {Branch} */ branch) => (opens(branch) ? !folded?.has(branch.key) : opened?.has(branch.key) ?? false);
  const fold = (/** @type {Branch} */ branch, /** @type {boolean} */ open) => {
    const name = opens(branch) ? 'fold' : 'open';
    const keys = query.getAll(name).filter((key) => key !== branch.key);
    if (open !== opens(branch)) keys.push(branch.key);
    while (keys.join().length > FOLDS) keys.shift();
    setQuery({ [name]: keys }, false);
  };
  const shown = seen(branches, isOpen);
  const spans = useMemo(() => spansOf(timeline.data?.items ?? [], rows), [timeline.data, rows]);
  const notes = [several(rows.length, 'member'), tree.data?.truncated && 'only the first 5,000 are shown', timeline.data?.folded && 'zoomed out: adjacent bars are merged', timeline.data?.truncated && 'older history is left out'];
  return html`
    <section class="family" aria-label="Family and timeline">
      <${Shown} loaded=${tree} what="its family">
        <${Grid} shown=${shown} isOpen=${isOpen} spans=${spans} rows=${rows} self=${id} note=${notes.filter(Boolean).join(' · ')}
          zoom=${Number(query.get('last')) || 0} onFold=${fold} />
      <//>
    </section>`;
}

/** @param {TreeRow[]} rows @param {Map<string, import('./bars.js').Span[]>} spans */
function reach(rows, spans) {
  let from = Infinity;
  let to = 0;
  for (const row of rows) {
    from = Math.min(from, Date.parse(row.submitted));
    to = Math.max(to, row.ended ? Date.parse(row.ended) : Infinity);
  }
  for (const mine of spans.values()) {
    for (const span of mine) if (Number.isFinite(span.to)) to = Math.max(to, span.to);
  }
  return { from, to };
}

/**
 * @param {{shown: Branch[], isOpen: (branch: Branch) => boolean, spans: Map<string, import('./bars.js').Span[]>, rows: TreeRow[],
 *   self: string, note: string, zoom: number, onFold: (branch: Branch, open: boolean) => void}} props
 */
function Grid({ shown, isOpen, spans, rows, self, note, zoom, onFold }) {
  const { box, from, to, reveal } = useWindow(shown.length, HEIGHT);
  const { marked, mark } = useRows(shown, (branch) => branch.key, (branch) => branch.row?.id ?? null, reveal);
  const canvas = useRef(/** @type {HTMLCanvasElement|null} */ (null));
  const lane = useRef(/** @type {HTMLElement|null} */ (null));
  const [width, setWidth] = useState(600);
  const setZoom = (/** @type {number} */ size) => setQuery({ last: size ? String(size) : null }, false);
  const [tip, setTip] = useState(/** @type {{x: number, y: number, text: string}|null} */ (null));
  const at = useNow();

  useLayoutEffect(() => {
    const element = lane.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => setWidth(Math.max(200, element.clientWidth)));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  // The tree opens where the chosen member is.
  const isRead = rows.length > 0;
  useEffect(() => reveal(Math.max(0, shown.findIndex(({ row }) => row?.id === self))), [self, isRead]);
  const whole = reach(rows, spans);
  const end = Math.min(Number.isFinite(whole.to) ? whole.to : at, Number.isFinite(whole.to) ? Infinity : at);
  const begin = zoom ? Math.max(whole.from, end - zoom) : whole.from;
  const pad = Math.max(50, (end - begin) * 0.012);
  const scale = { from: begin - pad, to: end + pad, width };
  const lanes = shown.slice(from, to).map((branch) => ({
    spans: branch.row ? (spans.get(branch.row.id) ?? []) : branch.members.flatMap((row) => spans.get(row.id) ?? []),
    isGroup: !branch.row,
    past_no_return: branch.row?.past_no_return ?? null,
    ended: null,
  }));
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const again = () => setTheme((times) => times + 1);
    addEventListener('themed', again);
    return () => removeEventListener('themed', again);
  }, []);
  useLayoutEffect(() => {
    if (canvas.current) draw(canvas.current, lanes, scale, HEIGHT, end);
  }, [shown, spans, from, to, width, zoom, Math.floor(at / 1000), theme]);

  const point = (/** @type {MouseEvent} */ event) => {
    const area = /** @type {HTMLElement} */ (event.currentTarget).getBoundingClientRect();
    const [x, y] = [event.clientX - area.left, event.clientY - area.top];
    const branch = shown[from + Math.floor(y / HEIGHT)];
    const time = scale.from + (x / width) * (scale.to - scale.from);
    const slack = ((scale.to - scale.from) / width) * 2;
    const mine = branch?.row ? (spans.get(branch.row.id) ?? []) : [];
    const found = mine.filter((span) => span.from - slack <= time && Math.min(span.to, end) + slack >= time).at(-1);
    setTip(found && branch ? { x, y: (Math.floor(y / HEIGHT) + 1) * HEIGHT, text: told(found, end) } : null);
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const branch = shown.find(({ key }) => key === marked);
    if (!branch?.below.length || !['ArrowLeft', 'ArrowRight'].includes(event.key)) return;
    event.preventDefault();
    onFold(branch, event.key === 'ArrowRight');
  };
  const span = end - whole.from;
  const zooms = [60_000, 600_000, 3_600_000].filter((size) => size < span);
  return html`
    <div class="grid" role="treegrid" aria-label="Family and timeline" aria-rowcount=${shown.length} onKeyDown=${keys}>
      <div class="grid-head">
        <div class="left">Family <span class="dim">${note}</span></div>
        <div class="right" ref=${lane}>
          ${ticks(scale).filter((tick) => place(scale, tick) < width - LABEL).map((tick) => html`<span class="tick" key=${tick} style=${{ left: `${place(scale, tick)}px` }}>${label(tick, scale)}</span>`)}
        </div>
      </div>
      <div class="grid-body" ref=${box} style=${{ height: `${Math.min(shown.length, 13) * HEIGHT + 2}px` }}>
        <div class="grid-rows" style=${{ height: `${shown.length * HEIGHT}px` }}>
          ${shown.slice(from, to).map((branch, index) => html`
            <${Line} key=${branch.key} branch=${branch} top=${(from + index) * HEIGHT} index=${from + index} open=${isOpen(branch)} isSelf=${branch.row?.id === self}
              isMarked=${branch.key === marked} spans=${branch.row ? spans.get(branch.row.id) : undefined} onMark=${() => mark(branch.key)} onFold=${() => onFold(branch, !isOpen(branch))} />`)}
          <div class="lanes" style=${{ transform: `translateY(${from * HEIGHT}px)` }} onMouseMove=${point} onMouseLeave=${() => setTip(null)}>
            <canvas ref=${canvas} aria-hidden="true"></canvas>
            ${tip && html`<div class="tip" style=${{ left: `${Math.min(tip.x, width - 260)}px`, top: `${tip.y}px` }}>${tip.text}</div>`}
          </div>
        </div>
      </div>
      <div class="grid-foot">
        <ul class="legend" aria-label="Colours of bars">${LEGEND.filter((name) => [...spans.values()].some((mine) => mine.some((each) => each.what === name))).map((name) => html`<li key=${name}><i class=${`key-${name}`}></i>${name}</li>`)}</ul>
        ${zooms.length > 0 && html`<div class="quick" role="group" aria-label="How much time is shown">
          <button type="button" aria-pressed=${zoom === 0} onClick=${() => setZoom(0)}>All ${duration(span)}</button>
          ${zooms.map((size) => html`<button type="button" key=${size} aria-pressed=${zoom === size} onClick=${() => setZoom(size)}>Last ${duration(size)}</button>`)}</div>`}
      </div>
    </div>`;
}

/** @param {number} tick @param {import('./bars.js').Scale} scale */
function label(tick, scale) {
  const span = scale.to - scale.from;
  const text = hour(tick, now());
  if (span < 10_000) return `${text}.${String(tick % 1000).padStart(3, '0')}`;
  return span > 600_000 ? text.replace(/:\d\d$/, '') : text;
}

/** @param {import('./bars.js').Span} span @param {number} end */
function told(span, end) {
  const time = duration(Math.min(span.to, end) - span.from);
  const what = span.stage ? `${span.what === 'failed' ? '' : `${span.what} `}${span.stage}` : span.what;
  if (span.unkept) return `${several(span.unkept, 'attempt')} of ${span.stage} ${span.unkept === 1 ? 'is' : 'are'} not kept: ${time} · ${hour(span.from, now())}`;
  const how = span.ending ? `, ended with ${span.ending.replaceAll('_', ' ')}` : span.goes ? ', goes on' : '';
  return `${what}: ${time}${how}${span.count > 1 ? `, ${count(span.count)} spans` : ''} · ${hour(span.from, now())}`;
}

/**
 * @param {{branch: Branch, top: number, index: number, open: boolean, isSelf: boolean, isMarked: boolean,
 *   spans: import('./bars.js').Span[]|undefined, onMark: () => void, onFold: () => void}} props
 */
function Line({ branch, top, index, open, isSelf, isMarked, spans, onMark, onFold }) {
  const { row, below } = branch;
  const bars = spans?.map((span) => `${span.stage ?? span.what}`).slice(-6).join(', ');
  return html`
    <div role="row" class=${`grid-row ${isSelf ? 'self' : ''}`} style=${{ transform: `translateY(${top}px)`, height: `${HEIGHT}px` }} aria-level=${branch.depth + 1}
      aria-expanded=${below.length ? open : undefined} aria-rowindex=${index + 1} tabindex=${isMarked ? 0 : -1} data-marked=${isMarked || undefined} onClick=${onMark}>
      <div role="gridcell" class="left" style=${{ paddingLeft: `${8 + branch.depth * 16}px` }}>
        ${below.length
          ? html`<button type="button" class="fold" tabindex="-1" aria-label=${open ? 'Fold' : 'Unfold'} onClick=${onFold}>${open ? '▾' : '▸'}</button>`
          : html`<span class="fold"></span>`}
        ${row
          ? html`<${Id} id=${row.id} /><bdi class="kind" title=${row.kind}>${row.kind}</bdi><${State} row=${row} />`
          : html`<span class="kind group"><bdi>${branch.kind}</bdi> × ${count(branch.members.length)}</span><span class="dim sum">${sums(branch.members)}</span>`}
      </div>
      <div role="gridcell" class="hidden">${bars}</div>
    </div>`;
}

/** How many stand how. @param {TreeRow[]} members */
function sums(members) {
  /** @type {Map<string, number>} */
  const found = new Map();
  for (const row of members) {
    const word = (standing(row).word.split(' · ')[0] ?? '');
    found.set(word, (found.get(word) ?? 0) + 1);
  }
  return [...found].sort((one, other) => other[1] - one[1]).map(([word, number]) => `${count(number)} ${word}`).join(', ');
}
