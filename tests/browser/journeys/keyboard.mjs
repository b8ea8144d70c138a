// Everything without a mouse.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, dialog, journey, many, pass, rows, SCREENS, shown, signal, submit, truth, until } from '../kit.mjs';

after(hook);

const focused = (page) => page.evaluate(() => {
  const element = document.activeElement;
  return element?.getAttribute('aria-label') ?? element?.innerText?.split('\n')[0] ?? '';
});

journey('every screen by its letter', async (page, go) => {
  await submit({ wait: 'go' });
  await go();
  await shown(page, 'Attention');
  for (const { letter, title, path } of [...SCREENS.slice(1), SCREENS[0]]) {
    await page.keyboard.press('g');
    await page.keyboard.press(letter);
    await shown(page, title);
    assert.ok(page.url().endsWith(`/all/${path}`), page.url());
    await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: title }).and(page.locator('[aria-current=page]')).waitFor();
  }
  // Eight screens in a moment are still one stream.
  await page.getByRole('status').filter({ hasText: /^live$/ }).waitFor();
  await page.keyboard.press('?');
  const keys = dialog(page, 'Keys and filters');
  await keys.getByText('next and previous row').waitFor();
  for (const { title } of SCREENS) await keys.getByText(title, { exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await keys.waitFor({ state: 'detached' });
});

journey('keys go through verdicts of one rule and one procedure, too', async (page, go) => {
  await submit({ wait: 'go' });
  await page.route('**/api/v1/attention*', async (route) => {
    const body = await (await route.fetch()).json();
    const large = (what) => ({ rule: 'size', procedure: '1.0', since: body.now, facts: { kind: 'job', stage: 'Work', what }, deadlock: null, text: `1.0 of job has a large ${what}` });
    await route.fulfill({ json: { ...body, verdicts: ['history', 'payload', 'tree'].map(large) } });
  });
  await go();
  await page.getByText('has a large tree').waitFor();
  for (const what of ['history', 'payload', 'tree']) {
    await page.keyboard.press('j');
    const verdict = page.getByRole('listitem').filter({ hasText: `has a large ${what}` });
    await until(() => verdict.evaluate((row) => row === document.activeElement), `that on the ${what} has the focus`);
    assert.equal(await page.locator('[data-marked]').count(), 1);
  }
});

journey('filter, rows, Enter, Esc; focus outlives a live update', async (page, go) => {
  await many({ wait: 'go' }, 5);
  await go();
  await shown(page, 'Attention');
  await page.keyboard.press('/');
  await shown(page, 'Procedures');
  await until(() => page.getByRole('combobox', { name: 'Filter' }).evaluate((field) => field === document.activeElement), 'the filter has the focus');
  await page.keyboard.type('kind:job');
  await page.keyboard.press('Escape');
  // Without the filter there are as many rows: it must be the filter's that the keys move in.
  await page.waitForURL(/filter=kind%3Ajob/);
  await becomes(async () => (await rows(page, 'Procedures')).length, 5);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  const second = page.getByRole('row').filter({ has: page.getByRole('link', { name: '4.0', exact: true }) });
  const hasFocus = () => second.evaluate((row) => row === document.activeElement);
  await until(hasFocus, 'the second row has the focus');
  await signal('5.0', 'go');
  await pass(1_000);
  await becomes(async () => (await rows(page, 'Procedures')).map((row) => row.Id), ['4.0', '3.0', '2.0', '1.0']);
  assert.equal(await hasFocus(), true, 'the focus is on the row, wherever that is now');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: /4\.0/ }).waitFor();
});

journey('verdicts by j, k, Enter and y, as rows of tables', async (page, go) => {
  const stuck = await submit({ stuck: 'cannot' });
  const [one, two] = [await submit({ both: ['x', 'y'] }), await submit({ both: ['y', 'x'] })];
  await signal(one, 'go');
  await signal(two, 'go');
  await pass(120_000);
  const told = (await truth()).told.map((verdict) => verdict.rule).sort();
  assert.deepEqual(told, ['deadlock', 'rollback_failed']);
  await go();
  await shown(page, 'Attention');
  const verdicts = page.getByRole('main').getByRole('list').first().getByRole('listitem');
  const marked = () => verdicts.evaluateAll((all) => all.map((one) => one === document.activeElement));
  await page.keyboard.press('j');
  await becomes(marked, [true, false]);
  await page.keyboard.press('y');
  await page.getByText(`The browser does not let ${stuck} be copied`).waitFor();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.keyboard.press('y');
  await page.getByText(`${stuck} is copied`).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), stuck);
  await page.keyboard.press('j');
  await becomes(marked, [false, true]);
  await page.keyboard.press('j');
  await becomes(marked, [false, true]);
  // A live update leaves the mark where it is.
  await submit({ wait: 'go' });
  await pass(2_000);
  await page.getByRole('link', { name: /^4\s*active/ }).waitFor();
  assert.deepEqual(await marked(), [false, true]);
  await page.keyboard.press('Enter');
  await shown(page, 'Locks and waits');
  assert.match(page.url(), /waits\?id=[23]\.0$/);
  await page.goBack();
  await shown(page, 'Attention');
  await page.keyboard.press('j');
  await becomes(marked, [true, false]);
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: new RegExp(stuck) }).waitFor();
});

journey('an action by keyboard alone, and Esc leaves it', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await go(`procedures/${id}`);
  await shown(page, /^job v1/);
  const reach = async (name) => {
    for (let steps = 0; steps < 60; steps += 1) {
      await page.keyboard.press('Tab');
      if ((await focused(page)) === name) return;
    }
    throw new Error(`Tab does not lead to ${name}`);
  };
  await reach('Abort…');
  await page.keyboard.press('Enter');
  await dialog(page, /^Abort/).getByText('It will roll back.').waitFor();
  await page.keyboard.press('Escape');
  await dialog(page, /^Abort/).waitFor({ state: 'detached' });
  await until(async () => (await focused(page)) === 'Abort…', 'the focus is back where it was');
  await page.keyboard.press('Enter');
  await dialog(page, /^Abort/).getByText('It will roll back.').waitFor();
  await until(() => page.getByRole('textbox', { name: 'Reason' }).evaluate((field) => field === document.activeElement), 'the reason has the focus');
  await page.keyboard.type('by hand');
  await page.keyboard.press('Enter');
  await dialog(page, /^Abort/).getByText('It is done').waitFor();
  await becomes(async () => (await truth()).states, { RolledBack: 1 });
});

journey('Tab reaches every control of every screen', async (page, go) => {
  const id = await submit({ retry: 'no' });
  await submit({ wait: 'go' }, { kind: 'limited' });
  await pass(120_000);
  for (const screen of [...SCREENS, { path: `procedures/${id}`, title: /^job v1/ }]) {
    await go(screen.path);
    await shown(page, screen.title);
    // Links within rows are reached by j, k and Enter on their row; all else must be in the order of Tab.
    const wanted = await page.locator('a[href], button:not([disabled]), input').evaluateAll((all) => {
      all.forEach((one, at) => { one.dataset.tried = String(at); });
      return all.filter((one) => one.tabIndex >= 0).length;
    });
    const seen = new Set();
    for (let steps = 0; steps < wanted * 2 + 10 && seen.size < wanted; steps += 1) {
      await page.keyboard.press('Tab');
      const [at, isSeen] = await page.evaluate(() => {
        const element = document.activeElement;
        const style = element ? getComputedStyle(element) : null;
        return [element?.dataset.tried ?? null, !style || style.outlineStyle !== 'none' || style.boxShadow !== 'none'];
      });
      if (at === null) continue;
      seen.add(at);
      assert.equal(isSeen, true, `focus cannot be seen on ${await focused(page)}, ${screen.path}`);
    }
    assert.equal(seen.size, wanted, `controls of ${screen.path || 'attention'}`);
  }
});

journey('times say when exactly, where the focus is', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await pass(192_000);
  const told = (time) => time.evaluate((element) => getComputedStyle(element, '::after').content);
  await go('procedures');
  const age = page.getByRole('table', { name: 'Procedures' }).locator('time').first();
  await age.waitFor();
  assert.equal(await told(age), 'none');
  await page.keyboard.press('j');
  await until(async () => /Mar 01, 2026, 10:00:00\.\d+ UTC/.test(await told(age)), 'the row with the focus says when');
  await go(`procedures/${id}`);
  await shown(page, /^job v1/);
  const since = page.getByTitle(/^since /).first();
  for (let steps = 0; steps < 40 && (await told(since)) === 'none'; steps += 1) await page.keyboard.press('Tab');
  assert.match(await told(since), /since Mar 01, 2026, 10:00:00\.\d+ UTC/);
}, { still: true });
