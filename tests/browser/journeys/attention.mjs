// From what needs somebody, through why, to an act and its entry in the audit.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { act, after, api, becomes, dialog, journey, pass, rows, shown, signal, submit, truth, until } from '../kit.mjs';

after(hook);

/** Lets time pass until the engine itself tells of so many verdicts. */
const verdicts = (number) => until(async () => {
  await pass(10_000);
  return (await truth()).verdicts >= number;
}, `${number} verdicts`);

const verdict = (page, name) => page.getByRole('main').getByRole('listitem').filter({ hasText: name });

journey('attention, why, plan, abort, audit', async (page, go) => {
  const id = await submit({ retry: 'rpc timeout rs-17' }, { key: 'req-42' });
  await verdicts(1);
  await go();
  await shown(page, 'Attention');
  await verdict(page, 'retry storm').getByRole('link', { name: `Go to ${id}` }).click();

  await shown(page, /^job v1/);
  await page.getByText(/^Backs off after attempt \d+/).waitFor();
  await page.getByText(/keeps retrying: it has failed \d+ times; the last error \d times in a row: rpc timeout rs-17/).waitFor();
  await page.getByRole('button', { name: 'Abort…' }).click();
  const plan = dialog(page, /^Abort/).getByRole('region', { name: 'Plan' });
  await plan.getByText('It will roll back.').waitFor();
  const doIt = dialog(page, /^Abort/).getByRole('button', { name: 'Abort', exact: true });
  assert.equal(await doIt.isDisabled(), true, 'nothing is done without a reason');
  await dialog(page, /^Abort/).getByRole('textbox', { name: 'Reason' }).fill('rs-17 is gone');
  await doIt.click();
  await dialog(page, /^Abort/).getByRole('link', { name: 'Audit' }).click();

  await shown(page, 'Audit');
  await becomes(async () => (await rows(page, 'Audit')).map((row) => [row.Who, row.Target, row.Why]), [['ann', id, 'rs-17 is gone']]);
  assert.equal((await truth()).audit, 1);
  await pass(60_000);
  assert.deepEqual((await truth()).states, { RolledBack: 1 });
});

journey('a retry storm: its kind is paused, and resumed', async (page, go) => {
  await submit({ retry: 'rpc timeout rs-17' });
  await verdicts(1);
  await go();
  await verdict(page, 'retry storm').waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('k');
  await shown(page, 'Kinds');
  const job = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'job', exact: true }) });
  await job.getByRole('button', { name: 'Pause…' }).click();
  await act(page, /^Pause/, 'Pause', { reason: 'rs-17 is being replaced' });
  await job.getByText('held until an operator resumes it').waitFor();
  const { rows: [before] } = await truth();
  await pass(3_600_000);
  assert.equal((await truth()).rows[0].attempt, before.attempt, 'no attempt is made while its kind is paused');

  await job.getByRole('button', { name: 'Resume…' }).click();
  await act(page, /^Resume/, 'Resume', { reason: 'rs-17 is back' });
  await job.getByText('stages start as they become ready').waitFor();
  await pass(3_600_000);
  assert.ok((await truth()).rows[0].attempt > before.attempt, 'it goes on');
  assert.equal((await truth()).audit, 2);
});

journey('a retry storm: its kind is paused where it is told of', async (page, go) => {
  await submit({ retry: 'rpc timeout rs-17' });
  await verdicts(1);
  await go();
  await verdict(page, 'retry storm').getByRole('button', { name: 'Pause its kind…' }).click();
  await act(page, /^Pause job/, 'Pause', { reason: 'rs-17 is being replaced' });
  const { rows: [before] } = await truth();
  await pass(3_600_000);
  assert.equal((await truth()).rows[0].attempt, before.attempt, 'no attempt is made while its kind is paused');
});

journey('one that went in circles goes on where it is told of', async (page, go) => {
  const id = await submit({ circle: 'again' });
  await verdicts(1);
  const runs = async () => (await api(`procedures/${id}/history`)).body.items.length;
  const before = await runs();
  await go();
  await verdict(page, 'no progress').getByRole('button', { name: 'Resume…' }).click();
  await act(page, /^Resume/, 'Resume', { reason: 'one more round' });
  await becomes(async () => (await truth()).audit, 1);
  assert.ok(await runs() > before, 'it went on');
  await go(`procedures/${id}`);
  await page.getByRole('button', { name: 'Resume…' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Retry now…' }).count(), 0, 'the engine retries none that goes in circles');
});

journey('one that waits says what is wrong with who holds it up', async (page, go) => {
  await api('limits/limited', { body: { limit: 1, reason: 'one at a time' } });
  const holder = await submit({ retry: 'rpc timeout rs-17' }, { kind: 'limited' });
  const id = await submit({ wait: 'go' }, { kind: 'limited' });
  await verdicts(1);
  await go(`procedures/${id}`);
  await page.getByText('retry storm').waitFor();
  await page.getByText(/keeps retrying: it has failed \d+ times/).getByRole('link', { name: holder }).click();
  await shown(page, /^limited v1/);
  await page.getByText(/the last error, of stage Work: “rpc timeout rs-17”/).waitFor();
});

journey('what one waits for is told as it is now, beside what users said', async (page, go) => {
  const holder = await submit({ hold: 'default/users' });
  const id = await submit({ hold: 'default/users' });
  const change = (path, how) => page.route(new RegExp(`/api/v1/procedures/${id}${path}$`), async (route) => {
    const body = await (await route.fetch()).json();
    how(body);
    await route.fulfill({ json: body });
  });
  const cause = { kind: 'Failed', text: 'cannot open the lock file', origin: id };
  await change('', ({ procedure }) => Object.assign(procedure, { state: 'Failed', cause, waits: 'waits for the lock a' }));
  await go(`procedures/${id}`);
  await page.getByText(`Failed with “cannot open the lock file”, and waits for the exclusive lock default/users, held by ${holder}`).waitFor();
  // Of a limit that was lifted there is no number.
  await change('/waits', (body) => Object.assign(body, { lock: null, permit: { key: 'few', limit: null, used: 2 } }));
  await go(`procedures/${id}`);
  await page.getByText('and waits for a permit of few: 2 are out').waitFor();
});

journey('one that is paused with its kind says so, and by whom', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await api('kinds/job/pause', { body: { reason: 'the servers restart' } });
  await signal(id, 'go');
  await go(`procedures/${id}`);
  await page.getByText('the kind job was paused by ann: “the servers restart”').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Resume…' }).count(), 0, 'it is not paused itself');
});

journey('a deadlock: the victim is aborted, and the other goes on', async (page, go) => {
  const [one, two] = [await submit({ both: ['x', 'y'] }), await submit({ both: ['y', 'x'] })];
  await signal(one, 'go');
  await signal(two, 'go');
  await verdicts(1);
  await go();
  await verdict(page, 'deadlock').getByRole('link', { name: 'Show the circle' }).click();
  await shown(page, 'Locks and waits');
  const banner = page.getByRole('alert').filter({ hasText: 'deadlock' });
  await banner.getByText(`The victim is ${two}`).waitFor();
  await banner.getByRole('button', { name: 'Abort…' }).click();
  await dialog(page, /^Abort/).getByText('It will roll back.').waitFor();
  const open = dialog(page, /^Abort/);
  await open.getByRole('textbox', { name: 'Reason' }).fill('a circle');
  await open.getByRole('button', { name: 'Abort', exact: true }).click();
  await open.getByText('It is done').waitFor();
  // The banner goes with the circle. What its button has done is read all the same.
  await pass(1_000);
  await page.locator('.circle').waitFor({ state: 'detached' });
  await open.getByText('It is done').waitFor();
  await open.getByRole('button', { name: 'Close' }).last().click();
  await open.waitFor({ state: 'detached' });
  await becomes(async () => (await truth()).states, { RolledBack: 1, Success: 1 });
  assert.deepEqual((await truth()).locks, []);
  await page.getByText('No lock is held, and nobody waits for one.').waitFor();
});

journey('a plan that was overtaken says so, and offers the new one', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await go(`procedures/${id}`);
  await page.getByRole('button', { name: 'Abort…' }).click();
  const open = dialog(page, /^Abort/);
  await open.getByText('It will roll back.').waitFor();
  const overtaking = await api(`procedures/${id}/priority`, { body: { priority: 7, reason: 'in between' } });
  assert.equal(overtaking.status, 200);
  await open.getByRole('textbox', { name: 'Reason' }).fill('late');
  await page.route('**/abort?dry_run=true', (route) => route.continue());
  await open.getByRole('button', { name: 'Abort', exact: true }).click();
  await open.getByRole('alert').waitFor();
  assert.equal((await truth()).audit, 1, 'the overtaken plan changed nothing');
  await open.getByText('It will roll back.').waitFor();
  await open.getByRole('button', { name: 'Abort', exact: true }).click();
  await open.getByText('It is done').waitFor();
  await becomes(async () => (await truth()).states, { RolledBack: 1 });
}, { expected: /409/ });
