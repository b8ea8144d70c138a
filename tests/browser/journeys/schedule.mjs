// A schedule: when it runs next, and a run that a person asks for.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, comes, dialog, journey, schedule, shown, truth, until } from '../kit.mjs';

after(hook);

const jobs = async () => (await truth()).rows.filter(({ kind }) => kind === 'job');

journey('a schedule says when it runs next, and runs now when it is asked to', async (page, go) => {
  const id = await schedule();
  assert.deepEqual(await jobs(), []);
  await go(`procedures/${id}`);
  await shown(page, /^procession.schedule v1/);
  await page.getByText('Next run at 11:00:00').waitFor();
  await page.getByRole('button', { name: 'Run now…' }).click();
  const asked = dialog(page, /^Run now/);
  const doIt = asked.getByRole('button', { name: 'Run now', exact: true });
  await until(() => doIt.isEnabled(), 'a run needs no reason');
  await doIt.click();
  await asked.getByText('It is done').waitFor();
  await asked.getByRole('button', { name: 'Close' }).last().click();
  await asked.waitFor({ state: 'detached' });
  await becomes(async () => (await jobs()).length, 1);
  // Its times stay as they are. Its stage has begun and ended meanwhile, which is two changes.
  await comes(page.getByText('Next run at 11:00:00'));
});

