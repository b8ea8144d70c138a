// What an operator does about a rollback that failed, and the last resort.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { act, after, becomes, dialog, journey, pass, repair, rows, shown, submit, truth } from '../kit.mjs';

after(hook);

/** Submits one whose undo fails, and waits until its attempts are used up. */
async function stuck() {
  const id = await submit({ stuck: 'the table is gone' });
  await pass(60_000);
  assert.deepEqual((await truth()).states, { Failed: 1 });
  return id;
}

journey('a rollback failed: its cause is repaired, and the undo that is tried again succeeds', async (page, go) => {
  const id = await stuck();
  await go(`procedures/${id}`);
  await page.getByText('Failed with “the table is gone”, and an undo used up its attempts').waitFor();
  await page.getByText('the last error, of stage Prepare: “nothing to take back: the table is gone”').waitFor();
  await page.getByText('rollback failed').first().waitFor();
  await repair();
  await page.getByRole('button', { name: 'Retry undo…' }).click();
  const plan = dialog(page, /^Retry undo/).getByRole('region', { name: 'Plan' });
  await plan.getByRole('row').filter({ hasText: id }).waitFor();
  assert.match(await plan.innerText(), /Undone\s+1\.0 stage Prepare/, 'the plan says which undo will run');
  await act(page, /^Retry undo/, 'Retry undo', { reason: 'the table is back' });
  await becomes(async () => (await truth()).states, { RolledBack: 1 });
  // The page says so, wherever it is looked at.
  await page.getByTitle(/^It has ended: it failed, and all that could be undone was/).first().waitFor();
  await page.getByRole('tab', { name: 'History' }).click();
  const endings = async () => (await rows(page, 'History')).map((row) => [row.Stage, row['Ended with'], row.Stands]);
  await becomes(async () => (await endings()).at(-1), ['Prepare', 'undone', '–']);
  assert.equal((await endings()).filter(([, ending]) => ending === 'undo failed').length, 2);
  await page.getByRole('tab', { name: 'Actions and audit' }).click();
  await becomes(async () => (await rows(page, 'Acts')).map((row) => [row.Who, row.What, row.Why]), [['ann', `retry the undo of ${id}`, 'the table is back']]);
  await go();
  await shown(page, 'Attention');
  // Nothing is stuck; that it failed at all is told until somebody acknowledges it.
  const left = page.getByRole('main').getByRole('listitem');
  await left.filter({ hasText: '1 failure is not acknowledged' }).waitFor();
  assert.deepEqual([await left.count(), (await truth()).verdicts], [1, 1]);
  await go('procedures?filter=state%3Aended');
  await becomes(async () => (await rows(page, 'Procedures')).map((row) => [row.Id, row.State]), [[id, 'rolled back']]);
});

journey('a rollback failed: its undo is tried again, fails again, and says why', async (page, go) => {
  const id = await stuck();
  await go();
  const verdict = page.getByRole('main').getByRole('listitem').filter({ hasText: 'rollback failed' });
  await verdict.getByRole('button', { name: 'Retry undo…' }).click();
  await dialog(page, /^Retry undo/).getByRole('region', { name: 'Plan' }).getByRole('row').first().waitFor();
  await act(page, /^Retry undo/, 'Retry undo', { reason: 'the table is back' });
  await becomes(async () => (await truth()).audit, 1);
  await pass(60_000);
  // The undo fails again: the page tells of it once more, and the engine agrees.
  const of = await truth();
  assert.deepEqual([of.verdicts, of.states], [1, { Failed: 1 }]);
  await verdict.getByRole('link', { name: `Go to ${id}` }).click();
  await shown(page, /^job v1/);
  await page.getByText('the last error, of stage Prepare: “nothing to take back: the table is gone”').waitFor();
  await page.getByText('rollback failed').first().waitFor();
  await page.getByRole('button', { name: 'Retry undo…' }).waitFor();
  await page.getByRole('tab', { name: 'History' }).click();
  const failures = async () => (await rows(page, 'History')).filter((row) => row['Ended with'] === 'undo failed').map((row) => row.Error);
  await becomes(failures, Array(4).fill('nothing to take back: the table is gone'));
});

journey('a rollback failed: its undo is skipped', async (page, go) => {
  const id = await stuck();
  await go(`procedures/${id}`);
  await page.getByText('Failed with “the table is gone”, and an undo used up its attempts; 1 of 2 stages undone').waitFor();
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
