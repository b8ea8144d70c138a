/** The frame of the page: screens at the left, and how fresh all is. */
import { html, useEffect, useState } from './dom.js';
import { SCREENS } from './keys.js';
import { late } from './late.js';
import { useLive } from './live.js';
import { useLoad } from './load.js';
import { useWidth } from './width.js';
import { absolute, count, hour } from './words.js';
import { now } from './clock.js';

/** Goes from light to dark, and back. What is not as the system has it is kept for the next time. */
export function toggleTheme() {
  const element = document.documentElement;
  const theme = element.dataset.theme === 'dark' ? 'light' : 'dark';
  const isDarkSystem = matchMedia('(prefers-color-scheme: dark)').matches;
  element.dataset.theme = theme;
  try {
    if ((theme === 'dark') === isDarkSystem) localStorage.removeItem('procession.theme');
    else localStorage.setItem('procession.theme', theme);
  } catch {
    // It holds for this page, then.
  }
  dispatchEvent(new Event('themed'));
}

const Engines = late(() => import('./engines.js').then((script) => script.Engines));

/** Where the menu folds away, as the style has it, in pixels. */
const NARROW = 1_100;

/** @param {{path: string, me: import('./types.js').Me|null, onHelp: () => void}} props */
export function Rail({ path, me, onHelp }) {
  const here = path.split('/')[0] ?? '';
  const attention = useLoad('attention', {}, { on: ['verdict'], pause: 5_000 });
  const failures = unacknowledged(attention.data);
  const [isOpen, open] = useState(false);
  const isNarrow = useWidth(NARROW);
  useEffect(() => open(false), [path]);
  return html`
    <nav class=${`rail ${isOpen ? 'open' : ''}`} aria-label="Screens" onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Escape' && open(false)}>
      <a class="brand" href="./" title="What needs you"><span class="mark" aria-hidden="true"><i></i><i></i><i></i></span>Procession</a>
      ${isNarrow && html`<button type="button" class="unfold" aria-expanded=${isOpen} onClick=${() => open(!isOpen)}>${SCREENS.find((screen) => screen.path === here)?.name ?? 'Menu'}${failures && html` <span class="tag bad">${failures}</span>`} <span aria-hidden="true">▾</span></button>`}
      <ul>
        ${SCREENS.map(({ letter, path: to, name }) => html`
          <li key=${letter}><a href=${to || './'} aria-current=${here === to ? 'page' : undefined}><span>${name}${to === 'failures' && failures && html` <span class="tag bad" title="Failures that nobody has acknowledged">${failures}</span>`}</span><kbd>g ${letter}</kbd></a></li>`)}
      </ul>
      <${Fresh} engine=${me?.engine ?? 'live'} />
      <div class="who">
        ${me?.engines?.length ? html`<${Engines} engines=${me.engines} />` : ''}
        ${me && html`<p title=${`Rights: ${me.rights.join(', ')}`}><span class="dim">You are</span> <bdi>${me.who}</bdi>${me.rights.length === 1 && html`<span class="tag">read only</span>`}</p>`}
        <p class="switches">
          <button type="button" class="plain" onClick=${toggleTheme} title="Dark or light (t)">Theme</button>
          <button type="button" class="plain" onClick=${onHelp} title="Keys (?)">Keys</button>
        </p>
      </div>
    </nav>`;
}

/** How many failures nobody has acknowledged, as the verdict counts them. @param {any} body */
function unacknowledged(body) {
  const verdicts = /** @type {import('./types.js').Verdict[]} */ (body?.verdicts ?? []);
  const verdict = verdicts.find(({ rule }) => rule === 'unacknowledged_failures');
  return verdict ? `${count(Number(verdict.facts.unacknowledged))}${verdict.text.startsWith('more') ? '+' : ''}` : null;
}

/** Whether what is shown is live, and if not of when it is. @param {{engine: string}} props */
function Fresh({ engine }) {
  const { standing, read } = useLive();
  const at = read ? hour(read, now()) : '';
  const words = {
    live: ['live', 'What changes is shown as it changes.'],
    reconnecting: ['reconnecting', 'The stream of changes was cut, and is opened again.'],
    polling: ['every 5 s', 'There is no stream of changes; the page asks every five seconds.'],
    stale: [`as of ${at}`, `The engine does not answer. What is shown is of ${read ? absolute(read) : 'before'}.`],
  };
  const [word, help, look] = standing === 'live' && engine !== 'live' ? wordOf(engine) : [...words[standing], standing];
  return html`<p class=${`fresh ${look}`} role="status" title=${help}><span class="dot" aria-hidden="true"></span>${word}</p>`;
}

/** The state of an engine that is not live although the stream is open, in a word; the banner says it in a sentence. @param {string} engine */
function wordOf(engine) {
  const isWorking = engine === 'recovering' || engine === 'draining';
  const word = engine === 'silent' ? 'no answer' : engine.replace('_', ' ');
  return [word, sentenceOf(engine), isWorking ? 'polling' : 'stale'];
}

/** What the whole engine suffers from. @type {Record<string, string>} */
const ENGINE = {
  recovering: 'The engine is still reading what its journal holds. What is shown is not all yet.',
  draining: 'The engine drains: no new stage starts. What is left goes on at the next start.',
  journal_failed: 'The journal has failed: nothing more is committed. Restart the engine with room on a sound disk.',
  stopped: 'The engine has stopped. What is shown is how it stood.',
  silent: 'The engine does not answer in time. Its disk may not answer either.',
};

/** @param {string} engine */
const sentenceOf = (engine) => ENGINE[engine] ?? `The engine is ${engine}.`;

/** @param {{me: import('./load.js').Loaded}} props */
export function Banner({ me }) {
  const { standing, read } = useLive();
  const [closed, close] = useState('');
  const engine = me.data?.engine ?? 'live';
  const stale = standing === 'stale' && read
    ? `The dashboard does not answer. What is shown is as of ${hour(read, now())}; it is asked again every five seconds.` : '';
  const text = stale || (engine === 'live' ? '' : sentenceOf(engine));
  // A notice that was closed is shown again if it recurs.
  useEffect(() => { if (!text) close(''); }, [text]);
  if (!text || text === closed) return null;
  return html`<div class="banner" role="alert"><p>${text}</p><button type="button" class="plain" onClick=${() => close(text)}>Close</button></div>`;
}
