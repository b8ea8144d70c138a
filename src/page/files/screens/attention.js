/** What needs somebody now: counts that lead to lists, and verdicts, the most harmful first. */
import { html, useRef } from '../dom.js';
import { useAsk, Verbs } from '../actions.js';
import { useLoad } from '../load.js';
import { useRights } from '../me.js';
import { Ago, Head, Linked, Shape, Shown } from '../parts.js';
import { Pulse } from '../pulse.js';
import { go, listOf, pageOf } from '../router.js';
import { harm, keyOf, RULES } from '../states.js';
import { useRows } from '../table.js';
import { WIDE } from '../verbs.js';
import { age, count, local, sentence } from '../words.js';
import { now } from '../clock.js';

/** @type {{name: string, filter: string, of: (body: any) => number|null, tone?: string, help: string}[]} */
export const TILES = [
  { name: 'active', filter: 'state:live', of: (body) => body.tiles?.active ?? null, help: 'All that have not ended.' },
  { name: 'retrying', filter: 'state:retrying', of: (body) => body.tiles?.retrying ?? null, tone: 'retry', help: 'Their last attempt failed; the next is due.' },
  { name: 'rolling back', filter: 'state:rolling_back', of: (body) => body.tiles?.rolling_back ?? null, tone: 'undo', help: 'They have failed, and are being undone.' },
  { name: 'rollback failed', filter: 'reason:rollback_failed', of: (body) => body.tiles?.rollback_failed ?? null, tone: 'bad', help: 'An undo used up its attempts.' },
  { name: 'paused', filter: 'reason:paused', of: (body) => body.tiles?.paused ?? null, tone: 'pause', help: 'An operator has paused them.' },
  { name: 'failed in 24 h', filter: 'state:rolledback,failed state:ended since:<24h', of: (body) => body.tiles?.failed_day ?? null, tone: 'bad', help: 'They ended in the last day, and not well.' },
];

/** @param {{tile: (typeof TILES)[number], body: any}} props */
function Tile({ tile, body }) {
  const number = tile.of(body);
  if (number === null) return null;
  return html`
    <a class=${`tile ${number > 0 ? (tile.tone ?? '') : 'none'}`} href=${listOf(tile.filter)} title=${tile.help}>
      <span class="number">${count(number)}</span><span class="name">${tile.name}</span>
      ${tile === TILES[0] && html`<span class="name">${byState(body)}</span>`}
    </a>`;
}

/** The active ones by state; of the failed others have ended. @param {any} body */
function byState({ states, tiles }) {
  const of = (/** @type {string[]} */ ...names) => names.reduce((sum, name) => sum + (states[name] ?? 0), 0);
  const found = { initializing: of('Initializing'), runnable: of('Runnable'), waiting: of('Waiting', 'WaitingTimeout'), failed: 0 };
  found.failed = tiles.active - found.initializing - found.runnable - found.waiting;
  return Object.entries(found).filter(([, number]) => number > 0).map(([name, number]) => `${count(number)} ${name}`).join(', ');
}

/** @param {{verdict: import('../types.js').Verdict, isMarked: boolean, onMark: () => void}} props */
function Verdict({ verdict, isMarked, onMark }) {
  const rule = RULES[verdict.rule] ?? { code: '', name: verdict.rule.replaceAll('_', ' '), help: '' };
  const tone = harm(verdict.rule);
  const facts = Object.entries(verdict.facts).filter(([name]) => !['cycle', 'victim'].includes(name));
  return html`
    <li class=${`verdict ${tone}`} tabindex=${isMarked ? 0 : -1} data-marked=${isMarked || undefined} onClick=${onMark}>
      <p class="rule" title=${rule.help}><span class=${`state ${tone}`}><${Shape} shape=${tone === 'bad' ? 'warn' : 'retry'} />${rule.name}</span><span class="code">${rule.code}</span></p>
      <div class="says">
        <p class="text"><${Linked} text=${local(sentence(verdict.text), now())} /></p>
        <p class="facts">
          ${facts.map(([name, value]) => html`<span key=${name}><span class="dim">${name}</span> <bdi>${fact(name, value)}</bdi></span>`)}
          <span><span class="dim">rule</span> ${rule.help}</span>
        </p>
      </div>
      <p class="since"><span class="dim">for</span> <${Ago} time=${verdict.since} label="since" stop /></p>
      <div class="offers"><${Offers} verdict=${verdict} /></div>
    </li>`;
}

/** @param {string} name @param {string} value */
function fact(name, value) {
  // Instants among the facts are microseconds since 1970.
  if (name === 'next' && /^\d+$/.test(value)) return `in ${age(Math.max(0, Number(value) / 1000 - now()))}`.replace('in now', 'now');
  return value;
}

/** What is offered first, by rule. @type {Record<string, string[]>} */
const FIRST = {
  retry_storm: ['retry', 'abort'],
  no_progress: ['pause', 'abort'],
  deadlock: ['abort'],
  starved: ['priority'],
  undecided: ['decide', 'retry', 'succeed', 'fail'],
  rollback_failed: ['retry-undo', 'skip-undo'],
  poison: ['retry', 'bypass'],
  quarantined: ['discharge'],
};

/** Where a verdict about no procedure leads to. @type {Record<string, string>} */
const WITHOUT_ONE = { undecided: 'All that ask', unacknowledged_failures: 'Failures' };

/** Who is to be looked at. @param {import('../types.js').Verdict} verdict */
const idOf = (verdict) => verdict.deadlock?.victim ?? verdict.procedure;

/** Where more is told. @param {import('../types.js').Verdict} verdict */
function pathOf(verdict) {
  const id = idOf(verdict);
  if (!id && verdict.rule === 'undecided') return listOf('reason:decision');
  if (verdict.rule === 'unacknowledged_failures') return 'failures';
  return !id ? 'engine' : verdict.deadlock ? `waits?id=${id}` : pageOf(id);
}

/** @param {{verdict: import('../types.js').Verdict}} props */
function Offers({ verdict }) {
  const id = idOf(verdict);
  const path = pathOf(verdict);
  if (!id) return html`<a class="button" href=${path}>${WITHOUT_ONE[verdict.rule] ?? 'Engine'}</a>`;
  const kind = verdict.facts.kind;
  return html`
    ${verdict.rule === 'retry_storm' && kind && html`<${PauseKind} kind=${kind} />`}
    <${Verbs} target=${{ id, kind }} only=${verdict.facts.parked === 'true' ? ['resume', 'bypass'] : (FIRST[verdict.rule] ?? [])} />
    <a class="button" href=${path}>${verdict.deadlock ? 'Show the circle' : html`Go to <${Plain} id=${id} />`}</a>`;
}

/** Where many fail alike, none of their kind is to begin. @param {{kind: string}} props */
function PauseKind({ kind }) {
  const may = useRights();
  const ask = useAsk();
  const verb = WIDE.pause;
  if (!verb || !may('operate')) return null;
  const open = () => ask({ verb, path: `kinds/${encodeURIComponent(kind)}/pause`, target: { id: kind, kind } });
  return html`<button type="button" title=${`No further stage of any ${kind} starts.`} onClick=${open}>Pause its kind…</button>`;
}

/** @param {{id: string}} props */
const Plain = ({ id }) => html`<span class="mono">${id}</span>`;

export function Attention() {
  const loaded = useLoad('attention', {}, { on: ['verdict', 'gauges'], pause: 1_500, filter: 'root:0' });
  const body = loaded.data;
  const verdicts = /** @type {import('../types.js').Verdict[]} */ (body?.verdicts ?? []);
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const { marked, mark } = useRows(verdicts, keyOf, idOf, (at) => list.current?.children[at]?.scrollIntoView({ block: 'nearest' }), (verdict) => go(pathOf(verdict)));
  return html`
    <div class="screen attention">
      <${Head} title="Attention" note=${verdicts.length > 0 && body.text} />
      <${Shown} loaded=${loaded}>
        ${body && html`
          <div class="tiles">${TILES.map((tile) => html`<${Tile} key=${tile.name} tile=${tile} body=${body} />`)}</div>
          ${verdicts.length === 0
            ? html`<p class="calm" role="status"><${Shape} shape="check" />Nothing needs you.</p>`
            : html`<ol class="verdicts" ref=${list}>${verdicts.map((verdict) => html`<${Verdict} key=${keyOf(verdict)} verdict=${verdict} isMarked=${keyOf(verdict) === marked} onMark=${() => mark(keyOf(verdict))} />`)}</ol>`}
          <${Pulse} body=${body} />`}
      <//>
    </div>`;
}
