// Many rows: the page is there at once, and holds no more of them than are seen.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, journey, many, shown, submit, until } from '../kit.mjs';

after(hook);

/** Milliseconds within which something useful is painted. */
const PAINTED = 1_000;
/** Rows of a table that may be in the document at once. */
const ROWS = 60;

const inDocument = (page) => page.getByRole('row').count();

journey('10,000 procedures: painted within a second, and scrolled through', async (page, go) => {
  await many({ wait: 'go' }, 10_000);
  for (const path of ['', 'procedures']) {
    await go(path);
    await shown(page, path ? 'Procedures' : 'Attention');
    // The paint that counts is of what was asked for, not of the frame around it.
    const time = await page.evaluate(() => new Promise((done) => {
      const useful = document.querySelector('main [role=row], main [role=status]');
      if (useful) requestAnimationFrame(() => setTimeout(() => done(performance.now())));
    }));
    const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime);
    const answered = await page.evaluate(() => Math.max(...performance.getEntriesByType('resource')
      .filter((entry) => entry.name.includes('/api/v1/') && !entry.name.includes('/events')).map((entry) => entry.responseEnd)));
    console.log(`# ${path || 'attention'}: first paint ${Math.round(paint)} ms, answered ${Math.round(answered)} ms, seen ${Math.round(time)} ms`);
    assert.ok(paint < PAINTED, `first paint after ${paint} ms`);
    assert.ok(answered < PAINTED, `answered after ${answered} ms`);
  }
  const table = page.getByRole('table', { name: 'Procedures' });
  assert.ok(await inDocument(page) < ROWS, 'only what is seen is in the document');
  let most = 0;
  await until(async () => {
    await table.evaluate((element) => { element.scrollTop = element.scrollHeight; });
    most = Math.max(most, await inDocument(page));
    return (await page.getByRole('main').getByRole('status').innerText()).startsWith('10,000 rows · 10,000 scanned');
  }, 'all rows were scrolled to');
  assert.ok(most < ROWS, `${most} rows were in the document`);
  await page.getByText('10,000 rows are shown at most. Narrow the filter.').waitFor();
});

journey('a family of 5,000 opens folded', async (page, go) => {
  const id = await submit({ children: 4_999 });
  await go(`procedures/${id}`);
  await shown(page, /^job v1/);
  const tree = page.getByRole('treegrid', { name: 'Family and timeline' });
  await tree.getByText('5,000 members').waitFor();
  const group = tree.getByRole('row').filter({ hasText: 'job × 4,999' });
  await group.getByText('4,999 waiting').waitFor();
  // Measured in a build for release: under one second (docs/internals/testing.md).
  console.log(`# a family of 5,000: seen ${Math.round(await page.evaluate(() => performance.now()))} ms after its page was asked for`);
  assert.equal(await group.getAttribute('aria-expanded'), 'false');
  assert.equal(await tree.getByRole('row').count(), 2);
  await group.getByRole('button', { name: 'Unfold' }).click();
  await becomes(() => tree.getAttribute('aria-rowcount'), '5001');
  assert.ok(await tree.getByRole('row').count() < ROWS, 'only what is seen is in the document');
  const bars = await page.evaluate(async (of) => (await (await fetch(`api/v1/procedures/${of}/timeline?bars=5000`)).json()).items.length, id);
  assert.ok(bars <= 5_000, `${bars} bars`);
  await group.getByRole('button', { name: 'Fold' }).click();
  await becomes(() => tree.getByRole('row').count(), 2);
});
