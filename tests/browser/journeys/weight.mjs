// How much a browser loads for the page.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { SITE } from '../kit.mjs';

/** Bytes of the page in all, each file compressed for itself. */
const MOST = 100_000;

test('the page is under 100 KB compressed', async () => {
  const text = async (path) => (await fetch(`${SITE}/all/${path}`)).text();
  const index = await text('');
  // What scripts import is named in the page, too: a test of the program holds it to that.
  const named = [...index.matchAll(/(?:src|href)="([^"]+\.(?:m?js|css|svg))"/g)].map(([, path]) => path);
  assert.ok(named.includes('app.js') && named.includes('vendor/dagre.mjs') && named.includes('css/base.css'), 'files are found');
  const sizes = await Promise.all(named.map(async (path) => gzipSync(await text(path)).length));
  const size = sizes.reduce((sum, one) => sum + one, gzipSync(index).length);
  console.log(`# ${size} bytes in ${named.length + 1} files`);
  assert.ok(size < MOST, `${size} bytes`);
});
