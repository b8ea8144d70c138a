// What users' data is shown and saved, and what is written down of it.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after as hook } from 'node:test';
import { after, becomes, journey, rows, submit } from '../kit.mjs';

after(hook);

journey('a payload is revealed and a family saved, each with its entry in the audit', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await go(`procedures/${id}?tab=data`);
  await page.getByText('Redacted: only its kind and size are shown.').waitFor();
  await page.getByRole('button', { name: 'Reveal…' }).click();
  await page.getByRole('textbox', { name: 'Reason' }).fill('a customer asks');
  await page.getByRole('button', { name: 'Reveal', exact: true }).click();
  await page.getByText('"wait": "go"').waitFor();
  await page.getByRole('button', { name: 'Export…' }).click();
  await page.getByRole('textbox', { name: 'Reason' }).fill('a copy for the test');
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export', exact: true }).click();
  const family = JSON.parse(await readFile(await (await saved).path(), 'utf8'));
  assert.deepEqual([family.type, family.family], ['family', 1], 'one line, as an import takes it');
  await page.getByRole('tab', { name: 'Actions and audit' }).click();
  await becomes(async () => (await rows(page, 'Acts')).map((row) => [row.What, row.Why]), [
    [`export the family of ${id}`, 'a copy for the test'], [`reveal the values of ${id}`, 'a customer asks'],
  ]);
});
