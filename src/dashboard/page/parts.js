/** Small things that every screen shows: states, times, ids, sentences. */
import { html, useState } from './dom.js';
import { now, useNow } from './clock.js';
import { pageOf } from './router.js';
import { standing } from './states.js';
import { absolute, age, hour } from './words.js';

/** Shapes of states, in a square of 16. @type {Record<string, string>} */
const SHAPES = {
  run: 'M5 3.2v9.6l8-4.8z',
  dots: 'M2.5 8a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M6.5 8a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0M10.5 8a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0',
  lock: 'M5 7V5a3 3 0 0 1 6 0v2h1v6.5H4V7zm1.6 0h2.8V5a1.4 1.4 0 0 0-2.8 0z',
  gate: 'M3 3h1.7v10H3zm8.300 0H13v10h-1.700zM5.500 7.200h5v1.600h-5z',
  tree: 'M7.200 2.500h1.600v3.700h4.400v3.300h-1.600V7.800H4.400v1.700H2.800V6.200h4.400zM2.200 10.500h2.800v3H2.200zm4.400 0h2.800v3H6.600zm4.400 0h2.800v3H11zM7.200 7.500h1.600v3H7.200z',
  hand: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2m0 1.600a4.400 4.400 0 1 0 0 8.800a4.400 4.400 0 0 0 0-8.800M8 6a2 2 0 1 1 0 4a2 2 0 0 1 0-4',
  clock: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2m0 1.600a4.400 4.400 0 1 0 0 8.800a4.400 4.400 0 0 0 0-8.800M7.300 4.800h1.500v2.900l2 1.200l-.8 1.300l-2.700-1.600z',
  retry: 'M8 2.500a5.500 5.500 0 0 1 4.500 2.300V2.600H14v5H9.200V6.100h2.200A4 4 0 1 0 12 8.800l1.500.300A5.500 5.500 0 1 1 8 2.500',
  undo: 'M6.300 2.800v2.700H9a4.300 4.300 0 0 1 0 8.600H4.500v-1.600H9a2.700 2.700 0 0 0 0-5.400H6.300v2.700L2 6.300z',
  warn: 'M8 1.800l6.600 12H1.400zM7.200 6v4h1.600V6zm0 5v1.600h1.600V11z',
  cross: 'M4.200 3l3.800 3.800L11.800 3L13 4.200L9.200 8l3.800 3.800l-1.200 1.200L8 9.200L4.200 13L3 11.800L6.800 8L3 4.200z',
  check: 'M13.500 4.400L6.600 12.200L2.500 8.400l1.100-1.200l2.900 2.700l5.800-6.600z',
  pause: 'M4 3h2.800v10H4zm5.200 0H12v10H9.200z',
};

/** @param {{shape: string}} props */
export const Shape = ({ shape }) => html`
  <svg class="shape" viewBox="0 0 16 16" aria-hidden="true"><path d=${SHAPES[shape] ?? SHAPES.dots} fill-rule="evenodd" /></svg>`;

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

/** A procedure's id, which leads to its page. @param {{id: string, tab?: string}} props */
export const Id = ({ id, tab }) => html`<a class="id" href=${pageOf(id, tab)}>${id}</a>`;

const ID = /\b(\d+\.\d+)\b(?!\s*(?:ms|s|%|KiB|MiB|GiB)\b)/g;

/** A sentence of the engine's, with the ids in it as links. @param {{text: string, self?: string}} props */
export function Linked({ text, self }) {
  const parts = text.split(ID);
  return parts.map((part, at) => (at % 2 === 1 && part !== self ? html`<${Id} id=${part} />` : part));
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
  const [done, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    set(true);
    window.setTimeout(() => set(false), 1_500);
  };
  return html`<button class="plain" type="button" title="Copy the id (y)" aria-label=${`Copy ${text}`} onClick=${copy}>${done ? 'copied' : 'copy'}</button>`;
}

/** Saves a text as a file. @param {string} name @param {string} text */
export function download(name, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text, '\n'], { type: 'application/json' }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
