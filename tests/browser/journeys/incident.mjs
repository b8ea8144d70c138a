// The incident of docs/how-to/handle-an-incident.md, handled with nothing but the page.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, api, becomes, journey, pass, repair, rows, shown, submit, until } from '../kit.mjs';

after(hook);

const REFUSES = 'the payment service refuses the connection';

journey('a payment service fails for ten minutes, and the page is enough', async (page, go) => {
  for (let number = 1; number <= 12; number += 1) {
    await submit({ pay: REFUSES }, { key: `order-${number}` });
    await pass(50_000);
  }
  await until(async () => {
    await pass(10_000);
    return (await api('failures')).body.count === 12;
  }, 'twelve failures are listed');

  // What, why, and how many.
  await go();
  await shown(page, 'Attention');
  const verdict = page.getByRole('main').getByRole('listitem').filter({ hasText: '12 failures are not acknowledged' });
  await verdict.getByRole('link', { name: 'Failures' }).click();
  await shown(page, 'Failures');
  const group = page.getByRole('row').filter({ hasText: REFUSES });
  await group.getByRole('link', { name: '12', exact: true }).click();
  await shown(page, 'Procedures');
  await becomes(async () => (await rows(page, 'Procedures')).length, 12);
  await page.getByRole('link', { name: 'order-12' }).or(page.getByRole('row').filter({ hasText: 'order-12' }).getByRole('link').first()).first().click();
  await page.waitForURL('**/procedures/12.0**');
  await page.getByRole('tab', { name: 'History' }).click();
  await page.getByText(REFUSES).first().waitFor();

  // They run again once the service is back.
  await repair();
  await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: /^Failures/ }).click();
  await shown(page, 'Failures');
  await group.getByRole('button', { name: 'Run again…' }).click();
  const dialog = page.getByRole('dialog', { name: /^Run again/ });
  await dialog.getByText('It would be asked of 12 procedures.').waitFor();
  await dialog.getByRole('textbox', { name: /^Reason/ }).fill('the payment service is back');
  await dialog.getByRole('button', { name: 'Run again', exact: true }).click();
  await dialog.getByText('It is begun, and on disk.').waitFor();
  await pass(10_000);
  await dialog.getByRole('button', { name: 'Close' }).last().click();

  // Nothing is left to do, and what was done is written down.
  await becomes(async () => (await api('failures')).body.count, 0);
  // Streams tell of what changed by the engine's clock.
  await becomes(async () => {
    await pass(1_000);
    return (await rows(page, 'Failures')).length;
  }, 0);
  const again = (await api('procedures?filter=key:again+state:success&limit=50')).body.items;
  assert.equal(again.length, 12, 'each has run again, and succeeded');
  await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: /^Attention/ }).click();
  await shown(page, 'Attention');
  await becomes(async () => {
    await pass(1_000);
    return page.getByRole('main').getByRole('listitem').filter({ hasText: 'not acknowledged' }).count();
  }, 0);
  await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: /^Audit/ }).click();
  await shown(page, 'Audit');
  await page.getByText('the payment service is back').first().waitFor();
  assert.equal((await api('audit')).body.items.length, 12);
});
