// Makes the pictures of docs/pictures/ from a real run of examples/dashboard.rs:
//
//     cargo build --all-features --example dashboard
//     (cd tests/browser && npm ci && node pictures.mjs)
//
// CHROMIUM names another browser than chromium-headless-shell.

import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const at = (path) => new URL(`../../${path}`, import.meta.url).pathname;
const FOLDER = at('docs/pictures/');
/** How long the example runs before it is looked at, in milliseconds: retries and a rollback take theirs. */
const AGE = 45_000;

const engine = spawn(at('target/debug/examples/dashboard'), ['--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
let address;
for await (const line of createInterface({ input: engine.stdout })) {
  address = line.match(/http:\S+/)?.[0];
  if (address) break;
}
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
  await picture('attention', '', 'dark');
  const family = process.argv[2] ?? '2.0';
  await picture('procedure', `procedures/${family}`, 'dark');
  await picture('procedures', 'procedures', 'light');
  await picture('waits', 'waits', 'light', 560);
} finally {
  await browser.close();
  engine.kill('SIGINT');
}
