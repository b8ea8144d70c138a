// What all journeys share: the world behind the page, and a page that fails the test on any error.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { test } from 'node:test';
import { chromium } from 'playwright-core';

export const SITE = process.env.PROCESSION_SITE;
const PICTURES = new URL('../../target/browser/', import.meta.url).pathname;
/** How long a page may take for anything, in milliseconds: far longer than it does. */
const PATIENCE = 15_000;

let life = 0;

/**
 * Tells the world something; waits until it is done, and shown.
 * @param {object} order
 */
export async function tell(order) {
  const reply = await fetch(`${SITE}/control`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(order),
  });
  const body = await reply.json();
  if (!reply.ok) throw new Error(`${JSON.stringify(order)}: ${body.error}`);
  life = body.life;
  return body.value;
}

/**
 * Ends the engine's life and waits for the next.
 * @param {'fresh' | 'restart'} how
 */
async function next(how) {
  const wanted = await tell({ do: how });
  // Between two lives nobody answers. A world that has ended does not come again, so this ends too.
  await until(async () => {
    await tell({ do: 'truth' }).catch(() => {});
    return life >= wanted;
  }, `the engine's life ${wanted}`);
}

export const fresh = () => next('fresh');
export const restart = () => next('restart');
export const truth = () => tell({ do: 'truth' });
export const past = (id) => tell({ do: 'history', id });
/** What stuck undos trip over is repaired, until the journey ends. */
export const repair = () => tell({ do: 'repair' });
export const pass = (ms) => tell({ do: 'pass', ms });
export const signal = (id, event) => tell({ do: 'signal', id, event });
export const submit = (act, { kind = 'job', key = null, trace = null, labels = {} } = {}) => tell({ do: 'submit', kind, act, key, trace, labels });
/** Audits a small root on which the package bash was changed. */
export const audit = () => tell({ do: 'audit' });
export const reinstall = (/** @type {string} */ name) => tell({ do: 'reinstall', package: name });
/** The lines of the audit's report. */
export const report = () => tell({ do: 'report' });
export const album = (more = 0) => tell({ do: 'album', more });
export const stream = (more) => tell({ do: 'stream', more });
export const sets = () => tell({ do: 'sets' });
/** Starts a saga; gives its id once it rests or has ended. */
export const saga = (/** @type {string} */ machine, /** @type {object} */ params) => tell({ do: 'saga', machine, params });
export const schedule = () => tell({ do: 'schedule' });
export const many = (act, count) => tell({ do: 'many', act, count });

/**
 * Asks the API as a page would.
 * @param {string} path
 * @param {{mount?: string, body?: object, headers?: object}} how
 */
export async function api(path, { mount = 'all', body, headers = {} } = {}) {
  const written = body === undefined ? {} : {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', 'x-procession': '1', ...headers },
  };
  const reply = await fetch(`${SITE}/${mount}/api/v1/${path}`, { headers, ...written });
  return { status: reply.status, body: await reply.json() };
}

/**
 * Asks until the answer is yes: tests wait for what is to be, and never for a time.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {string} what is waited for, in the error's words
 * @returns {Promise<T>} the answer
 */
export async function until(ask, what) {
  const end = performance.now() + PATIENCE;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (performance.now() > end) throw new Error(`this never came to be: ${what}`);
    await new Promise((done) => { setTimeout(done, 20); });
  }
}

/**
 * Asks until the answer is the one that is wanted; fails with how they differ.
 * @param {() => Promise<any>} ask
 * @param {any} wanted
 */
export async function becomes(ask, wanted) {
  const end = performance.now() + PATIENCE;
  for (;;) {
    try {
      return assert.deepEqual(await ask(), wanted);
    } catch (error) {
      if (performance.now() > end) throw error;
    }
    await new Promise((done) => { setTimeout(done, 20); });
  }
}

/**
 * Waits until something is seen, while the engine's clock goes on: a stream tells of a row ten times a second at most by
 * that clock, so the second of two changes is not told while it stands.
 * @param {import('playwright-core').Locator} locator
 */
export const comes = (locator) => until(async () => {
  await pass(100);
  return locator.isVisible();
}, `${locator} is seen`);

/** The screens: where each is, its letter behind `g`, and its title. */
export const SCREENS = [
  { path: '', letter: 'a', title: 'Attention' },
  { path: 'failures', letter: 'x', title: 'Failures' },
  { path: 'procedures', letter: 'p', title: 'Procedures' },
  { path: 'flows', letter: 'f', title: 'Sets and streams' },
  { path: 'waits', letter: 'w', title: 'Locks and waits' },
  { path: 'limits', letter: 'l', title: 'Limits' },
  { path: 'kinds', letter: 'k', title: 'Kinds' },
  { path: 'engine', letter: 'e', title: 'Engine' },
  { path: 'audit', letter: 'u', title: 'Audit' },
];

/**
 * Waits until a screen is there, and shows something that it has read.
 * @param {import('playwright-core').Page} page
 * @param {string | RegExp} title
 */
export async function shown(page, title) {
  await page.getByRole('heading', { level: 1, name: title }).waitFor();
  await until(async () => !(await page.getByRole('main').innerText()).includes('Reading '), `${title} is read`);
}

/**
 * The rows of a table that are on the screen, as text by the titles of their columns.
 * @param {import('playwright-core').Page} page
 * @param {string} name
 * @returns {Promise<Record<string, string>[]>}
 */
export async function rows(page, name) {
  // One step: a table that is left by its last row between two steps would be waited for.
  return page.getByRole('table', { name, exact: true }).evaluateAll(([element]) => {
    if (!element) return [];
    const texts = (row, role) => [...row.querySelectorAll(`[role=${role}]`)].map((cell) => cell.innerText.replace(/\s+/g, ' ').trim());
    const titles = texts(element, 'columnheader');
    const all = [...element.querySelectorAll('[role=row]')].filter((row) => row.querySelector('[role=cell]'));
    return all.map((row) => Object.fromEntries(texts(row, 'cell').map((text, at) => [titles[at], text])));
  });
}

/**
 * Rows as a list shows them: the newest family first, its members in their order.
 * @template {{id: string}} T
 * @param {T[]} all
 */
export const newest = (all) => [...all].sort((one, other) => parseInt(other.id, 10) - parseInt(one.id, 10));

/**
 * What a description list says: its terms, each with its words.
 * @param {import('playwright-core').Page} page
 * @returns {Promise<Record<string, string>>}
 */
export const facts = (page) => page.getByRole('main').evaluate((main) => Object.fromEntries(
  [...main.querySelectorAll('dt')].map((term) => [term.innerText, term.nextElementSibling?.textContent ?? ''])));

/**
 * Everything on the screen that has a digit in it, by where it stands: the column of a table, the term of a
 * description list, or the nearest thing with a name.
 * @param {import('playwright-core').Page} page
 * @returns {Promise<Record<string, string[]>>}
 */
export const figures = (page) => page.getByRole('main').evaluate((main) => {
  /** @type {Record<string, string[]>} */
  const found = {};
  const text = (element) => (element?.innerText ?? element?.textContent ?? '').replace(/\s+/g, ' ').trim();
  const place = (element) => {
    const cell = element.closest('[role=cell], td, tbody th');
    if (cell) {
      const table = cell.closest('[role=table], table');
      const title = table.querySelectorAll('[role=columnheader], thead th')[[...cell.parentElement.children].indexOf(cell)];
      return [cell, `${table.getAttribute('aria-label') ?? table.closest('[aria-label]')?.getAttribute('aria-label') ?? ''}: ${text(title)}`];
    }
    const fact = element.closest('dd, dt');
    if (fact) return [fact, text(fact.tagName === 'DD' ? fact.previousElementSibling : fact)];
    const named = element.closest('[role=status], [role=row], a, button, li, h1, p, figcaption, [aria-label]');
    const list = named.closest('li[class]')?.className.split(' ')[0];
    const name = named.getAttribute('role') ?? (String(named.className?.baseVal ?? named.className).split(' ')[0] || named.tagName.toLowerCase());
    return [named, list && list !== name ? `${list}: ${name}` : name];
  };
  const note = ([element, name], said) => {
    if (!/\d/.test(said)) return;
    found[name] ??= [];
    if (element.noted !== name) found[name].push(said);
    element.noted = name;
  };
  for (const element of main.querySelectorAll('*')) delete element.noted;
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: parent, data } = walker.currentNode;
    if (/\d/.test(data) && parent.checkVisibility()) {
      const where = place(parent);
      note(where, text(where[0]));
    }
  }
  for (const element of main.querySelectorAll('[role=img], input, [role=meter], [role=progressbar]')) {
    const said = element.tagName === 'INPUT' ? element.value : `${element.getAttribute('aria-label')} ${element.getAttribute('aria-valuenow') ?? ''}`;
    note([element, element.getAttribute('aria-label')?.replace(/:.*/, '') ?? element.tagName.toLowerCase()], said);
  }
  return found;
});

/** Its figures were compared in other words. */
export const SAID = Symbol('said');

/**
 * Compares all figures of a screen, wherever they stand: one that nobody compared fails.
 * @param {import('playwright-core').Page} page
 * @param {Record<string, string[] | typeof SAID>} wanted by where they stand; `SAID` where they were compared before
 */
export async function covers(page, wanted) {
  const found = await figures(page);
  const open = Object.keys(found).filter((place) => !(place in wanted));
  assert.deepEqual(open, [], `nothing compares these figures with the engine: ${JSON.stringify(open.map((place) => [place, found[place]]))}`);
  for (const [place, texts] of Object.entries(wanted)) {
    if (texts !== SAID) assert.deepEqual(found[place] ?? [], texts, place);
  }
}

/** An age as a page says it. @param {number} ms */
export function age(ms) {
  const pairs = [[86_400, 'd', 3_600, 'h'], [3_600, 'h', 60, 'm'], [60, 'm', 1, 's']];
  const seconds = Math.floor(ms / 1_000);
  for (const [great, unit, small, other] of pairs) {
    if (seconds < great) continue;
    const rest = Math.floor((seconds % great) / small);
    return `${Math.floor(seconds / great)} ${unit}${rest ? ` ${rest} ${other}` : ''}`;
  }
  return seconds ? `${seconds} s` : 'now';
}

/** A time that something took, as a page says it. @param {number} ms */
export const took = (ms) => (ms < 1_000 ? `${Math.round(ms)} ms` : ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : age(ms));

/** A size as a page says it. @param {number} size */
export function bytes(size) {
  const [unit, times] = size >= 2 ** 30 ? ['GiB', 2 ** 30] : size >= 2 ** 20 ? ['MiB', 2 ** 20] : size >= 2 ** 10 ? ['KiB', 2 ** 10] : ['B', 1];
  const number = size / times;
  return `${times === 1 || number >= 100 ? Math.round(number) : number.toFixed(1)} ${unit}`;
}

/**
 * The dialog that is open.
 * @param {import('playwright-core').Page} page
 * @param {string | RegExp} name
 */
export const dialog = (page, name) => page.getByRole('dialog', { name });

/**
 * Goes all the way of an action: its plan, a reason, what else it asks for, and its end.
 * @param {import('playwright-core').Page} page
 * @param {string | RegExp} name of the dialog
 * @param {string} button that does it
 * @param {{reason?: string, typed?: string}} given
 */
export async function act(page, name, button, { reason = 'a journey', typed } = {}) {
  const open = dialog(page, name);
  await open.getByRole('textbox', { name: 'Reason' }).fill(reason);
  if (typed) await open.getByRole('textbox', { name: 'Type' }).fill(typed);
  await open.getByRole('button', { name: button, exact: true }).click();
  await open.getByText('It is done').waitFor();
  // What lives in memory alone is read twice a second at most, by the engine's clock.
  await pass(1_000);
  await open.getByRole('button', { name: 'Close' }).last().click();
  await open.waitFor({ state: 'detached' });
}

/**
 * Keeps how a page looks when a journey fails. That none can be taken is no further failure.
 * @param {import('playwright-core').Page} page
 * @param {string} name
 */
export async function picture(page, name) {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: `${PICTURES}${name.replace(/\W+/g, '-')}.png` }).catch(() => {});
}

let browser;

/**
 * A journey on an empty journal, in a browser of its own state. A console error, an error of the page, or
 * anything that the content security policy stops, fails it.
 * @param {string} name
 * @param {(page: import('playwright-core').Page, go: Function) => Promise<void>} walk
 * @param {object} options of the browser's context; `mount`: who looks; `expected`: errors that belong to the journey;
 *   `still`: the page's own clock stands, so that ages are exact
 */
export function journey(name, walk, { mount = 'all', expected = /^$/, still = false, ...options } = {}) {
  test(name, async () => {
    browser ??= await chromium.launch({
      executablePath: process.env.PROCESSION_CHROMIUM,
      // Chromium refuses its own sandbox to root, as who a container mostly runs.
      args: process.getuid() === 0 ? ['--no-sandbox'] : [],
    });
    await fresh();
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: 'UTC', ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    if (still) await page.clock.setFixedTime('2026-03-01T10:00:00Z');
    const errors = [];
    const note = (text) => expected.test(text) || errors.push(text);
    page.on('pageerror', (error) => note(`page: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') note(`console: ${message.text()} ${message.location().url}`);
    });
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
      });
    });
    const go = (path = '') => page.goto(`${SITE}/${mount}/${path}`);
    try {
      await walk(page, go);
      if (errors.length > 0) throw new Error(errors.join('\n'));
    } catch (error) {
      await picture(page, name);
      if (errors.length > 0) error.message += `\n${errors.join('\n')}`;
      throw error;
    } finally {
      await context.close();
    }
  });
}

/**
 * Lets a journey speak in the place of a page's stream of events, whose server goes on to write pings. Call it before the
 * page is loaded; what it returns tells how the engine stands.
 * @param {import('playwright-core').Page} page
 */
export async function speaker(page) {
  await page.addInitScript(() => {
    /** @type {EventSource[]} */
    const streams = [];
    let isTold = false;
    window.EventSource = class extends EventSource {
      /** @param {ConstructorParameters<typeof EventSource>} how */
      constructor(...how) {
        super(...how);
        streams.push(this);
        // What the server says of the engine is not heard any more, as it would contradict.
        this.addEventListener('engine', (event) => {
          if (isTold && event.isTrusted) event.stopImmediatePropagation();
        });
      }
    };
    window.addEventListener('as-the-stream', (event) => {
      const engine = /** @type {CustomEvent<string>} */ (event).detail;
      isTold = true;
      streams.at(-1)?.dispatchEvent(new MessageEvent('engine', { data: JSON.stringify({ engine }) }));
    });
  });
  return (/** @type {string} */ engine) => stands(page, engine);
}

/** Tells a page of a [`speaker`] how the engine stands. @param {import('playwright-core').Page} page @param {string} engine */
export const stands = (page, engine) => page.evaluate((word) => window.dispatchEvent(new CustomEvent('as-the-stream', { detail: word })), engine);

/** Closes the browser; each file of journeys calls it once. */
export function after(hook) {
  hook(async () => browser?.close());
}
