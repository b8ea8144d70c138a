// What an operator does about a rollback that failed, and the last resort.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { act, after, becomes, dialog, journey, pass, shown, submit, truth } from '../kit.mjs';

after(hook);

/** Submits one whose undo fails, and waits until its attempts are used up. */
async function stuck() {
  const id = await submit({ stuck: 'the table is gone' });
  await pass(60_000);
  assert.deepEqual((await truth()).states, { Failed: 1 });
  return id;
}

journey('a rollback failed: its undo is tried again', async (page, go) => {
  const id = await stuck();
  await go();
  const verdict = page.getByRole('main').getByRole('listitem').filter({ hasText: 'rollback failed' });
  await verdict.getByRole('button', { name: 'Retry undo…' }).click();
  await dialog(page, /^Retry undo/).getByRole('region', { name: 'Plan' }).getByRole('row').first().waitFor();
  await act(page, /^Retry undo/, 'Retry undo', { reason: 'the table is back' });
  await becomes(async () => (await truth()).audit, 1);
  await pass(60_000);
  // The undo fails again: the page tells of it once more, and the engine agrees.
  assert.equal((await truth()).verdicts, 1);
  await verdict.getByRole('link', { name: `Go to ${id}` }).click();
  await shown(page, /^job v1/);
  await page.getByRole('tab', { name: 'History' }).click();
  await becomes(() => page.getByRole('table', { name: 'History' }).getByRole('cell', { name: 'undo failed', exact: true }).count(), 4);
});

journey('a rollback failed: its undo is skipped', async (page, go) => {
  const id = await stuck();
  await go(`procedures/${id}`);
  await page.getByText('Failed with “the table is gone”, and an undo used up its attempts.').waitFor();
  await page.getByRole('button', { name: 'Skip undo…' }).click();
  await act(page, /^Skip undo/, 'Skip undo', { reason: 'cleaned up by hand' });
  await becomes(async () => (await truth()).states, { RolledBack: 1 });
  await page.getByText('rolled back', { exact: false }).first().waitFor();
  await page.getByRole('tab', { name: 'Actions and audit' }).click();
  await page.getByRole('table', { name: 'Acts' }).getByText('cleaned up by hand').waitFor();
});

journey('a bypass asks for the id, typed', async (page, go) => {
  const id = await submit({ wait: 'never' });
  await go(`procedures/${id}`);
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('button', { name: 'Bypass…' }).click();
  const open = dialog(page, /^Bypass/);
  const bypass = open.getByRole('button', { name: 'Bypass', exact: true });
  await open.getByRole('textbox', { name: 'Reason' }).fill('never comes');
  await open.getByRole('textbox', { name: 'Type' }).fill('1');
  assert.equal(await bypass.isDisabled(), true, 'a part of the id is not the id');
  await act(page, /^Bypass/, 'Bypass', { reason: 'never comes', typed: id });
  await becomes(async () => (await truth()).states, { Success: 1 });
  await page.getByText('success · bypassed').first().waitFor();
});
