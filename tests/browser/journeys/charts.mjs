// Charts: what ended and failed, how long it took and how long stages waited; the table has what is drawn.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, api, becomes, journey, pass, restart, rows, shown, signal, submit } from '../kit.mjs';

after(hook);

const PLOTS = ['Ended a minute', 'Time to the end', 'Waits of stages'];

/** A few ends in the first minute; then one that took two minutes. */
async function some() {
  const slow = await submit({ wait: 'go' });
  for (let at = 0; at < 3; at += 1) await submit({ end: 'well' });
  await submit({ fail: 'no space' });
  await submit({ wait: 'go' }, { kind: 'limited' });
  await pass(120_000);
  await signal(slow, 'go');
  await pass(60_000);
}

/** What the table says, without the lines in which nothing is. @param {import('playwright-core').Page} page */
const told = async (page) => (await rows(page, 'Figures')).filter((row) => row.Ended !== 'unknown' && (row.Ended !== '–' || row.Waited !== '–'));

/** How many colours each chart has, so that one that is blank is found. Runs in the page. */
const colours = () => [...document.querySelectorAll('.plot canvas')].map((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) found.add(`${data[at]} ${data[at + 1]} ${data[at + 2]}`);
  return found.size > 3;
});

/** What is wider than the window. Runs in the page. */
const wider = () => [...document.querySelectorAll('html, .screen, .plot, button, select, h1')]
  .filter((element) => element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0 || element.getBoundingClientRect().right > innerWidth + 0.5)
  .map((element) => `${element.tagName} ${element.className}`);

journey('a kind’s charts are opened from Kinds, and say what the table says', async (page, go) => {
  await some();
  await go('kinds');
  await shown(page, 'Kinds');
  await page.getByTitle('Charts of job').click();
  await shown(page, 'Charts');
  assert.equal(new URL(page.url()).search, '?kind=job');
  await page.getByText('All procedures of this kind, roots and children').waitFor();
  const wanted = [
    // It took two minutes; percentiles are within 4 %.
    { From: '10:02', Ended: '1', Failed: '–', Median: '1 m 59 s', p99: '1 m 59 s', Waited: '0 ms', 'Waited p99': '0 ms' },
    { From: '10:00', Ended: '4', Failed: '1', Median: '0 ms', p99: '0 ms', Waited: '0 ms', 'Waited p99': '0 ms' },
  ];
  await becomes(() => told(page), wanted);
  for (const name of PLOTS) await page.getByRole('img', { name: new RegExp(`^${name}\\.`) }).waitFor();
  await page.getByRole('img', { name: 'Ended a minute. 5 ended and 1 failed in the last hour; at most 4 a minute.' }).waitFor();
  await page.getByText('Where lines are missing no engine counted').waitFor();

  // All by the keyboard: the day, and back to all kinds.
  await page.getByRole('button', { name: 'Last 24 hours' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForURL('**/kinds/charts?kind=job&span=24h');
  await becomes(async () => (await told(page)).map(({ From, Ended, Failed }) => [From, Ended, Failed]), [['10:00 open', '5', '1']]);
  await page.getByRole('combobox', { name: 'Kind' }).selectOption('limited');
  await page.getByText('Nothing ended in the last 24 hours').waitFor({ state: 'detached' });
  await becomes(async () => (await told(page)).map(({ From, Ended }) => [From, Ended]), [['10:00 open', '–']]);
  await page.getByRole('combobox', { name: 'Kind' }).selectOption('all kinds');
  await page.waitForURL('**/kinds/charts?span=24h');
  await page.getByText('The roots of all kinds').waitFor();

  // The pointer tells what a place says.
  await page.getByRole('button', { name: 'Last hour' }).click();
  const drawn = page.getByRole('img', { name: /^Ended a minute/ });
  const box = await drawn.boundingBox();
  await page.mouse.move(box.x + box.width - 12, box.y + 60);
  await drawn.locator('xpath=..').getByText(/^\d\d:\d\d$/).waitFor();
});

journey('charts outlive the engine', async (page, go) => {
  await some();
  const before = (await api('charts')).body.buckets.filter(({ ended }) => ended);
  assert.deepEqual(before.map(({ ended, failed }) => [ended, failed]), [[4, 1], [1, 0]]);
  await restart();
  await pass(600_000);
  assert.deepEqual((await api('charts')).body.buckets.filter(({ ended }) => ended), before);
  await go('kinds/charts');
  await shown(page, 'Charts');
  await becomes(async () => (await told(page)).map(({ Ended, Failed }) => [Ended, Failed]), [['1', '–'], ['4', '1']]);
}, { mount: 'reader' });

for (const colorScheme of /** @type {const} */ (['dark', 'light'])) {
  journey(`charts are drawn at every width when it is ${colorScheme}`, async (page, go) => {
    await page.emulateMedia({ colorScheme });
    await go('kinds/charts');
    await shown(page, 'Charts');
    await page.getByText('Nothing ended in the last hour, and no stage ran.').waitFor();
    await some();
    await pass(600_000);
    for (const width of [390, 1280, 1920]) {
      await page.setViewportSize({ width, height: 900 });
      await go('kinds/charts?kind=job');
      await shown(page, 'Charts');
      await becomes(() => page.evaluate(colours), [true, true, true]);
      await becomes(() => page.evaluate(wider), []);
    }
    // The theme's switch draws anew, in the other colours.
    const first = await page.evaluate(() => document.querySelector('.plot canvas').toDataURL());
    await page.keyboard.press('t');
    await becomes(() => page.evaluate((old) => document.querySelector('.plot canvas').toDataURL() !== old, first), true);
  });
}
