// Failures stay until somebody acknowledges them: told on the first screen, counted in the menu, grouped, and closed.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, api, becomes, journey, pass, rows, shown, submit, until } from '../kit.mjs';

after(hook);

/** Three failures in two groups. */
async function three() {
  for (const [key, text] of [['order-1', 'no space on rs-17'], ['order-2', 'no space on rs-4'], ['order-3', 'refused']]) {
    await submit({ fail: text }, { key });
    await pass(60_000);
  }
  await until(async () => {
    await pass(10_000);
    return (await api('failures')).body.count === 3;
  }, 'three failures are listed');
}

const badge = (page) => page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: /^Failures/ });

journey('failures are found, looked at in their group, and acknowledged', async (page, go) => {
  await three();
  await go();
  await shown(page, 'Attention');
  const verdict = page.getByRole('main').getByRole('listitem').filter({ hasText: '3 failures are not acknowledged' });
  await verdict.getByText('3 job').first().waitFor();
  await becomes(() => badge(page).innerText().then((text) => text.replace(/\s+/g, ' ').trim().replace(/ g x$/, '')), 'Failures 3');
  await verdict.getByRole('link', { name: 'Failures' }).click();

  await shown(page, 'Failures');
  const groups = async () => (await rows(page, 'Failures')).map((row) => [row.Count, row.Kind, row['What they say'].split(' the newest is ')[0]]);
  await becomes(groups, [['1', 'job', 'refused'], ['2', 'job', 'no space on rs-4']]);
  await page.getByRole('img', { name: '2 failures, at most 1 in one bar' }).waitFor();
  await page.getByRole('link', { name: '2', exact: true }).click();

  await shown(page, 'Procedures');
  await becomes(async () => (await rows(page, 'Procedures')).map((row) => row.Key), ['order-2', 'order-1']);
  await page.goBack();
  await shown(page, 'Failures');
  const row = page.getByRole('row').filter({ hasText: 'no space on rs-4' });
  await row.getByRole('button', { name: 'Acknowledge…' }).click();
  const dialog = page.getByRole('dialog', { name: /^Acknowledge/ });
  await dialog.getByText('It would be asked of 2 procedures.').waitFor();
  await dialog.getByRole('button', { name: 'Acknowledge', exact: true }).click();
  await dialog.getByText('It is begun, and on disk.').waitFor();
  await pass(10_000);
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await becomes(groups, [['1', 'job', 'refused']]);
  assert.equal((await api('audit')).body.items.length, 2, 'each has its entry');
});

journey('the failures of a group run again, and one of them once more', async (page, go) => {
  await three();
  await go('failures');
  await shown(page, 'Failures');
  const row = page.getByRole('row').filter({ hasText: 'no space on rs-4' });
  await row.getByRole('button', { name: 'Run again…' }).click();
  const all = page.getByRole('dialog', { name: /^Run again/ });
  await all.getByText('It would be asked of 2 procedures.').waitFor();
  await all.getByRole('textbox', { name: /^Reason/ }).fill('the disk has room');
  await all.getByRole('button', { name: 'Run again', exact: true }).click();
  await all.getByText('It is begun, and on disk.').waitFor();
  await pass(10_000);
  await all.getByRole('button', { name: 'Close' }).last().click();
  // Each fails once more, as another procedure.
  const found = async () => (await api('procedures?filter=failure:any')).body.items.map((item) => item.key).sort();
  await becomes(found, ['again 1.0', 'again 2.0', 'order-3']);

  await go('procedures/3.0');
  await page.getByRole('button', { name: 'Run again…' }).click();
  const one = page.getByRole('dialog', { name: /^Run again/ });
  await one.getByRole('region', { name: 'Plan' }).getByText(/^A new procedure runs/).waitFor();
  assert.equal(await one.getByText('Runs again as').count(), 0, 'a plan does not know which identity is free by then');
  await one.getByRole('textbox', { name: /^Reason/ }).fill('once more');
  await one.getByRole('button', { name: 'Run again', exact: true }).click();
  await one.getByText('Runs again as').waitFor();
  const { submitted } = (await api('audit')).body.items.find((act) => act.target === '3.0');
  await one.getByRole('link', { name: submitted, exact: true }).click();
  await page.waitForURL(`**/procedures/${submitted}`);
  await page.getByText('again 3.0').first().waitFor();
});

journey('who may only look sees failures, and closes none', async (page, go) => {
  await three();
  await go('failures');
  await shown(page, 'Failures');
  assert.equal((await rows(page, 'Failures')).length, 2);
  assert.equal(await page.getByRole('button', { name: 'Acknowledge…' }).count(), 0);
}, { mount: 'reader' });
