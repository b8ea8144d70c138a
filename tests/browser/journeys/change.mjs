// What an operator changes or sends from the page: limits, priorities, events.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { act, after, becomes, dialog, journey, rows, shown, submit, truth } from '../kit.mjs';

after(hook);

const limits = async () => (await truth()).limits.map(({ used, limit, waiting }) => ({ used, limit, waiting }));

journey('a limit is edited: exactly the difference wakes', async (page, go) => {
  for (let at = 0; at < 7; at += 1) await submit({ wait: 'go' }, { kind: 'limited' });
  assert.deepEqual(await limits(), [{ used: 2, limit: 2, waiting: 5 }]);
  await go('limits');
  await shown(page, 'Limits');
  const limit = page.getByRole('spinbutton', { name: 'limit of limited' });
  await limit.fill('5');
  await page.getByRole('button', { name: 'Set…' }).click();
  await act(page, /^Set/, 'Set', { reason: 'a quiet hour' });
  assert.deepEqual(await limits(), [{ used: 5, limit: 5, waiting: 2 }]);
  await becomes(async () => (await rows(page, 'Limits')).map((row) => [row.Used, row.Queue]), [['5 of 5', '2 wait']]);

  // Lowering takes nothing back.
  await limit.fill('1');
  await page.getByRole('button', { name: 'Set…' }).click();
  await act(page, /^Set/, 'Set', { reason: 'a busy hour' });
  assert.deepEqual(await limits(), [{ used: 5, limit: 1, waiting: 2 }]);
  await becomes(async () => (await rows(page, 'Limits')).map((row) => [row.Used, row.Queue]), [['5 of 1', '2 wait']]);
});

journey('an event is sent from the page', async (page, go) => {
  const id = await submit({ wait: 'approved' });
  await go(`procedures/${id}`);
  await page.getByText('Waits for the event approved.').waitFor();
  // What it waits for stands among its buttons, and not behind the others.
  await page.getByRole('button', { name: 'Signal…', exact: true }).click();
  const open = dialog(page, /^Signal/);
  assert.equal(await open.getByRole('textbox', { name: 'Payload' }).inputValue(), '', 'nothing is sent that nobody wrote');
  await open.getByText('Write the payload, or choose “without a payload”.').waitFor();
  assert.equal(await open.getByRole('button', { name: 'Signal', exact: true }).isDisabled(), true);
  assert.equal(await open.getByRole('textbox', { name: 'Event' }).inputValue(), 'approved', 'what it waits for is there already');
  await open.getByRole('textbox', { name: 'Payload' }).fill('{"by": ');
  await open.getByText('This is no JSON').waitFor();
  await open.getByRole('textbox', { name: 'Payload' }).fill('{"by": "ann"}');
  await open.getByRole('button', { name: 'Signal', exact: true }).click();
  await open.getByText('It is done').waitFor();
  await becomes(async () => (await truth()).states, { Success: 1 });
});

journey('a priority is set, and the queue obeys it', async (page, go) => {
  for (let at = 0; at < 2; at += 1) await submit({ wait: 'go' }, { kind: 'limited' });
  const waiting = [await submit({ wait: 'go' }, { kind: 'limited' }), await submit({ wait: 'go' }, { kind: 'limited' })];
  await go(`procedures/${waiting[1]}`);
  await page.getByText('place 2 of 2').waitFor();
  await page.getByRole('button', { name: 'Priority' }).click();
  await dialog(page, /^Priority/).getByRole('spinbutton', { name: 'New priority' }).fill('9');
  await act(page, /^Priority/, 'Priority', { reason: 'a customer waits' });
  await page.getByText('place 1 of 2').waitFor();
  await page.getByRole('listitem').filter({ hasText: /^priority 9$/ }).waitFor();
  const row = (await truth()).rows.find(({ id }) => id === waiting[1]);
  assert.equal(row.priority, 9);
});
