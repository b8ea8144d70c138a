// What an attempt said, left and logged, and how procedures of a kind go from stage to stage.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, journey, pass, rows, shown, signal, submit } from '../kit.mjs';

after(hook);

const LOOKS = /** @type {const} */ ([[390, 'dark'], [390, 'light'], [1280, 'dark'], [1280, 'light']]);

/** Buttons and fields that are not in the window, and by how much the page is wider. Runs in the page. */
function outside() {
  const found = [];
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) found.push(`the page is ${scrollWidth - innerWidth} px too wide`);
  for (const element of document.querySelectorAll('.attempt, .attempt a, .attempt select, .machine > header, .machine .graph')) {
    const { left, right } = element.getBoundingClientRect();
    if (left < -0.5 || right > innerWidth + 0.5) found.push(`${element.className || element.tagName} from ${Math.round(left)} to ${Math.round(right)}`);
  }
  for (const table of document.querySelectorAll('.table')) {
    if (innerWidth >= 1280 && table.scrollWidth > table.clientWidth) found.push(`${table.ariaLabel} is ${table.scrollWidth - table.clientWidth} px too wide`);
  }
  return found;
}

async function fits(page) {
  for (const [width, colorScheme] of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await becomes(() => page.evaluate(outside), []);
  }
}

/** One that has failed once, and waits. */
async function filled() {
  const id = await submit({ fill: [] });
  await pass(60_000);
  return id;
}

journey('an attempt is opened: its error, what it logged, and the value that it left', async (page, go) => {
  const id = await filled();
  await go(`procedures/${id}?tab=history`);
  await shown(page, /^job v1/);
  await page.getByRole('link', { name: 'Details of Work, visit 1, attempt 1' }).click();
  const failed = page.getByRole('region', { name: 'Attempt: Work, visit 1, attempt 1' });
  await failed.getByText('the shelf is empty').first().waitFor();
  const lines = () => failed.getByRole('listitem').evaluateAll((all) => all.map((one) => one.querySelector('.level')?.textContent));
  // The last line is the engine's own, on the failure.
  await becomes(lines, ['INFO', 'WARN', 'WARN']);
  await failed.getByRole('listitem').nth(1).getByText(/looked for more on a shelf far away/).waitFor();
  assert.equal(await failed.getByRole('listitem').first().locator('.pair').innerText(), 'item=salt');
  await failed.getByText('as it was before').waitFor();
  await fits(page);
  await failed.getByRole('link', { name: 'Close' }).click();
  await page.getByRole('link', { name: 'Details of Prepare, visit 0, attempt 1' }).click();
  const first = page.getByRole('region', { name: 'Attempt: Prepare, visit 0, attempt 1' });
  const changes = first.getByRole('table', { name: 'What has changed' });
  await becomes(() => changes.getByRole('row').nth(1).locator('th, td').allInnerTexts(), ['+ /fill/0', '–', '"tea"']);
  assert.match(page.url(), /entry=1/);
  await page.reload();
  await becomes(() => changes.getByRole('row').count(), 2);
  await fits(page);
}, { mount: 'shown' });

journey('two attempts are compared', async (page, go) => {
  const id = await filled();
  await signal(id, 'go');
  await pass(1_000);
  const entries = async () => (await rows(page, 'History')).map((row) => [row.Stage, row.Attempt, row.Value]);
  await go(`procedures/${id}?tab=history`);
  await becomes(entries, [['Prepare', '1', '11 B'], ['Work', '1', '–'], ['Work', '2', '16 B'], ['Finish', '1', '21 B']]);
  await page.getByRole('link', { name: 'Details of Finish, visit 2, attempt 1' }).click();
  const last = page.getByRole('region', { name: 'Attempt: Finish, visit 2, attempt 1' });
  const changes = last.getByRole('table', { name: 'What has changed' });
  await becomes(() => changes.getByRole('row').count(), 2);
  await last.getByRole('combobox', { name: 'Compared with' }).selectOption({ label: 'the first value' });
  await becomes(() => changes.getByRole('rowheader').allInnerTexts(), ['+ /fill/0', '+ /fill/1', '+ /fill/2']);
  await fits(page);
}, { mount: 'shown' });

journey('where the host shows no users’ data, logs have their levels and values their sizes', async (page, go) => {
  const id = await filled();
  await go(`procedures/${id}?tab=history&entry=2`);
  const failed = page.getByRole('region', { name: 'Attempt: Work, visit 1, attempt 1' });
  await failed.getByText(/^redacted, \d+ B$/).first().waitFor();
  await failed.getByText('WARN').first().waitFor();
  await failed.getByText(/^Redacted: the host shows only its size/).waitFor();
  assert.equal(await failed.getByText('looked for more').count(), 0);
});

journey('a host without the layer is told how to have logs', async (page, go) => {
  const id = await filled();
  await go(`procedures/${id}?tab=history&entry=2`);
  await page.getByText(/^The host keeps no logs of attempts/).waitFor();
}, { mount: 'reader' });

journey('the stages of a kind are drawn as they were observed', async (page, go) => {
  const id = await filled();
  await submit({ fail: 'no space' });
  await signal(id, 'go');
  await pass(1_000);
  await go('kinds');
  await shown(page, 'Kinds');
  await page.getByRole('link', { name: 'Stages of job, as observed' }).click();
  const stages = page.getByRole('region', { name: 'Stages of job' });
  await stages.getByRole('img', { name: /^3 stages/ }).waitFor();
  const table = async () => (await rows(page, 'Stages')).map((row) => [row.Stage, row.Begun, row.Retries, row['Followed by'], row.Success, row['Rolled back'], row.Undone]);
  await becomes(table, [
    ['Prepare', '2', '–', 'Work 2', '–', '–', '1'],
    ['Work', '–', '1', 'Finish 1', '–', '1', '1'],
    ['Finish', '–', '–', '–', '1', '–', '–'],
  ]);
  const edges = () => stages.locator('.way text').allTextContents();
  await becomes(async () => (await edges()).sort(), ['1', '1', '1', '1', '1', '2', '2']);
  await fits(page);
  await stages.getByRole('link', { name: 'Close' }).click();
  await stages.waitFor({ state: 'hidden' });
});
