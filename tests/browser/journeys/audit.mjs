// The audit of a root: a package that was changed is held, reinstalled, and looked at again.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, audit, becomes, dialog, journey, reinstall, report, shown, truth, until } from '../kit.mjs';

after(hook);

const held = (page) => page.getByRole('main').getByRole('listitem').filter({ hasText: 'not as installed' });

/** How many packages are in which state, and the report. */
const states = async () => {
  /** @type {Record<string, Record<string, number>>} */
  const found = { package: {}, report: {} };
  for (const { kind, state } of (await truth()).rows) {
    if (found[kind]) found[kind][state] = (found[kind][state] ?? 0) + 1;
  }
  return found;
};

journey('a package that was changed is reinstalled, retried from the page, and the rest goes on', async (page, go) => {
  await audit();
  await becomes(async () => (await truth()).told.map(({ rule }) => rule), ['undecided']);
  // What needs bash waits, and with it the report; all else has gone on.
  await becomes(states, { package: { Success: 9, Runnable: 1, Initializing: 1 }, report: { Initializing: 1 } });
  await go();
  await shown(page, 'Attention');
  await held(page).getByText('??5??????   /usr/share/bash/file').first().waitFor();
  await reinstall('bash');
  await held(page).getByRole('link', { name: /^Go to/ }).click();
  await shown(page, /^package v1/);
  await page.getByRole('button', { name: 'Retry now…' }).click();
  const retry = dialog(page, /^Retry now/);
  await retry.getByRole('region', { name: 'Plan' }).getByRole('row').filter({ hasText: '.' }).first().waitFor();
  const doIt = retry.getByRole('button', { name: 'Retry now', exact: true });
  await retry.getByRole('textbox', { name: 'Reason' }).fill('bash is reinstalled');
  await until(() => doIt.isEnabled(), 'it can be retried');
  await doIt.click();
  await retry.getByText('It is done').waitFor();
  await retry.getByRole('button', { name: 'Close' }).last().click();
  await retry.waitFor({ state: 'detached' });
  await becomes(states, { package: { Success: 11 }, report: { Success: 1 } });
  assert.deepEqual((await truth()).told, []);
  const lines = await until(async () => {
    const written = await report();
    return written.length === 12 && written;
  }, 'each package has its line');
  assert.ok(lines.every((/** @type {string} */ line) => line.endsWith(', trusted')), lines.join('; '));
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await shown(page, 'Attention');
  await page.getByRole('status').filter({ hasText: 'Nothing needs you.' }).waitFor();
});
