// How much a browser loads for the page, and how early it shows something.

import assert from 'node:assert/strict';
import { after as hook, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { after, journey, shown, SITE, until } from '../kit.mjs';

after(hook);

/** Bytes of the first screen's files in all, as they are sent. */
const MOST = 60_000;
/** Requests until the first screen is there, those to the API left out. */
const FILES = 5;

test('the page is under 60 KB compressed, in five files', async () => {
  const index = await (await fetch(`${SITE}/all/`)).text();
  // What scripts import is named in the page, too: a test of the program holds it to that.
  const named = [...new Set([...index.matchAll(/(?:src|href)="([^"]+\.(?:js|css|svg))"/g)].map(([, path]) => path))];
  assert.ok(named.includes('page.js') && named.includes('page.css'), 'files are found');
  const sizes = await Promise.all(named.map(async (path) => {
    // Without a list of its own, fetch sends that it takes gzip, and says so of the answer.
    const reply = await fetch(`${SITE}/all/${path}`);
    assert.equal(reply.headers.get('content-encoding'), 'gzip', path);
    return gzipSync(await reply.text()).length;
  }));
  const size = sizes.reduce((sum, one) => sum + one, index.length);
  console.log(`# ${size} bytes in ${named.length + 1} files`);
  assert.ok(size < MOST, `${size} bytes`);
  assert.ok(named.length + 1 <= FILES, named.join());
});

journey('the first text needs nothing but the page itself', async (page) => {
  /** Everything else waits until the first text is seen. @type {(() => void)[]} */
  const held = [];
  let isHeld = true;
  await page.route(/\.(js|css|svg)$/, async (route) => {
    if (isHeld) await new Promise((done) => { held.push(() => done(undefined)); });
    await route.continue();
  });
  await page.goto(`${SITE}/all/`, { waitUntil: 'commit' });
  const first = () => page.evaluate(() => performance.getEntriesByName('first-contentful-paint').length);
  await until(first, 'a first paint');
  assert.equal(await page.locator('#page').innerText(), 'Reading the engine …');
  assert.ok(held.length >= 3, 'script and styles have not arrived');
  isHeld = false;
  for (const release of held) release();
  await shown(page, 'Attention');
});
