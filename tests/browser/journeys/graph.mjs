// A family whose children run after one another: drawn, and in a table that says the same.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, journey, rows, shown, signal, submit, truth } from '../kit.mjs';

after(hook);

const picture = (page) => page.getByRole('region', { name: 'Who runs after whom' });

/** What the table says. @param {import('playwright-core').Page} page */
const table = async (page) => (await rows(page, 'Graph')).map((row) => [row.Name, row.State, row['Runs after']]);

/** What is drawn: the name and the state of each node. @param {import('playwright-core').Page} page */
const drawn = (page) => picture(page).locator('g.node').evaluateAll((all) => all.map((node) => [...node.querySelectorAll('text')].map((text) => text.textContent)));

journey('a family with gates: its graph says who runs after whom, and how each stands, live', async (page, go) => {
  const id = await submit('graph');
  const of = id.replace(/\.0$/, '');
  await becomes(async () => (await truth()).states, { Waiting: 1, WaitingTimeout: 1, Initializing: 3 });
  await go(`procedures/${id}`);
  await page.getByRole('tab', { name: 'Graph' }).click();
  await becomes(() => table(page), [
    ['fetch', 'waiting · event', 'nothing'],
    ['build', 'waiting · gate', 'fetch'],
    ['check', 'waiting · gate', 'fetch'],
    ['publish', 'waiting · gate', 'build, check'],
  ]);
  const names = [['fetch', 'waiting · event'], ['build', 'waiting · gate'], ['check', 'waiting · gate'], ['publish', 'waiting · gate']];
  await becomes(() => drawn(page), names);
  assert.equal(await picture(page).locator('path.edge').count(), 4);
  await signal(`${of}.1`, 'go');
  await becomes(async () => (await drawn(page)).map(([, state]) => state), ['success', 'waiting · event', 'waiting · event', 'waiting · gate']);
  await picture(page).getByRole('link').filter({ hasText: 'publish' }).click();
  await shown(page, new RegExp(`^job v1 ${of}\\.4`));
  await page.getByRole('tab', { name: 'Graph', selected: true }).waitFor();
  for (const member of [2, 3, 4]) await signal(`${of}.${member}`, 'go');
  await becomes(async () => (await table(page)).map(([, state]) => state), ['success', 'success', 'success', 'success']);
});

journey('a family without gates has no graph', async (page, go) => {
  const id = await submit({ children: 2 });
  await go(`procedures/${id}`);
  await shown(page, /^job v1/);
  await page.getByText('3 members').waitFor();
  assert.equal(await page.getByRole('tab', { name: 'Graph' }).count(), 0);
});
