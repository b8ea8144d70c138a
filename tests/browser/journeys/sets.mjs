// A set with a failing node: found, understood from its graph, decided about, and ended.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { act, after, album, becomes, dialog, journey, repair, rows, sets, shown, stream, truth, until } from '../kit.mjs';

after(hook);

const picture = (page) => page.getByRole('region', { name: 'Who runs after whom' });

/** What is drawn: the name and the state of each node. @param {import('playwright-core').Page} page */
const drawn = (page) => picture(page).locator('g.node').evaluateAll((all) => all.map((node) => [...node.querySelectorAll('text')].map((text) => text.textContent)));

/** What the table says. @param {import('playwright-core').Page} page */
const table = async (page) => (await rows(page, 'Graph')).map((row) => [row.Name, row.State, row.Why, row['Runs after']]);

/** What the list of sets says. @param {import('playwright-core').Page} page */
const listed = async (page) => (await rows(page, 'Sets and streams')).map((row) => [row.Id, row.State, row.Nodes, row['Waits for a person']]);

/** The same as the engine has it. */
const engines = async () => (await sets()).filter(({ state }) => state !== 'FINISH').map(({ id, state, counts, pending }) => {
  const order = ['pending', 'error', 'running', 'ready', 'wait', 'success', 'cancelled'];
  return [id, state, order.filter((name) => counts[name]).map((name) => `${counts[name].toLocaleString('en')} ${name}`).join(' · '), pending.join(', ') || '–'];
});

journey('an album with a failing node is found under Attention, understood from its graph, retried, and ends', async (page, go) => {
  const id = await album();
  const large = id.replace(/\.0$/, '.3');
  await go();
  await shown(page, 'Attention');
  const verdict = page.getByRole('main').getByRole('listitem').filter({ hasText: 'the disk is full' });
  await verdict.getByText('behind 1', { exact: true }).waitFor();
  for (const name of ['Retry now…', 'Answer…', 'Succeed…', 'Fail…']) await verdict.getByRole('button', { name }).waitFor();
  await verdict.getByRole('link', { name: `Go to ${large}` }).click();

  await shown(page, /^draw v1/);
  await page.getByRole('heading', { level: 1 }).getByText('large').waitFor();
  await page.getByText(/^Asks: “the disk is full”/).waitFor();
  await page.getByRole('treegrid').getByText('publish').waitFor();
  await page.getByRole('tab', { name: 'Graph' }).click();
  await becomes(() => table(page), [
    ['fetch', 'SUCCESS', '–', 'nothing'],
    ['small', 'SUCCESS', '–', 'fetch'],
    ['large', 'PENDING', 'the disk is full', 'fetch'],
    ['publish', 'PENDING', 'cannot begin: by large', 'small, large'],
  ]);
  const names = [['fetch', 'SUCCESS'], ['small', 'SUCCESS'], ['large', 'PENDING'], ['publish', 'PENDING']];
  await becomes(() => drawn(page), names);
  assert.deepEqual((await sets())[0].nodes, names);
  assert.equal(await picture(page).locator('path.edge').count(), 4);
  assert.equal(await picture(page).locator('g.node.chosen').count(), 1);

  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await shown(page, 'Sets and streams');
  await becomes(() => listed(page), [[id, 'PENDING', '2 pending · 2 success', 'large']]);
  assert.deepEqual(await listed(page), await engines());
  await page.getByRole('link', { name: 'album 7' }).click();
  await becomes(() => drawn(page), names);

  // Its plan first: it runs, and nothing else changes.
  await repair();
  await page.getByRole('table', { name: 'Graph' }).getByRole('row').filter({ hasText: 'the disk is full' }).getByRole('button', { name: 'Retry now…' }).click();
  const plan = dialog(page, /^Retry now/).getByRole('region', { name: 'Plan' });
  await plan.getByRole('row').filter({ hasText: large }).waitFor();
  const sent = page.waitForRequest((request) => Boolean(request.postDataJSON()?.reason));
  await act(page, /^Retry now/, 'Retry now', { reason: 'the disk has room again' });
  assert.ok((await sent).postDataJSON().expected, 'as its plan has seen it');
  await becomes(async () => (await drawn(page)).map(([, state]) => state), ['SUCCESS', 'SUCCESS', 'SUCCESS', 'SUCCESS']);
  await becomes(async () => (await truth()).states, { Success: 5 });
  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await page.getByText('No set and no stream is unfinished.').waitFor();
  await page.getByRole('button', { name: 'Finished', exact: true }).click();
  await becomes(() => listed(page), [[id, 'FINISH', '4 success', '–']]);
  await go();
  await page.getByRole('status').filter({ hasText: 'Nothing needs you.' }).waitFor();
});

journey('a node is given its output, and another is failed, each with its plan', async (page, go) => {
  const id = await album();
  const of = id.replace(/\.0$/, '');
  await go(`procedures/${of}.3?tab=graph`);
  await shown(page, /^draw v1/);
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('button', { name: 'Fail…' }).click();
  const fail = dialog(page, /^Fail/);
  await fail.getByRole('region', { name: 'Plan' }).getByRole('row').filter({ hasText: `${of}.3` }).waitFor();
  await act(page, /^Fail/, 'Fail', { reason: 'there is no such picture', typed: `${of}.3` });
  await becomes(async () => (await drawn(page)).map(([, state]) => state), ['SUCCESS', 'SUCCESS', 'ERROR', 'PENDING']);
  await becomes(async () => (await sets())[0].nodes.map(([, state]) => state), ['SUCCESS', 'SUCCESS', 'ERROR', 'PENDING']);

  await picture(page).getByRole('link').filter({ hasText: 'publish' }).click();
  await shown(page, new RegExp(`^draw v1 ${of}\\.4`));
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('button', { name: 'Succeed…' }).click();
  // Nothing is no output of this kind: its plan is refused, and says so, until one is written.
  const succeed = dialog(page, /^Succeed/);
  await succeed.getByRole('alert').filter({ hasText: 'The output is none of the kind "draw"' }).waitFor();
  await succeed.getByRole('textbox', { name: 'Output' }).fill('7');
  await act(page, /^Succeed/, 'Succeed', { reason: 'it was published by hand', typed: `${of}.4` });
  await becomes(async () => (await drawn(page)).map(([, state]) => state), ['SUCCESS', 'SUCCESS', 'ERROR', 'SUCCESS']);
  await go('flows');
  await page.getByText('No set and no stream is unfinished.').waitFor();
}, { expected: /status of 400.*override-result\?dry_run=true/ });

journey('a set of 5,000 nodes is folded, and none is missing in its table', async (page, go) => {
  const id = await album(4_996);
  await go('flows');
  await shown(page, 'Sets and streams');
  await becomes(() => listed(page), [[id, 'PENDING', '4,998 pending · 2 success', 'large']]);
  assert.deepEqual(await listed(page), await engines());
  await go(`procedures/${id}?tab=graph`);
  await becomes(() => drawn(page), [['fetch', 'SUCCESS'], ['small', 'SUCCESS'], ['large', 'PENDING'], ['4,997 nodes', 'PENDING']]);
  await picture(page).getByText('5,000 nodes, folded by layer and state').waitFor();
  const graph = page.getByRole('table', { name: 'Graph' });
  assert.equal(await graph.getAttribute('aria-rowcount'), '5001');
  assert.ok(await graph.getByRole('row').count() < 60, 'only what is seen is in the document');
  assert.ok(await graph.getByRole('button', { name: 'Retry now…' }).count() > 0);
});

journey('whoever may only look sees a set whole, and decides nothing', async (page, go) => {
  const id = await album();
  await go(`procedures/${id}?tab=graph`);
  await becomes(async () => (await table(page)).length, 4);
  assert.deepEqual(await page.getByRole('button', { name: 'Retry now…' }).count(), 0);
}, { mount: 'reader' });

journey('a stream whose node fails: its queue says what waits, and goes on with its notes', async (page, go) => {
  const id = await stream(100);
  await go('flows');
  await shown(page, 'Sets and streams');
  await becomes(async () => (await rows(page, 'Sets and streams')).map((row) => [row.Id, row.State, row.Nodes, row['Waits for a person']]), [[id, 'PENDING', 'large in hand · 100 waiting for now · 1 done', 'large']]);
  await page.getByRole('link', { name: 'invoices:customer-17' }).click();
  await page.getByRole('tab', { name: 'Queue', selected: true }).waitFor();
  const line = page.getByRole('tabpanel').locator('p.line');
  await line.getByText('100 waiting').waitFor();
  await becomes(async () => (await rows(page, 'Queue')).slice(0, 2).map((row) => [row.Place, row.Name, row.State, row.Why]), [['2', 'large', 'PENDING', 'the disk is full'], ['3', 'inv 0', 'WAIT', 'waits for its turn']]);
  await page.getByText('36 more wait behind these.').waitFor();
  await becomes(async () => (await rows(page, 'Records')).map((row) => [row.Place, row.Name, row.State, row.Note]), [['1', 'first', 'SUCCESS', '–']]);
  await repair();
  await page.getByRole('button', { name: 'Retry now…' }).click();
  await act(page, /^Retry now/, 'Retry now', { reason: 'the disk has room again' });
  await page.getByText('Nothing waits.').waitFor();
  await line.getByText('102 done').waitFor();
  await becomes(async () => (await rows(page, 'Records')).slice(0, 1).map((row) => [row.Place, row.Name, row.State, row.Note]), [['102', 'inv 99', 'SUCCESS', '5 B']]);
});

journey('the node in hand of a stream is failed, the one behind it is given its output, and the stream goes on', async (page, go) => {
  const id = await stream(2);
  await go(`procedures/${id}?tab=queue`);
  const decided = async (verb, node, fill = async () => {}) => {
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('button', { name: `${verb}…` }).click();
    await dialog(page, new RegExp(`^${verb}`)).getByText(`${node}: The node in hand`).waitFor();
    await fill(dialog(page, new RegExp(`^${verb}`)));
    await act(page, new RegExp(`^${verb}`), verb, { reason: 'seen to' });
  };
  const ended = async () => (await rows(page, 'Records')).map((row) => [row.Name, row.State]);
  await page.getByRole('button', { name: 'Answer…' }).click();
  await dialog(page, /^Answer/).getByText('{"act": {"succeed": 7}}').waitFor();
  await dialog(page, /^Answer/).getByRole('button', { name: 'Cancel' }).click();
  await decided('Fail', 'large');
  await becomes(ended, [['large', 'ERROR'], ['first', 'SUCCESS']]);
  await becomes(async () => (await rows(page, 'Queue')).map((row) => [row.Name, row.State]), [['inv 0', 'PENDING'], ['inv 1', 'WAIT']]);
  await decided('Succeed', 'inv 0', (asked) => asked.getByRole('textbox', { name: 'Output' }).fill('7'));
  await becomes(ended, [['inv 1', 'SUCCESS'], ['inv 0', 'SUCCESS'], ['large', 'ERROR'], ['first', 'SUCCESS']]);
  assert.deepEqual((await truth()).states, { WaitingTimeout: 1 }, 'it waits for its next node');
});

journey('a press into a dialog that a row has opened leads nowhere', async (page, go) => {
  const id = await album();
  await go(`procedures/${id}?tab=graph`);
  await page.getByRole('table', { name: 'Graph' }).getByRole('row').filter({ hasText: 'the disk is full' }).getByRole('button', { name: 'Retry now…' }).click();
  const open = dialog(page, /^Retry now/);
  await open.getByRole('region', { name: 'Plan' }).getByText('running').click();
  assert.equal(new URL(page.url()).pathname, `/all/procedures/${id}`);
  assert.equal(await open.isVisible(), true);
});

journey('sets come in pages, as they are scrolled to', async (page, go) => {
  const ids = [await album(), await album(), await album()];
  await page.route(/\/api\/v1\/flows\?/, (route) => route.continue({ url: route.request().url().replace('limit=500', 'limit=2') }));
  await go('flows');
  await shown(page, 'Sets and streams');
  await becomes(async () => (await listed(page)).map(([id]) => id), ids.reverse());
  await page.getByText('3 shown', { exact: true }).waitFor();
});

journey('what ends while older records are shown leaves no gap among them', async (page, go) => {
  await repair();
  const id = await stream(100);
  await go(`procedures/${id}?tab=queue`);
  const table = page.getByRole('table', { name: 'Records' });
  const line = page.getByRole('tabpanel').locator('p.line');
  const whole = async () => {
    const done = Number(/([\d,]+) done/.exec(await line.innerText())?.[1]?.replace(',', ''));
    await table.evaluate((element) => { element.scrollTop = element.scrollHeight; });
    return Number(await table.getAttribute('aria-rowcount')) - 1 === done && done;
  };
  await until(async () => (await whole()) === 102, 'all records are there');
  await stream(400);
  await until(async () => (await whole()) > 200, 'all records are there again');
});
