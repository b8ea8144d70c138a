/** Small things that every screen shows: states, times, ids, sentences. */
import { createContext, html, useContext, useState } from './dom.js';
import { now, useNow } from './clock.js';
import { copy } from './keys.js';
import { pageOf } from './router.js';
import { standing } from './states.js';
import { absolute, age, hour } from './words.js';

/** Shapes of states, in a square of 16. @type {Record<string, string>} */
const SHAPES = {
  run: 'M5 3.2v9.6l8-4.8z',
  dots: 'M2.5 8a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M6.5 8a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M10.5 8a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0',
  lock: 'M5 7V5a3 3 0 0 1 6 0v2h1v6.5H4V7zm1.6 0h2.8V5a1.4 1.4 0 0 0-2.8 0z',
  gate: 'M3 3h1.7v10H3zm8.3 0H13v10h-1.7zM5.5 7.2h5v1.6h-5z',
  tree: 'M7.2 2.5h1.6v3.7h4.4v3.3h-1.6V7.8H4.4v1.7H2.8V6.2h4.4zM2.2 10.5h2.8v3H2.2zm4.4 0h2.8v3H6.6zm4.4 0h2.8v3H11zM7.2 7.5h1.6v3H7.2z',
  hand: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2m0 1.6a4.4 4.4 0 1 0 0 8.8a4.4 4.4 0 0 0 0-8.8M8 6a2 2 0 1 1 0 4a2 2 0 0 1 0-4',
  clock: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2m0 1.6a4.4 4.4 0 1 0 0 8.8a4.4 4.4 0 0 0 0-8.8M7.3 4.8h1.5v2.9l2 1.2l-.8 1.3l-2.7-1.6z',
  retry: 'M8 2.5a5.5 5.5 0 0 1 4.5 2.3V2.6H14v5H9.2V6.1h2.2A4 4 0 1 0 12 8.8l1.5.3A5.5 5.5 0 1 1 8 2.5',
  undo: 'M6.3 2.8v2.7H9a4.3 4.3 0 0 1 0 8.6H4.5v-1.6H9a2.7 2.7 0 0 0 0-5.4H6.3v2.7L2 6.3z',
  warn: 'M8 1.8l6.6 12H1.4zM7.2 6v4h1.6V6zm0 5v1.6h1.6V11z',
  cross: 'M4.2 3l3.8 3.8L11.8 3L13 4.2L9.2 8l3.8 3.8l-1.2 1.2L8 9.2L4.2 13L3 11.8L6.8 8L3 4.2z',
  check: 'M13.5 4.4L6.6 12.2L2.5 8.4l1.1-1.2l2.9 2.7l5.8-6.6z',
  pause: 'M4 3h2.8v10H4zm5.2 0H12v10H9.2z',
};

/** The outline of a shape, for a drawing. @param {string} shape */
export const outline = (shape) => SHAPES[shape] ?? SHAPES.dots;

/** @param {{shape: string}} props */
export const Shape = ({ shape }) => html`
  <svg class="shape" viewBox="0 0 16 16" aria-hidden="true"><path d=${outline(shape)} fill-rule="evenodd" /></svg>`;

/** @param {{row: import('./types.js').Row}} props */
export function State({ row }) {
  const { word, tone, shape, help } = standing(row);
  return html`<span class="state ${tone}" title=${`${help} The engine's word is ${row.state}.`}><${Shape} shape=${shape} />${word}</span>`;
}

/** How long ago; date and zone on focus and hover; `stop`: the Tab key stops at it. @param {{time: string, label?: string, stop?: boolean}} props */
export function Ago({ time, label, stop }) {
  const at = useNow();
  const text = age(at - Date.parse(time));
  return html`<time datetime=${time} tabindex=${stop ? 0 : undefined} title=${`${label ? `${label} ` : ''}${absolute(time)}`}>${text}</time>`;
}

/** An instant: the time of day, and how far away it is. @param {{time: string, stop?: boolean}} props */
export function At({ time, stop }) {
  const at = useNow();
  const ahead = Date.parse(time) - at;
  const far = ahead > 0 ? `in ${age(ahead)}` : `${age(-ahead)} ago`;
  return html`<time datetime=${time} tabindex=${stop ? 0 : undefined} title=${absolute(time)}>${hour(time, at)} <span class="dim">(${far === 'in now' ? 'now' : far.replace('now ago', 'now')})</span></time>`;
}

/** The time of day alone. @param {{time: string, stop?: boolean}} props */
export const Hour = ({ time, stop }) => html`<time datetime=${time} tabindex=${stop ? 0 : undefined} title=${absolute(time)}>${hour(time, now())}</time>`;

/** Names of procedures, where they are known: they stand beside the ids. */
export const Names = createContext(/** @type {Map<string, string>} */ (new Map()));

/** A procedure's id, which leads to its page, and its name. @param {{id: string, tab?: string, bare?: boolean}} props */
export function Id({ id, tab, bare }) {
  const name = useContext(Names).get(id);
  const link = html`<a class="id" href=${pageOf(id, tab)}>${id}</a>`;
  return name && !bare ? html`${link} <bdi class="named" title=${name}>${name}</bdi>` : link;
}

const ID = /(?<![,.])\b(\d+\.\d+)\b(?!\s*(?:ms|s|%|KiB|MiB|GiB)\b)/g;

/** A sentence of the engine's, with the ids in it as links. @param {{text: string, self?: string}} props */
export function Linked({ text, self }) {
  const parts = text.split(ID);
  return html`<bdi>${parts.map((part, at) => (at % 2 === 1 && part !== self ? html`<${Id} id=${part} />` : part))}</bdi>`;
}

/** @param {{children?: import('./types.js').Node}} props */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** What could not be read, and what to do about it. @param {{error: import('./api.js').Problem, stale?: boolean}} props */
export const Trouble = ({ error, stale }) => html`
  <div class="trouble" role="alert">
    <strong>${error.message}</strong> ${error.remedy} ${stale && html`<span>What is shown is older.</span>`}
  </div>`;

/**
 * Shows what was read, or why there is nothing to show.
 * @param {{loaded: import('./load.js').Loaded, children?: import('./types.js').Node, what?: string}} props
 */
export function Shown({ loaded, children, what = 'the engine' }) {
  if (loaded.error && !loaded.data) return html`<${Trouble} error=${loaded.error} />`;
  if (!loaded.data) return html`<${Empty}>Reading ${what} …<//>`;
  // That nothing answers is said once, above the screen.
  const says = loaded.error && loaded.error.status !== 0;
  return html`${says && html`<${Trouble} error=${loaded.error} stale />`}${children}`;
}

/** The head of a screen. @param {{title: import('./types.js').Node, note?: import('./types.js').Node, children?: import('./types.js').Node}} props */
export const Head = ({ title, note, children }) => html`
  <header class="head">
    <h1>${title}</h1>
    ${note && html`<p class="note" role="status">${note}</p>`}
    <div class="tools">${children}</div>
  </header>`;

/** Copies an id. @param {{text: string}} props */
export function Copy({ text }) {
  const [said, say] = useState('copy');
  const press = async () => {
    say(await copy(text) ? 'copied' : 'refused');
    window.setTimeout(() => say('copy'), 1_500);
  };
  return html`<button class="plain" type="button" title="Copy the id (y)" aria-label=${`Copy ${text}`} onClick=${press}>${said}</button>`;
}

/** Saves a text as a file. @param {string} name @param {string} text */
export function download(name, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text, '\n'], { type: 'application/json' }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
