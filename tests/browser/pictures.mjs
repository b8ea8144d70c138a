// Makes the pictures of docs/pictures/ from real runs of the demo: of `procession demo --trouble`, and of a shop that has
// been open for an hour, since charts are of an hour:
//
//     cargo build
//     (cd tests/browser && npm ci && node pictures.mjs)
//
// ONLY, a regular expression, makes those alone whose names match; without pictures of the shop it takes a minute.
// SHOP names the directory of a shop that has been open already, by `procession demo --serve --data DIRECTORY`, and goes on.
// CHROMIUM names another browser than chromium-headless-shell, PROGRAM another place of the program. With
// FOLDER the pictures of all screens go there, dark and light, and none into docs/.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const at = (path) => new URL(`../../${path}`, import.meta.url).pathname;
const FOLDER = process.env.FOLDER ? `${process.env.FOLDER}/` : at('docs/pictures/');
const ONLY = new RegExp(process.env.ONLY ?? '');
/** How long a demo runs before it is looked at, in milliseconds: retries and a rollback take theirs. */
const AGE = 45_000;
/** And a shop whose charts are looked at. */
const HOUR = 3_600_000;

const HOME = mkdtempSync(join(tmpdir(), 'procession-pictures-'));
const PROGRAM = process.env.PROGRAM ?? at('target/debug/procession');
const FAMILY = process.argv[2] ?? 'delivery-1';

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell',
  args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
mkdirSync(FOLDER, { recursive: true });

/**
 * Runs a demo, and looks at it once it is old enough.
 * @param {string[]} words @param {string} data @param {number} age @param {(address: string) => Promise<void>} look
 */
async function demo(words, data, age, look) {
  const engine = spawn(PROGRAM, ['demo', ...words, '--port', '0', '--data', data], { stdio: ['ignore', 'ignore', 'pipe'] });
  const said = createInterface({ input: engine.stderr });
  /** @type {string} */
  const address = await new Promise((found) => said.on('line', (line) => {
    const [heard] = line.match(/http:\S+\/(?=\s)/) ?? [];
    if (heard) found(heard);
  }));
  try {
    await new Promise((done) => setTimeout(done, age));
    await look(address);
  } finally {
    engine.kill('SIGINT');
    await new Promise((done) => engine.once('exit', done));
  }
}

/**
 * @typedef {object} Picture
 * @property {string} name
 * @property {(ask: (path: string) => Promise<any>) => string | Promise<string>} path
 * @property {'dark' | 'light'} theme
 * @property {number} [height]
 */

/** @param {string} address @param {Picture} picture */
async function take(address, { name, path, theme, height = 760 }) {
  const context = await browser.newContext({ viewport: { width: 1280, height }, colorScheme: theme });
  const page = await context.newPage();
  const ask = (/** @type {string} */ of) => fetch(`${address}api/v1/${of}`).then((reply) => reply.json());
  await page.goto(address + await path(ask));
  await page.getByRole('main').waitFor();
  await page.waitForLoadState('load');
  await page.getByText('live', { exact: true }).first().waitFor();
  await page.waitForTimeout(1_500);
  await page.screenshot({ path: `${FOLDER}${name}.png` });
  await context.close();
}

/** Of the trouble. @type {Picture[]} */
const TROUBLE = [
  { name: 'attention', path: () => '', theme: 'dark' },
  { name: 'procedure', path: () => `procedures/${FAMILY}`, theme: 'dark' },
  { name: 'procedures', path: () => 'procedures', theme: 'light' },
  { name: 'waits', path: () => 'waits', theme: 'light', height: 560 },
];

/** The newest attempt of an order that the bank or the carrier has refused, opened with what it logged. @type {Picture['path']} */
async function refused(ask) {
  const { items } = await ask('procedures?filter=kind:order%20state:rolledback&order=newest&limit=100');
  for (const { id } of items) {
    const { items: entries } = await ask(`procedures/${id}/history?limit=100`);
    const entry = entries.find((/** @type {any} */ each) => each.ending === 'fail' && each.stage !== 'Reserve');
    if (entry) return `procedures/${id}?tab=history&entry=${entry.number}`;
  }
  throw new Error('no order was refused: let the shop be open for longer');
}

/** Of the shop. @type {Picture[]} */
const SHOP = [
  { name: 'charts', path: () => 'kinds/charts?kind=order', theme: 'light' },
  { name: 'logs', path: refused, theme: 'dark' },
  { name: 'stages', path: () => 'kinds?stages=order', theme: 'light', height: 560 },
];

/** All screens, to be looked at. @param {string} address @returns {Promise<Picture[]>} */
async function everything(address) {
  const api = (path, body) => fetch(`${address}api/v1/${path}`, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', 'x-procession': '1' } }).then((reply) => reply.json());
  const filter = 'kind:pick,delivery';
  const { revision } = await api('bulk/retry?dry_run=true', { filter, reason: 'a look' });
  const bulk = await api('bulk/retry', { filter, reason: 'a look', expected: revision });
  const paths = ['', 'failures', 'procedures', 'waits', 'limits', 'kinds', 'kinds?stages=payment', 'kinds/charts', 'engine', 'audit', `procedures/${FAMILY}`, `procedures/${FAMILY}?tab=history`, `procedures/${bulk.id}`];
  const themes = /** @type {const} */ (['dark', 'light']);
  return themes.flatMap((theme) => paths.map((path) => ({ name: `${path.replace(/\W+/g, '-') || 'attention'}-${theme}`, path: () => path, theme })));
}

/** @param {Picture[]} pictures */
const wanted = (pictures) => pictures.filter(({ name }) => ONLY.test(name));

/** @param {Picture[]} pictures */
const album = (pictures) => async (/** @type {string} */ address) => {
  for (const picture of pictures) await take(address, picture);
};

try {
  if (process.env.FOLDER) {
    await demo(['--trouble'], join(HOME, 'trouble'), AGE, async (address) => album(wanted(await everything(address)))(address));
  } else {
    const [trouble, shop] = [wanted(TROUBLE), wanted(SHOP)];
    const open = process.env.SHOP;
    await Promise.all([
      trouble.length > 0 && demo(['--trouble'], join(HOME, 'trouble'), AGE, album(trouble)),
      shop.length > 0 && demo(['--serve'], open ?? join(HOME, 'shop'), open ? AGE : HOUR, album(shop)),
    ]);
  }
} finally {
  await browser.close();
  rmSync(HOME, { recursive: true, force: true });
}
