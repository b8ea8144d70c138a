/** The keyboard: every screen, every row and every action can be reached with it. */
import { go } from './router.js';

/**
 * @typedef {object} Rows
 * @property {(steps: number) => void} move
 * @property {() => void} open
 * @property {() => string|null} id
 */

/** @type {Rows[]} */
const lists = [];

/** The newest list has the keys until it goes. @param {Rows} rows */
export function takeKeys(rows) {
  lists.push(rows);
  return () => {
    const at = lists.indexOf(rows);
    if (at >= 0) lists.splice(at, 1);
  };
}

/** Screens by their letters. */
export const SCREENS = [
  { letter: 'a', path: '', name: 'Attention' },
  { letter: 'x', path: 'failures', name: 'Failures' },
  { letter: 'p', path: 'procedures', name: 'Procedures' },
  { letter: 'f', path: 'flows', name: 'Sets and streams' },
  { letter: 'w', path: 'waits', name: 'Locks and waits' },
  { letter: 'l', path: 'limits', name: 'Limits' },
  { letter: 'k', path: 'kinds', name: 'Kinds' },
  { letter: 'e', path: 'engine', name: 'Engine' },
  { letter: 'u', path: 'audit', name: 'Audit' },
];

/** @type {{keys: string, does: string}[]} */
export const KEYS = [
  { keys: '/', does: 'filter' },
  ...SCREENS.map(({ letter, name }) => ({ keys: `g ${letter}`, does: name })),
  { keys: 'j  k', does: 'next and previous row' },
  { keys: 'Enter', does: 'open the row' },
  { keys: '←  →', does: 'fold and unfold a family' },
  { keys: 'y', does: 'copy the id' },
  { keys: 't', does: 'dark or light' },
  { keys: '?', does: 'these keys' },
  { keys: 'Esc', does: 'close, or leave a field' },
];

let isGoing = 0;

/** @param {EventTarget|null} target */
function isWriting(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function pageId() {
  const found = /procedures\/(\d+(?:\.\d+)?)/.exec(location.pathname);
  return found?.[1] ?? null;
}

/** Copies a text; tells whether the browser has let it. @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // it was refused, or the page did not come by a safe way
  }
}

/** @param {{help: () => void, theme: () => void, say: (text: string) => void}} host */
export function startKeys(host) {
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && isWriting(event.target) && event.target instanceof HTMLElement) {
      event.target.blur();
      return;
    }
    const isBusy = event.metaKey || event.ctrlKey || event.altKey || isWriting(event.target) || document.querySelector('dialog[open]');
    if (isBusy || event.defaultPrevented) return;
    const rows = lists.at(-1);
    const screen = isGoing && Date.now() - isGoing < 1_500 ? SCREENS.find(({ letter }) => letter === event.key) : undefined;
    isGoing = 0;
    if (screen) {
      go(screen.path);
    } else if (event.key === 'g') {
      isGoing = Date.now();
    } else if (event.key === '/') {
      const field = document.querySelector('[data-filter]');
      if (!(field instanceof HTMLInputElement)) {
        go('procedures');
        window.setTimeout(() => /** @type {HTMLElement|null} */ (document.querySelector('[data-filter]'))?.focus(), 50);
      } else {
        field.focus();
        field.select();
      }
    } else if (event.key === 'j' || event.key === 'k') {
      rows?.move(event.key === 'j' ? 1 : -1);
    } else if (event.key === 'Enter' && !(event.target instanceof HTMLButtonElement) && !(event.target instanceof HTMLAnchorElement)) {
      rows?.open();
      return;
    } else if (event.key === 'y') {
      const id = rows?.id() ?? pageId();
      if (id) {
        copy(id).then((done) => host.say(done ? `${id} is copied` : `The browser does not let ${id} be copied`));
      }
    } else if (event.key === 't') {
      host.theme();
    } else if (event.key === '?') {
      host.help();
    } else {
      return;
    }
    event.preventDefault();
  });
}
