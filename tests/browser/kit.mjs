// What all journeys share: the world behind the page, and a page that fails the test on any error.

import { mkdirSync } from 'node:fs';
import { test } from 'node:test';
import { chromium } from 'playwright-core';

const SITE = process.env.PROCESSION_SITE;
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
  while (life < wanted) {
    await tell({ do: 'truth' }).catch(() => {});
  }
}

export const fresh = () => next('fresh');
export const restart = () => next('restart');
export const truth = () => tell({ do: 'truth' });
export const pass = (ms) => tell({ do: 'pass', ms });
export const signal = (id, event) => tell({ do: 'signal', id, event });
export const submit = (act, { kind = 'job', key = null } = {}) => tell({ do: 'submit', kind, act, key });
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

let browser;

/**
 * A journey on an empty journal, in a browser of its own state. A console error, an error of the page, or
 * anything that the content security policy stops, fails it.
 * @param {string} name
 * @param {(page: import('playwright-core').Page, go: Function) => Promise<void>} walk
 * @param {object} options of the browser's context; `mount`: who looks; `expected`: errors that belong to the journey
 */
export function journey(name, walk, { mount = 'all', expected = /^$/, ...options } = {}) {
  test(name, async () => {
    browser ??= await chromium.launch({
      executablePath: process.env.PROCESSION_CHROMIUM,
      // Chromium refuses its own sandbox to root, as who a container mostly runs.
      args: process.getuid() === 0 ? ['--no-sandbox'] : [],
    });
    await fresh();
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    const errors = [];
    const note = (text) => expected.test(text) || errors.push(text);
    page.on('pageerror', (error) => note(`page: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') note(`console: ${message.text()}`);
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
      mkdirSync(PICTURES, { recursive: true });
      await page.screenshot({ path: `${PICTURES}${name.replace(/\W+/g, '-')}.png` }).catch(() => {});
      if (errors.length > 0) error.message += `\n${errors.join('\n')}`;
      throw error;
    } finally {
      await context.close();
    }
  });
}

/** Closes the browser; each file of journeys calls it once. */
export function after(hook) {
  hook(async () => browser?.close());
}
