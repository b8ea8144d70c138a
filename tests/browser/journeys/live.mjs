// What changes is shown as it changes: streams, their ends, and engines that come and go.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, journey, many, pass, restart, rows, shown, signal, SITE, speaker, submit, truth, until } from '../kit.mjs';

after(hook);

const fresh = (page, word) => page.getByRole('navigation').getByRole('status').filter({ hasText: word }).waitFor();
const ids = async (page) => (await rows(page, 'Procedures')).map((row) => row.Id);
const streams = async () => (await (await fetch(`${SITE}/all/api/v1/engine`)).json()).streams;

/** Marks the document, so that a reload would be seen. */
const mark = (page) => page.evaluate(() => { document.documentElement.dataset.mark = 'yes'; });
const isMarked = (page) => page.evaluate(() => document.documentElement.dataset.mark === 'yes');

journey('a change appears without a reload', async (page, go) => {
  const first = await submit({ wait: 'go' });
  await go('procedures');
  await becomes(() => ids(page), [first]);
  await fresh(page, 'live');
  await mark(page);
  const second = await submit({ sleep: 60_000 });
  await pass(1_000);
  await becomes(() => ids(page), [second, first]);
  await signal(first, 'go');
  await pass(1_000);
  await becomes(() => ids(page), [second]);
  await page.getByRole('link', { name: second, exact: true }).click();
  await page.getByText('Stage Finish runs at 10:01:').first().waitFor();
  await pass(60_000);
  await page.getByText('Ended well').waitFor();
  assert.equal(await isMarked(page), true);
});

journey('the engine is restarted under an open page', async (page, go) => {
  const kept = await submit({ wait: 'go' }, { key: 'kept' });
  await go('procedures');
  await becomes(() => ids(page), [kept]);
  await fresh(page, 'live');
  await mark(page);
  // The page is told as it happens, whichever words come first.
  const said = page.getByRole('navigation').getByRole('status').filter({ hasText: /reconnecting|every 5 s|as of/ }).waitFor();
  await restart();
  await said;
  const born = await submit({ sleep: 60_000 });
  await fresh(page, 'live');
  await pass(1_000);
  await becomes(() => ids(page), [born, kept]);
  assert.equal(await isMarked(page), true);
  assert.equal((await truth()).epoch, '2');
  await page.keyboard.press('g');
  await page.keyboard.press('e');
  await page.getByText('epoch').waitFor();
  await becomes(() => page.getByRole('definition').evaluateAll((all) => all.some((one) => one.previousElementSibling?.textContent === 'epoch' && one.textContent === '2')), true);
}, { expected: /ERR_|Failed to load/ });

journey('a stream that missed too much has the page read anew', async (page, go) => {
  await go('procedures');
  await shown(page, 'Procedures');
  await fresh(page, 'live');
  await mark(page);
  // More than one event may hold.
  await many({ wait: 'go' }, 1_500);
  await pass(1_000);
  await becomes(() => page.getByRole('main').getByRole('status').innerText(), '1,500 rows · the newest 100 are here · 100 scanned');
  assert.deepEqual((await ids(page))[0], (await truth()).rows.at(-1).id);
  assert.equal(await isMarked(page), true);
});

journey('a hidden tab closes its stream, and reads anew when it is seen', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await go('procedures');
  await becomes(() => ids(page), [id]);
  await fresh(page, 'live');
  assert.equal(await streams(), 1);
  const hide = (isHidden) => page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
  await hide(true);
  // The server notices with the next things that it writes.
  await until(async () => {
    await pass(10_000);
    return await streams() === 0;
  }, 'the stream is closed');
  const other = await submit({ wait: 'go' });
  await pass(1_000);
  assert.deepEqual(await ids(page), [id], 'a hidden page asks for nothing');
  await hide(false);
  await becomes(() => ids(page), [other, id]);
  await fresh(page, 'live');
});

journey('a stream that is refused: the page asks every five seconds, and says so', async (page, go) => {
  await page.route('**/api/v1/events**', (route) => route.fulfill({ status: 429, body: '{}' }));
  const id = await submit({ wait: 'go' });
  await go('procedures');
  await becomes(() => ids(page), [id]);
  await fresh(page, 'every 5 s');
  const other = await submit({ wait: 'go' });
  await becomes(() => ids(page), [other, id]);
}, { expected: /429/ });

journey('what changes while a slow answer is on its way is read again', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await go(`procedures/${id}`);
  await shown(page, /^job/);
  await fresh(page, 'live');
  let gates = 0;
  await page.route(`**/api/v1/procedures/${id}/waits`, (route) => {
    gates += 1;
    return route.continue();
  });
  let isRead = false;
  await page.route(`**/api/v1/procedures/${id}`, async (route) => {
    const response = await route.fetch();
    isRead = true;
    // The gates are read again two seconds after the last time, the procedure itself after one: by then it was asked for again.
    await until(async () => gates === 2, 'the change is heard, and more than a second ago');
    await route.fulfill({ response });
  }, { times: 1 });
  await signal(id, 'nobody waits for this');
  await until(async () => isRead && gates === 1, 'an answer from before the end is on its way');
  await signal(id, 'go');
  await pass(1_000);
  await page.getByText(/^Ended well/).waitFor();
});

journey('a process that stands still is told, and that it goes on', async (page, go) => {
  await go('procedures');
  await shown(page, 'Procedures');
  await fresh(page, 'live');
  // Its connections stay open, and nothing comes on them.
  const held = [];
  await page.route('**/api/v1/**', (route) => { held.push(route); });
  await fresh(page, 'as of');
  await page.getByRole('alert').filter({ hasText: 'The dashboard does not answer.' }).waitFor();
  await page.unroute('**/api/v1/**');
  await Promise.all(held.map((route) => route.continue().catch(() => {})));
  await fresh(page, 'live');
  await page.getByRole('alert').waitFor({ state: 'detached' });
});

journey('an engine that stands still is told by the stream', async (page, go) => {
  await page.route('**/api/v1/events**', (route) => route.fulfill({ contentType: 'text/event-stream', body: 'event: engine\ndata: {"engine":"silent"}\n\n' }));
  await go('procedures');
  await page.getByRole('alert').filter({ hasText: 'The engine does not answer in time.' }).waitFor();
  await page.unroute('**/api/v1/events**');
  // The next stream says how it stands.
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await fresh(page, 'live');
});

journey('an engine that stands still while its stream is open: the menu says what the banner says', async (page, go) => {
  const says = await speaker(page);
  await go('procedures');
  await shown(page, 'Procedures');
  await fresh(page, 'live');
  const told = [
    ['silent', 'no answer', 'The engine does not answer in time.'],
    ['journal_failed', 'journal failed', 'The journal has failed'],
    ['draining', 'draining', 'The engine drains'],
    ['recovering', 'recovering', 'still reading what its journal holds'],
  ];
  for (const [engine, word, sentence] of told) {
    const banner = page.getByRole('alert').filter({ hasText: sentence });
    const menu = page.getByRole('navigation').getByRole('status').filter({ hasText: word });
    // Told again, as a page that heard nothing for a second reads anew how the engine truly stands.
    await until(async () => {
      await says(engine);
      return await banner.isVisible() && await menu.isVisible();
    }, `banner and menu say ${word}`);
    assert.match(await page.getByRole('navigation').getByRole('status').getAttribute('title') ?? '', new RegExp(sentence));
  }
  await says('live');
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await fresh(page, 'live');
});
