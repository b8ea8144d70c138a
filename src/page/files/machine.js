/**
 * The machine of a saga, drawn and as a table: what its members have come to at each state, where they are, and the way
 * that they went; and what may be decided about those that rest. It is fetched when a saga is opened.
 */
import { html, useEffect, useMemo, useRef, useState } from './dom.js';
import { Ask } from './actions.js';
import { chart } from './chart.js';
import { written } from './json.js';
import { styles } from './late.js';
import { useLoad } from './load.js';
import { useRights } from './me.js';
import { Ago, At, Empty, Id, Linked, outline, Shape, Shown } from './parts.js';
import { go, pageOf } from './router.js';
import { Table } from './table.js';
import { useWidth } from './width.js';
import { bytes, count, duration, sentence, several } from './words.js';

/**
 * @typedef {{id: string, does: string}} Here
 * @typedef {{name: string, type: string, detail: string|null, place: {x: number, y: number}|null, region: number, repeats: boolean, visited: boolean,
 *   status: string|null, tries: number, took_ms: number, compensated: number, here: Here[], here_more: number, counts: Record<string, number>,
 *   machines: {id: string, status: string}[], machines_more: number}} Machined
 * @typedef {{from: string, to: string, kind: string, label: string|null, taken: boolean}} Edge
 * @typedef {{id: string, state: string, why: string, since: string, can_skip: boolean}} Rest
 * @typedef {{id: string, verb: import('./verbs.js').Verb, path: string}} Asked
 * @typedef {{id: string, machine: string, version: string|null, standing: string, status: string, compensation: string|null, sentence: string, since: string,
 *   drawn: boolean, regions: {title: string|null, parent: number|null}[], states: Machined[], edges: Edge[], rests: Rest[], truncated: boolean, context: any}} Saga
 */

await styles('machine.css');

/** Characters of a name, and of a label, that are drawn. */
const NAME = 24;
const LABEL = 22;
/** Members that rest which are listed. */
const RESTS = 10;
/** Marks of members at one state. */
const MARKS = 3;
const HEIGHT = 46;
/** Below this the graph goes down instead of to the right. */
const NARROW = 800;

/** What each status is: its tone, its shape, and in words. @type {Record<string, {tone: string, shape: string, help: string}>} */
const STATUS = {
  RU: { tone: 'run', shape: 'run', help: 'It runs.' },
  SU: { tone: 'good', shape: 'check', help: 'It took effect.' },
  FA: { tone: 'bad', shape: 'cross', help: 'It failed, and took no effect.' },
  UN: { tone: 'bad', shape: 'warn', help: 'It failed, and may have taken effect: it is in doubt.' },
  SK: { tone: 'pause', shape: 'pause', help: 'A person skipped it.' },
};
const RESTING = { tone: 'retry', shape: 'hand', help: 'A member rests here until a person decides.' };
const UNDONE = { tone: 'undo', shape: 'undo', help: 'It took effect, and was undone.' };
const NONE = { tone: '', shape: '', help: 'No member has come here.' };

/** What a member does at a state. @type {Record<string, {tone: string, shape: string, says: string}>} */
const DOES = {
  runs: { tone: 'run', shape: 'run', says: 'runs' },
  waits: { tone: 'queue', shape: 'dots', says: 'waits' },
  rests: { tone: 'retry', shape: 'pause', says: 'rests' },
  undoes: { tone: 'undo', shape: 'undo', says: 'is being undone' },
  undo_rests: { tone: 'bad', shape: 'warn', says: 'cannot be undone, and waits for a person' },
};

/** @type {import('./verbs.js').Verb} */
const FORWARD = {
  name: 'Forward', right: 'operate', plans: true, from: () => true,
  says: 'What rests goes on where it stopped, after these params have replaced variables of its context. What has succeeded is not called again.',
  fields: [{ name: 'params', label: 'Params', type: 'json', help: 'A JSON object; {} replaces nothing.', from: () => '{}' }],
};
/** @type {import('./verbs.js').Verb} */
const SKIP = {
  name: 'Skip', right: 'repair', plans: true, isGrave: true, from: () => true,
  says: 'The states where it rests count as skipped, these results replace variables of the context, and what follows is next.',
  fields: [{ name: 'results', label: 'Results', type: 'json', help: 'A JSON object: what the states would have put out.', from: () => '{}' }],
};

/** @param {string} text @param {number} most */
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** @param {Machined} state */
const rests = (state) => state.here.some(({ does }) => does.endsWith('rests')) || (state.counts.rests ?? 0) > 0;

/** @param {Machined} state */
function look(state) {
  if (rests(state)) return RESTING;
  if (state.status && state.status !== 'RU' && state.compensated > 0) return UNDONE;
  return (state.status && STATUS[state.status]) || NONE;
}

/** What has come of a state, in few words. @param {Machined} state */
function says(state) {
  const numbers = Object.entries(state.counts).map(([word, number]) => `${count(number)} ${word}`);
  if (numbers.length > 0 && (state.repeats || state.machines_more > 0)) return numbers.join(' · ');
  if (!state.status) return state.visited ? '' : state.detail ?? '';
  const [only, ...more] = state.machines;
  const parts = [state.status, only && more.length === 0 && only.id, state.tries > 1 && `${count(state.tries)} tries`, state.took_ms > 0 && duration(state.took_ms), state.compensated > 0 && 'undone'];
  return parts.filter(Boolean).join(' · ');
}

/** @param {import('./tabs.js').Given} props */
export function Machine({ id, row }) {
  const loaded = useLoad(`procedures/${id}/saga`, {}, { on: ['change'], pause: 2_000 });
  const saga = /** @type {Saga|null} */ (loaded.data);
  const [chosen, choose] = useState(/** @type {string|null} */ (null));
  // Asked here, for what rested is gone from the list before its dialog has told what was done.
  const [asked, ask] = useState(/** @type {Asked|null} */ (null));
  return html`
    ${asked && html`<${Ask} verb=${asked.verb} path=${`procedures/${asked.id}/${asked.path}`} target=${{ id: asked.id, row: asked.id === id ? row : undefined }} onClose=${() => ask(null)} />`}
    <${Shown} loaded=${loaded} what="its machine">${saga && html`
      <div class="machine">
        <${Head} saga=${saga} id=${id} ask=${ask} />
        ${saga.states.length === 0 ? html`<${Empty}>It has not begun: which definition it goes by is fixed then.<//>` : html`
          ${saga.drawn ? html`<${Drawing} saga=${saga} chosen=${chosen} choose=${choose} />` : html`<p class="dim">It has ${count(saga.states.length)} states, too many for a picture.</p>`}
          <${Table} label="States" rows=${saga.states} columns=${COLUMNS} rowKey=${(/** @type {Machined} */ state) => state.name} height=${30}
            tone=${(/** @type {Machined} */ state) => `${state.name === chosen ? 'chosen' : ''} ${rests(state) ? 'rests' : ''}`} />`}
        ${saga.truncated && html`<p class="dim">It has more members, or a longer history, than is counted here.</p>`}
        <${Context} of=${saga.context} />
      </div>`}<//>`;
}

/** How it stands, who rests, and what may be decided. @param {{saga: Saga, id: string, ask: (asked: Asked) => void}} props */
function Head({ saga, id, ask }) {
  const own = saga.rests.filter((rest) => rest.id === id);
  const about = own.length > 0 ? own : saga.rests;
  return html`
    <header class="stands">
      <p><b>${saga.machine}</b>${saga.version && html` <span class="dim">version ${saga.version}</span>`}
        <span class="pair" title="What its states came to, and its compensation">${saga.status}, ${saga.compensation ?? '–'}</span>
        <span class="dim">${saga.standing.replace('_', ' ')}</span> ${saga.standing === 'ended' ? html`<${At} time=${saga.since} stop />` : html`<span class="dim">for</span> <${Ago} time=${saga.since} label="since" stop />`}
        ${saga.id !== id && html` <span class="dim">· <${Id} id=${id} bare /> is a part of</span> <${Id} id=${saga.id} tab="machine" bare />`}</p>
      ${saga.standing !== 'rests' && html`<p class="told"><${Linked} text=${sentence(saga.sentence)} self=${id} />.</p>`}
      ${saga.rests.length > 0 && html`
        <ul class="resting" aria-label="Rests">
          ${saga.rests.slice(0, RESTS).map((rest) => html`
            <li key=${rest.id}><span class="state retry" title=${RESTING.help}><${Shape} shape="hand" />${rest.state}</span>
              <span class="dim"><${Id} id=${rest.id} bare />, <${Ago} time=${rest.since} /></span> <span class="why">${rest.why}</span>
              ${about.length > 1 && html`<${Decisions} id=${rest.id} about=${[rest]} ask=${ask} />`}</li>`)}
          ${saga.rests.length > RESTS && html`<li class="dim">and ${several(saga.rests.length - RESTS, 'other', 'others')}</li>`}
        </ul>
        <${Decisions} id=${id} about=${about} ask=${ask} />`}
    </header>`;
}

/** What may be decided about these. @param {{id: string, about: Rest[], ask: (asked: Asked) => void}} props */
function Decisions({ id, about, ask }) {
  const may = useRights();
  const button = (/** @type {import('./verbs.js').Verb} */ verb, /** @type {string} */ path) => may(verb.right) && html`
    <button type="button" class=${verb.isGrave ? 'grave' : ''} title=${verb.says} onClick=${() => ask({ id, verb, path })}>${verb.name}${about.length > 1 && ' all'}…</button>`;
  return html`<span class="tools">${button(FORWARD, 'forward')}${about.every((rest) => rest.can_skip) && button(SKIP, 'skip')}</span>`;
}

/** @param {{saga: Saga, chosen: string|null, choose: (name: string|null) => void}} props */
function Drawing({ saga, chosen, choose }) {
  const isTall = useWidth(NARROW);
  const sheet = useRef(/** @type {HTMLElement|null} */ (null));
  const states = useMemo(() => new Map(saga.states.map((state) => [state.name, state])), [saga]);
  const nodes = saga.states.map((state) => ({ ...state, width: Math.max(Math.min(state.name.length, NAME) * 7.3, says(state).length * 6.1) + 34, height: HEIGHT }));
  const arrows = saga.edges.map(({ from, to, label, kind }) => ({ from, to, label: kind === 'undo' ? '' : cut(label ?? '', LABEL) }));
  // Widths grow in steps, so that a picture does not move with each number in it.
  for (const node of nodes) node.width = Math.ceil(node.width / 24) * 24;
  const shape = JSON.stringify([isTall, nodes.map(({ name, width }) => [name, width]), arrows]);
  const layout = useMemo(() => chart(nodes, arrows, saga.regions, isTall), [shape]);
  const focused = chosen ?? saga.states.find(rests)?.name ?? saga.states.find(({ here }) => here.length > 0)?.name ?? saga.states[0]?.name;
  useEffect(() => show(sheet.current, layout.spots.get(focused ?? '')), [layout]);
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const next = move(layout.spots, focused, event.key);
    const state = states.get(focused ?? '');
    const [only] = state?.machines ?? [];
    if (next) {
      event.preventDefault();
      event.stopPropagation();
      choose(next);
      requestAnimationFrame(() => /** @type {HTMLElement|null} */ (sheet.current?.querySelector('[tabindex="0"]'))?.focus());
    } else if (event.key === 'Enter' && only) {
      event.preventDefault();
      go(pageOf(only.id, 'machine'));
    }
  };
  return html`
    <section class="graph" aria-label="The machine">
      <header><p class="dim">A solid arrow leads to what comes next, a dashed one to what undoes a state. Those that were taken are bold.</p></header>
      <div class="sheet-of-graph" ref=${sheet}>
        <svg width=${layout.width} height=${layout.height} viewBox=${`0 0 ${layout.width} ${layout.height}`} role="listbox" aria-label=${`${several(saga.states.length, 'state')}; arrow keys move among them, and the table below says the same`} onKeyDown=${onKeyDown}>
          <defs>${['', 'taken', 'undo'].map((tone) => html`<marker id=${`machine-${tone}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class=${`tip-of ${tone}`} /></marker>`)}</defs>
          ${layout.frames.map((frame) => html`<g class="lane" key=${`lane ${frame.title}`}><rect x=${frame.x} y=${frame.y} width=${frame.width} height=${frame.height} rx="8" /><text x=${frame.x + 8} y=${frame.y + 13}>${cut(frame.title, 40)}</text></g>`)}
          ${saga.edges.map((edge, at) => html`<${Arrow} key=${`${edge.from} ${edge.to} ${at}`} edge=${edge} label=${arrows[at]?.label ?? ''} line=${layout.lines[at]} />`)}
          ${nodes.map((node) => html`<${Node} key=${node.name} state=${node} spot=${layout.spots.get(node.name)} isChosen=${node.name === chosen} isFirst=${node.name === focused} onChoose=${() => choose(node.name)} />`)}
        </svg>
      </div>
    </section>`;
}

/** @param {{edge: Edge, label: string, line: import('./chart.js').Line|undefined}} props */
function Arrow({ edge, label, line }) {
  if (!line) return null;
  const isUndo = edge.kind === 'undo';
  const tip = !edge.taken ? '' : isUndo ? 'undo' : 'taken';
  return html`
    <g class=${`way ${edge.taken ? 'taken' : ''} ${isUndo ? 'back' : ''}`}>
      <path class="edge" d=${line.d} marker-end=${`url(#machine-${tip})`} />
      ${label && html`<text x=${line.at.x} y=${line.at.y + 4} text-anchor="middle"><title>${edge.label}</title>${label}</text>`}
    </g>`;
}

/** @param {{state: Machined & {width: number, height: number}, spot: import('./chart.js').Point|undefined, isChosen: boolean, isFirst: boolean, onChoose: () => void}} props */
function Node({ state, spot, isChosen, isFirst, onChoose }) {
  if (!spot) return null;
  const { tone, shape, help } = look(state);
  const words = says(state);
  const [only] = state.machines;
  const told = `${state.name}, ${state.type}: ${help} ${words}. ${state.here.map(({ id, does }) => `${id} ${DOES[does]?.says ?? does}`).join(', ')}`;
  const { width, height } = state;
  const left = (width - words.length * 5.7 - (shape ? 16 : 0)) / 2;
  const inner = html`
    <g class=${`node spot ${tone} ${state.type} ${state.visited || state.here.length > 0 ? '' : 'unseen'} ${rests(state) ? 'rests' : ''} ${isChosen ? 'chosen' : ''}`} role="option" aria-selected=${isChosen} aria-label=${told} tabindex=${isFirst ? 0 : -1}
      transform=${`translate(${spot.x - width / 2} ${spot.y - height / 2})`} onClick=${onChoose} onFocus=${onChoose}>
      <title>${told}</title>
      ${state.repeats && html`<rect class="behind" x="8" y="-8" width=${width} height=${height} rx="6" /><rect class="behind" x="4" y="-4" width=${width} height=${height} rx="6" />`}
      <path class="body" d=${bodyOf(state.type, width, height)} />
      ${state.type === 'SubStateMachine' && html`<path class="body inner" d=${bodyOf('', width - 8, height - 8)} transform="translate(4 4)" />`}
      <text class="name" x=${width / 2} y=${words || shape ? 20 : 28} text-anchor="middle">${cut(state.name, NAME)}</text>
      ${(words || shape) && html`<g class="words"><text x=${shape ? left + 16 : width / 2} y="37" text-anchor=${shape ? 'start' : 'middle'}>${words}</text>${shape && html`<path d=${outline(shape)} fill-rule="evenodd" transform=${`translate(${left} 27) scale(.75)`} />`}</g>`}
      <${Marks} state=${state} />
    </g>`;
  return only && state.machines.length === 1 ? html`<a href=${pageOf(only.id, 'machine')} tabindex="-1" aria-label=${`The sub machine ${only.id}`}>${inner}</a>` : inner;
}

/** Members that are at a state, those first that need a person. @param {{state: Machined & {width: number}}} props */
function Marks({ state }) {
  const more = state.here.length + state.here_more - MARKS;
  return html`
    ${state.here.slice(0, MARKS).map(({ id, does }, at) => html`<g key=${id} transform=${`translate(${state.width - 5 - at * 17} 1)`}><circle class=${`mark ${DOES[does]?.tone ?? ''}`} r="8" /><path class="mark-of" d=${outline(DOES[does]?.shape ?? '')} fill-rule="evenodd" transform="translate(-4.8 -4.8) scale(.6)" /><title>${id} ${DOES[does]?.says ?? does}</title></g>`)}
    ${more > 0 && html`<text class="more" x=${state.width - 4 - MARKS * 17} y="5" text-anchor="end">+${count(more)}</text>`}`;
}

/** The outline of a state by its type. @param {string} type @param {number} width @param {number} height */
function bodyOf(type, width, height) {
  if (type === 'Choice') return `M0 ${height / 2}L12 0H${width - 12}L${width} ${height / 2}L${width - 12} ${height}H12Z`;
  const round = { Succeed: height / 2, Fail: height / 2, Fork: 0, Join: 0 }[type] ?? 6;
  return `M${round} 0H${width - round}a${round} ${round} 0 0 1 ${round} ${round}V${height - round}a${round} ${round} 0 0 1 -${round} ${round}H${round}a${round} ${round} 0 0 1 -${round} -${round}V${round}a${round} ${round} 0 0 1 ${round} -${round}Z`;
}

/** The nearest state in the direction of an arrow key. @param {Map<string, import('./chart.js').Point>} spots @param {string|undefined} from @param {string} key */
function move(spots, from, key) {
  const [x = 0, y = 0] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [];
  const start = spots.get(from ?? '');
  if (!start || (x === 0 && y === 0)) return null;
  let best = null;
  let nearest = Infinity;
  for (const [name, spot] of spots) {
    const [ahead, aside] = x ? [(spot.x - start.x) * x, Math.abs(spot.y - start.y)] : [(spot.y - start.y) * y, Math.abs(spot.x - start.x)];
    const distance = ahead + 2 * aside;
    if (name !== from && ahead > 4 && distance < nearest) [best, nearest] = [name, distance];
  }
  return best;
}

/** Scrolls a sheet to where something is. @param {HTMLElement|null} sheet @param {import('./chart.js').Point|undefined} spot */
function show(sheet, spot) {
  if (!sheet || !spot) return;
  sheet.scrollLeft = spot.x - sheet.clientWidth / 2;
  sheet.scrollTop = spot.y - sheet.clientHeight / 2;
}

const DASH = html`<span class="none">–</span>`;

/** @type {import('./table.js').Column<Machined>[]} */
const COLUMNS = [
  { name: 'State', width: 'minmax(110px, 1.2fr)', show: (state) => html`<span title=${state.detail ?? ''}>${state.name}</span>` },
  { name: 'Type', width: 'minmax(96px, 1fr)', show: (state) => html`<span class="dim">${state.type}</span>` },
  { name: 'Status', width: '92px', show: Status },
  { name: 'Tries', width: '52px', align: 'right', show: (state) => (state.tries > 0 ? count(state.tries) : DASH) },
  { name: 'Took', width: '76px', align: 'right', show: (state) => (state.tries > 0 ? duration(state.took_ms) : DASH) },
  { name: 'Undone', width: '66px', align: 'right', show: (state) => (state.compensated > 0 ? count(state.compensated) : DASH) },
  { name: 'Here', width: 'minmax(110px, 1.3fr)', show: (state) => html`<${Members} state=${state} />` },
  { name: 'Children', width: 'minmax(120px, 1.3fr)', help: 'Elements of a Loop, or sub machines, by their status', show: (state) => html`<${Below} state=${state} />` },
];

/** @param {Machined} state */
function Status(state) {
  if (!state.status) return state.visited ? html`<span class="dim">passed</span>` : DASH;
  const { tone, shape, help } = STATUS[state.status] ?? NONE;
  return html`<span class=${`state ${tone}`} title=${help}><${Shape} shape=${shape} />${state.status}</span>`;
}

/** @param {{state: Machined}} props */
function Members({ state }) {
  if (state.here.length === 0) return DASH;
  return html`${state.here.slice(0, MARKS).map(({ id, does }, at) => html`${at > 0 && ', '}<${Id} id=${id} tab="machine" bare /> <span class=${DOES[does]?.tone ?? ''}>${does.replace('_', ' ')}</span>`)}${state.here.length + state.here_more > MARKS && ` and ${count(state.here.length + state.here_more - MARKS)} more`}`;
}

/** @param {{state: Machined}} props */
function Below({ state }) {
  const numbers = Object.entries(state.counts).map(([word, number]) => `${count(number)} ${word}`).join(', ');
  if (!numbers) return DASH;
  return html`${numbers}${state.machines.slice(0, MARKS).map(({ id }, at) => html`${at > 0 ? ', ' : ': '}<${Id} id=${id} tab="machine" bare />`)}${state.machines.length + state.machines_more > MARKS && ', …'}`;
}

/** @param {{of: any}} props */
function Context({ of }) {
  const value = of && typeof of === 'object' && 'value' in of ? of.value : undefined;
  return html`
    <details class="value"><summary>Context <span class="dim">${bytes(of?.size ?? 0)}</span></summary>
      ${value === undefined ? html`<p class="dim">Redacted: only its size is shown.</p>` : html`<pre>${written(value, 2)}</pre>`}
    </details>`;
}
