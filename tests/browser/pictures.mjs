// Makes the pictures of docs/pictures/ from a real run of `procession demo --trouble`:
//
//     cargo build
//     (cd tests/browser && npm ci && node pictures.mjs)
//
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
/** How long the demo runs before it is looked at, in milliseconds: retries and a rollback take theirs. */
const AGE = 45_000;

const HOME = mkdtempSync(join(tmpdir(), 'procession-pictures-'));
const PROGRAM = process.env.PROGRAM ?? at('target/debug/procession');

const engine = spawn(PROGRAM, ['demo', '--trouble', '--port', '0', '--data', join(HOME, 'shop')], { stdio: ['ignore', 'ignore', 'pipe'] });
let address;
const said = createInterface({ input: engine.stderr });
await new Promise((found) => said.on('line', (line) => {
  address ??= line.match(/http:\S+\/(?=\s)/)?.[0];
  if (address) found();
}));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell',
  args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
mkdirSync(FOLDER, { recursive: true });
await new Promise((done) => setTimeout(done, AGE));

/** @param {string} name @param {string} path @param {'dark' | 'light'} colorScheme */
async function picture(name, path, colorScheme, height = 760) {
  const context = await browser.newContext({ viewport: { width: 1280, height }, colorScheme });
  const page = await context.newPage();
  await page.goto(address + path);
  await page.getByRole('main').waitFor();
  await page.waitForLoadState('load');
  await page.getByText('live', { exact: true }).first().waitFor();
  await page.waitForTimeout(1_500);
  await page.screenshot({ path: `${FOLDER}${name}.png` });
  await context.close();
}

try {
  const family = process.argv[2] ?? 'delivery-1';
  if (process.env.FOLDER) {
    const api = (path, body) => fetch(`${address}api/v1/${path}`, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', 'x-procession': '1' } }).then((reply) => reply.json());
    const filter = 'kind:pick,delivery';
    const { revision } = await api('bulk/retry?dry_run=true', { filter, reason: 'a look' });
    const bulk = await api('bulk/retry', { filter, reason: 'a look', expected: revision });
    const screens = ['', 'procedures', 'waits', 'limits', 'kinds', 'engine', 'audit', `procedures/${family}`, `procedures/${family}?tab=history`, `procedures/${bulk.id}`];
    for (const theme of /** @type {const} */ (['dark', 'light'])) {
      for (const path of screens) await picture(`${path.replace(/\W+/g, '-') || 'attention'}-${theme}`, path, theme);
    }
  } else {
    await picture('attention', '', 'dark');
    await picture('procedure', `procedures/${family}`, 'dark');
    await picture('procedures', 'procedures', 'light');
    await picture('waits', 'waits', 'light', 560);
  }
} finally {
  await browser.close();
  engine.kill('SIGINT');
  await new Promise((done) => engine.once('exit', done));
  rmSync(HOME, { recursive: true, force: true });
}
