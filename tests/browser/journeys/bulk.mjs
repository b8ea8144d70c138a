// One verb for all of a list: planned, begun, and followed on its own page to its end.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after as hook } from 'node:test';
import { after, api, becomes, dialog, facts, journey, many, pass, rows, shown, submit, truth, until } from '../kit.mjs';

after(hook);

const BULK = 'procession.bulk';
const told = (page) => page.getByRole('tabpanel', { name: 'Bulk' }).getByRole('status');
const outcomes = (page) => rows(page, 'Outcomes');
const progress = async (page) => {
  const bar = page.getByRole('progressbar', { name: 'Asked so far' });
  return [Number(await bar.getAttribute('aria-valuenow')), Number(await bar.getAttribute('aria-valuemax'))];
};
/** While its kind is paused a bulk that is begun stays where it is. */
const hold = () => api(`kinds/${BULK}/pause`, { body: { reason: 'to look at it' } });
const release = () => api(`kinds/${BULK}/resume`, { body: { reason: 'looked at' } });

/** Begins a bulk for all that the list shows, and goes to its page. */
async function begin(page, verb, reason, count) {
  await page.getByRole('button', { name: 'All of these…' }).click();
  await page.getByRole('button', { name: `${verb}…`, exact: true }).click();
  const open = dialog(page, new RegExp(`^${verb}`));
  await open.getByText(`It would be asked of ${count} procedures.`).waitFor();
  await open.getByRole('textbox', { name: 'Reason' }).fill(reason);
  await open.getByRole('button', { name: verb, exact: true }).click();
  await open.getByText('It is begun, and on disk.').waitFor();
  await open.getByRole('link', { name: /^\d+\.0$/ }).click();
  await page.getByRole('heading', { level: 1, name: new RegExp(`^${BULK}`) }).waitFor();
  await page.getByRole('tab', { name: 'Bulk', selected: true }).waitFor();
}

journey('a bulk from a list, followed to its end', async (page, go) => {
  await many({ wait: 'go' }, 40);
  await hold();
  await go('procedures?filter=kind%3Ajob');
  await shown(page, 'Procedures');
  await begin(page, 'Pause', 'a quiet night', 40);
  await becomes(() => told(page).innerText(), '0 of 40 done · 0 refused · 40 left');
  await page.getByText('None of them was asked yet.').waitFor();
  assert.deepEqual(await progress(page), [0, 40]);
  const said = await facts(page);
  assert.deepEqual([said.Verb, said['For all of'], said['Asked by'], said.Reason], ['Pause', 'kind:job', 'ann', 'a quiet night']);
  // It goes on, and the page with it.
  await release();
  await pass(1_000);
  await becomes(() => told(page).innerText(), '40 of 40 done · 0 refused · none is left');
  assert.deepEqual(await progress(page), [40, 40]);
  const of = await truth();
  assert.equal(of.rows.filter((row) => row.paused).length, 40);
  assert.deepEqual(of.bulks, { '41.0': { done: 40, refused: 0, why: [] } });
  assert.equal(of.audit, 42, 'one entry each, and two for the kind');
  const table = await outcomes(page);
  assert.deepEqual(table[0], { Procedure: '1.0', 'What became of it': 'done', Why: '–', 'Entry in the audit': '2' });
  await page.getByText('Ended well').waitFor();
  // What the filter admits now is a click away.
  await page.getByRole('link', { name: 'kind:job', exact: true }).click();
  await shown(page, 'Procedures');
  assert.equal(new URL(page.url()).searchParams.get('filter'), 'kind:job');
});

journey('a bulk says who refused, and why', async (page, go) => {
  await many({ wait: 'go' }, 3);
  await submit({ retry: 'rpc timeout' });
  await pass(5_000);
  await go('procedures?filter=kind%3Ajob');
  await shown(page, 'Procedures');
  await begin(page, 'Retry now', 'the server is back', 4);
  await pass(1_000);
  await becomes(() => told(page).innerText(), '1 of 4 done · 3 refused · none is left');
  const of = (await truth()).bulks['5.0'];
  assert.deepEqual([of.done, of.refused], [1, 3]);
  const table = await outcomes(page);
  // What somebody may have to look at is first.
  assert.deepEqual(table.map((row) => [row.Procedure, row['What became of it']]), [['1.0', 'refused'], ['2.0', 'refused'], ['3.0', 'refused'], ['4.0', 'done']]);
  assert.deepEqual(table.slice(0, 3).map((row) => row.Why), of.why);
  await page.getByRole('table', { name: 'Outcomes' }).getByRole('link', { name: '4.0' }).click();
  await page.getByRole('heading', { level: 1, name: /^job v1 4\.0/ }).waitFor();
  await page.getByRole('table', { name: 'Acts' }).getByText('the server is back').waitFor();
});

journey('a bulk sets priorities, and asks which', async (page, go) => {
  await many({ wait: 'go' }, 3);
  await go('procedures?filter=kind%3Ajob');
  await shown(page, 'Procedures');
  await page.getByRole('button', { name: 'All of these…' }).click();
  await page.getByRole('button', { name: 'Priority…', exact: true }).click();
  const open = dialog(page, 'Priority all of kind:job');
  await open.getByRole('spinbutton', { name: 'New priority' }).fill('7');
  await open.getByText('It would be asked of 3 procedures.').waitFor();
  await open.getByRole('textbox', { name: 'Reason' }).fill('first things first');
  await open.getByRole('button', { name: 'Priority', exact: true }).click();
  await open.getByText('It is begun, and on disk.').waitFor();
  await pass(1_000);
  await becomes(async () => (await truth()).rows.filter((row) => row.kind === 'job').map((row) => row.priority), [7, 7, 7]);
  await open.getByRole('link', { name: '4.0' }).click();
  await becomes(async () => (await facts(page)).Verb, 'Priority 7');
});

journey('a bulk that is aborted says whom it did not ask', async (page, go) => {
  await many({ wait: 'go' }, 5);
  await hold();
  await go('procedures?filter=kind%3Ajob');
  await shown(page, 'Procedures');
  await begin(page, 'Pause', 'a mistake', 5);
  await page.getByRole('button', { name: 'Abort…' }).click();
  const open = dialog(page, /^Abort/);
  await open.getByRole('textbox', { name: 'Reason' }).fill('the wrong list');
  await open.getByRole('button', { name: 'Abort', exact: true }).click();
  await open.getByText('It is done').waitFor();
  await open.getByRole('button', { name: 'Close' }).last().click();
  await becomes(() => told(page).innerText(), '0 of 5 done · 0 refused · 5 procedures were not asked before it ended');
  assert.equal((await truth()).rows.filter((row) => row.paused && row.kind === 'job').length, 0);
});

journey('a bulk by keyboard alone', async (page, go) => {
  await many({ wait: 'go' }, 3);
  await go();
  await shown(page, 'Attention');
  const focused = () => page.evaluate(() => document.activeElement?.innerText?.trim() ?? '');
  const reach = async (name) => {
    for (let steps = 0; steps < 40; steps += 1) {
      if (name.test(await focused())) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not lead to ${name}`);
  };
  await page.keyboard.press('/');
  await shown(page, 'Procedures');
  await until(() => page.getByRole('combobox', { name: 'Filter' }).evaluate((field) => field === document.activeElement), 'the filter has the focus');
  await page.keyboard.type('kind:job');
  await page.getByRole('button', { name: 'All of these…' }).waitFor();
  await becomes(async () => (await rows(page, 'Procedures')).length, 3);
  // Forward from the frame of the page to the list's own buttons.
  await page.keyboard.press('Escape');
  await page.evaluate(() => document.querySelector('main')?.setAttribute('tabindex', '-1'));
  await page.evaluate(() => document.querySelector('main')?.focus());
  await page.keyboard.press('Tab');
  await reach(/^All of these…$/);
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await reach(/^Abort…$/);
  await page.keyboard.press('Escape');
  await becomes(() => page.getByRole('menu').count(), 0);
  await reach(/^All of these…$/);
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await reach(/^Pause…$/);
  await page.keyboard.press('Enter');
  await dialog(page, /^Pause/).getByText('It would be asked of 3 procedures.').waitFor();
  await page.keyboard.type('by hand');
  await page.keyboard.press('Enter');
  await dialog(page, /^Pause/).getByText('It is begun, and on disk.').waitFor();
  await reach(/^4\.0$/);
  await page.keyboard.press('Enter');
  await pass(1_000);
  await becomes(() => told(page).innerText(), '3 of 3 done · 0 refused · none is left');
  assert.equal((await truth()).rows.filter((row) => row.paused).length, 3);
  await reach(/^History\s/);
  await page.keyboard.press('Enter');
  await page.getByRole('table', { name: 'History' }).waitFor();
});

journey('the audit exports all that its filter admits, not what is on the screen alone', async (page, go) => {
  await many({ wait: 'go' }, 620);
  const filter = 'kind:job';
  const { body: plan } = await api('bulk/pause?dry_run=true', { body: { filter, reason: 'a night' } });
  await api('bulk/pause', { body: { filter, reason: 'a night', expected: plan.revision } });
  await pass(1_000);
  await becomes(async () => (await truth()).rows.filter((row) => row.paused).length, 620);
  await api('kinds/limited/pause', { body: { reason: 'another' } });
  await pass(1_000);
  await go('audit?filter=night');
  await shown(page, 'Audit');
  await page.getByText('500 acts, and older ones').waitFor();
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export' }).click();
  const acts = JSON.parse(await readFile(await (await saved).path(), 'utf8'));
  assert.equal(acts.length, 620);
  assert.deepEqual([acts[0].who, acts[0].why, acts[0].verb], ['ann', 'a night', 'pause 620.0']);
  assert.equal(acts.at(-1).verb, 'pause 1.0');
});
