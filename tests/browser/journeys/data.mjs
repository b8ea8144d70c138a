// What users' data is shown and saved, and what is written down of it.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after as hook } from 'node:test';
import { after, api, becomes, comes, journey, pass, rows, shown, signal, submit } from '../kit.mjs';

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

journey('a whole number beyond 2^53 is started and revealed with its own digits', async (page, go) => {
  await go('kinds');
  await page.getByRole('row').filter({ hasText: /^job/ }).getByRole('button', { name: 'Start…' }).click();
  await page.getByRole('textbox', { name: /^Value/ }).fill('{"sleep": 9007199254740993}');
  await page.getByText('The kind takes this value.').waitFor();
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await shown(page, /^job v1/);
  await page.getByRole('tab', { name: 'Payload and output' }).click();
  await page.getByRole('button', { name: 'Reveal…' }).click();
  await page.getByRole('textbox', { name: 'Reason' }).fill('a customer asks');
  await page.getByRole('button', { name: 'Reveal', exact: true }).click();
  await page.getByText('"sleep": 9007199254740993').waitFor();
});

journey('what was revealed says as of when, and is revealed again once the procedure has changed', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await go(`procedures/${id}?tab=data`);
  const reveal = async (/** @type {string} */ button) => {
    await page.getByRole('button', { name: button }).click();
    await page.getByRole('textbox', { name: 'Reason' }).fill('a customer asks');
    await page.getByRole('button', { name: 'Reveal', exact: true }).click();
  };
  await reveal('Reveal…');
  await page.getByRole('heading', { name: /^Payload of job, .*, as of [\d:]+$/ }).waitFor();
  assert.equal(await page.getByRole('button', { name: /^Reveal/ }).count(), 0, 'it is as it was revealed');
  await signal(id, 'go');
  await comes(page.getByRole('heading', { name: /^Payload of job, .*: the procedure has changed since$/ }));
  await reveal('Reveal again…');
  await page.getByRole('heading', { name: /^Payload of job, .*, as of [\d:]+$/ }).waitFor();
});

journey('tabs say how many there are, and signals how much they carry', async (page, go) => {
  const id = await submit({ wait: 'go' });
  const tabs = () => page.getByRole('tab').evaluateAll((all) => all.map((one) => one.textContent));
  await go(`procedures/${id}?tab=signals`);
  await shown(page, /^job v1/);
  await becomes(tabs, ['Waits', 'History 2', 'Payload and output', 'Signals 0', 'Trace links', 'Actions and audit 0']);
  await signal(id, 'noise');
  await api(`procedures/${id}/priority`, { body: { priority: 3, reason: 'sooner' } });
  await pass(1_000);
  await becomes(tabs, ['Waits', 'History 2', 'Payload and output', 'Signals 1', 'Trace links', 'Actions and audit 1']);
  const table = page.getByRole('tabpanel', { name: 'Signals' }).getByRole('table');
  await becomes(() => table.getByRole('row').last().getByRole('cell').allInnerTexts(), ['noise', '–', '4 B', 'kept', 'the stage that waits for it takes it']);
  for (let at = 0; at < 16; at += 1) await signal(id, 'noise');
  await signal(id, 'go');
  await pass(1_000);
  await becomes(async () => (await tabs()).filter((name) => /History|Signals/.test(name)), ['History 3', 'Signals 16+']);
});

journey('a trace is led to where the host says so, and named by its id elsewhere', async (page, go) => {
  const [trace, span] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
  const id = await submit({ wait: 'go' }, { trace: `00-${trace}-${span}-01` });
  await go(`procedures/${id}?tab=traces`);
  const link = page.getByRole('link', { name: trace });
  await link.waitFor();
  const [href, target, rel] = await link.evaluate((one) => ['href', 'target', 'rel'].map((name) => one.getAttribute(name)));
  assert.deepEqual([href, target, rel], [`http://tracing.example/trace/${trace}?uiFind=${span}`, '_blank', 'noopener noreferrer']);
  await page.goto(page.url().replace('/all/', '/reader/'));
  await page.getByText(trace, { exact: true }).waitFor();
  assert.equal(await link.count(), 0);
});
