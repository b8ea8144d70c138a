// The list: its filter is the address, its pages follow the scroll bar, and its words say what was looked at.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, journey, many, pass, rows, shown, submit, truth, until } from '../kit.mjs';

after(hook);

const filter = (page) => page.getByRole('combobox', { name: 'Filter' });
const note = (page) => page.getByRole('main').getByRole('status');
const ids = async (page) => (await rows(page, 'Procedures')).map((row) => row.Id);
const inAddress = (page) => new URL(page.url()).searchParams.get('filter');

journey('a filter is in the address: back, forward, reload', async (page, go) => {
  const [event, timer] = [await submit({ wait: 'go' }, { key: 'req-1' }), await submit({ sleep: 60_000 })];
  await submit({ end: 'well' });
  await go('procedures');
  await becomes(() => ids(page), [timer, event]);
  await filter(page).fill('reason:timer');
  await becomes(() => ids(page), [timer]);
  assert.equal(inAddress(page), 'reason:timer');
  await page.getByRole('button', { name: 'Finished', exact: true }).click();
  await becomes(() => ids(page), ['3.0']);
  assert.equal(inAddress(page), 'state:ended');
  await page.goBack();
  await becomes(() => ids(page), [timer]);
  assert.equal(await filter(page).inputValue(), 'reason:timer');
  await page.goForward();
  await becomes(() => ids(page), ['3.0']);
  await page.reload();
  await becomes(() => ids(page), ['3.0']);
  assert.equal(await filter(page).inputValue(), 'state:ended');
  await filter(page).fill('req-');
  await becomes(() => ids(page), [event]);
});

journey('labels stand below the key, lead to all that have them, and are asked for by the filter', async (page, go) => {
  const labels = { customer: '4711', city: 'New "York", NY' };
  const mine = await submit({ wait: 'go' }, { key: 'order-1', labels });
  const done = await submit({ end: 'well' }, { labels });
  await submit({ wait: 'go' }, { labels: { customer: '4712' } });
  await go('procedures');
  await filter(page).fill('label:customer=4711');
  await becomes(() => ids(page), [mine]);
  const [row] = await rows(page, 'Procedures');
  assert.match(row.Key, /^order-1\s*city=New "York", NY customer=4711$/);
  await page.getByRole('link', { name: mine }).click();
  await shown(page, /^job v1/);
  await page.getByRole('link', { name: labels.city }).click();
  await becomes(() => ids(page), [done, mine]);
  assert.equal(inAddress(page), 'label:"city=New \\"York\\", NY" state:live,ended');
});

journey('a key leads to its procedure, from the address and from the filter, also when its result has gone', async (page, go) => {
  const id = await submit({ wait: 'go' }, { key: 'order/A 1' });
  await submit({ wait: 'go' }, { key: 'order-2' });
  const path = () => new URL(page.url()).pathname.replace(/.*procedures/, '');
  await go(`procedures/${encodeURIComponent('order/A 1')}`);
  await shown(page, /^job v1/);
  await becomes(async () => path(), `/${id}`);
  await go('procedures');
  await filter(page).fill('order-2');
  await filter(page).press('Enter');
  await becomes(async () => path(), '/2.0');
  // A key that reads like an id, one that ends like a file, and one that ends with a slash.
  for (const key of ['7', 'a.json', 'b/']) {
    const named = await submit({ wait: 'go' }, { key });
    await go(`procedures/key:${key}`);
    await shown(page, /^job v1/);
    await becomes(async () => path(), `/${named}`);
  }
  await go('procedures/order-3');
  await until(() => page.getByText('No procedure with the key "order-3" is known.').isVisible(), 'it says so');
}, { expected: /404.*order-3/ });

journey('1,200 rows come in pages, as they are scrolled to', async (page, go) => {
  await many({ wait: 'go' }, 1_200);
  await go('procedures');
  await shown(page, 'Procedures');
  await becomes(() => note(page).innerText(), '1,200 rows · the newest 100 are here · 100 scanned');
  const table = page.getByRole('table', { name: 'Procedures' });
  const end = () => table.evaluate((element) => { element.scrollTop = element.scrollHeight; });
  await until(async () => {
    await end();
    return (await note(page).innerText()) === '1,200 rows · 1,200 scanned';
  }, 'the last page is there');
  await end();
  const every = (await truth()).rows;
  await until(async () => (await ids(page)).at(-1) === every[0].id, 'the last row is in sight');
  assert.equal(await table.getAttribute('aria-rowcount'), '1201');
});

journey('an empty list says what else there is', async (page, go) => {
  await many({ end: 'well' }, 12);
  await go('procedures');
  const main = page.getByRole('main');
  await main.getByText('Nothing is unfinished.').waitFor();
  await main.getByRole('button', { name: 'Search the 12 newest finished ones too' }).click();
  await becomes(async () => (await ids(page)).length, 12);
  await filter(page).fill('kind:nothing_like_it');
  await main.getByText('No running procedure matches.').waitFor();
});

journey('a filter that cannot be read says where', async (page, go) => {
  await submit({ wait: 'go' });
  await go('procedures');
  await becomes(() => ids(page), ['1.0']);
  await filter(page).fill('state:waiting reson:lock');
  const alert = page.getByRole('main').getByRole('alert');
  await alert.waitFor();
  assert.match(await alert.innerText(), /^The filter cannot be read: .*reson/);
  await becomes(() => filter(page).getAttribute('aria-invalid'), 'true');
  await filter(page).fill('state:waitingtimeout');
  await becomes(() => ids(page), ['1.0']);
  await becomes(() => filter(page).getAttribute('aria-invalid'), 'false');
}, { expected: /400/ });

journey('ages are those of the engine, to the second', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await pass(192_000);
  await go('procedures');
  await becomes(async () => (await rows(page, 'Procedures')).map((row) => row.Since), ['3 m 12 s']);
  await go(`procedures/${id}`);
  await shown(page, /^job v1/);
  const age = page.getByRole('main').locator('time').filter({ hasText: /^3 m 12 s$/ }).first();
  await age.waitFor();
  assert.match(await age.getAttribute('title'), /2026.*10:00:00.*UTC/);
  await pass(3_600_000);
  await page.reload();
  await page.getByText('for 1 h 3 m').waitFor();
}, { still: true });

journey('the newest are first, a title sorts by its column, and the note says how many there are', async (page, go) => {
  await many({ wait: 'go' }, 150);
  await submit({ retry: 'no' }, { key: 'a' });
  await submit({ wait: 'go' }, { key: 'b' });
  await go('procedures');
  await becomes(async () => (await ids(page)).slice(0, 2), ['152.0', '151.0']);
  await becomes(() => note(page).innerText(), '152 rows · the newest 100 are here · 100 scanned');
  const title = (/** @type {string} */ name) => page.getByRole('columnheader', { name });
  await title('Attempt').getByRole('button').click();
  await title('Attempt').getByRole('button').click();
  await becomes(async () => (await ids(page))[0], '151.0');
  assert.equal(await title('Attempt').getAttribute('aria-sort'), 'descending');
  assert.equal(new URL(page.url()).searchParams.get('sort'), '-Attempt');
  await becomes(() => note(page).innerText(), '152 rows · the newest 100 are here, sorted · 100 scanned');
  // By its id: the oldest of all, not those of what is here.
  await title('Id').getByRole('button').click();
  await becomes(async () => (await ids(page)).slice(0, 2), ['1.0', '2.0']);
  await page.reload();
  await becomes(async () => (await ids(page)).slice(0, 2), ['1.0', '2.0']);
  await filter(page).fill('kind:job');
  await becomes(() => note(page).innerText(), 'more than 100 rows · the oldest 100 are here · 100 scanned');
});

journey('columns are chosen, and stay so', async (page, go) => {
  await submit({ wait: 'go' }, { key: 'a' });
  await go('procedures');
  await shown(page, 'Procedures');
  const titles = () => page.getByRole('columnheader').allInnerTexts();
  await becomes(titles, ['State', 'Id', 'Kind', 'Key', 'Why, and what comes next', 'Since', 'Attempt', 'Prio', 'Root']);
  await page.getByRole('button', { name: 'Columns' }).click();
  const menu = page.getByRole('group', { name: 'Columns' });
  for (const name of ['Prio', 'Root', 'Attempt']) await menu.getByRole('checkbox', { name }).uncheck();
  await menu.getByRole('checkbox', { name: 'Stage' }).check();
  const chosen = ['State', 'Id', 'Kind', 'Key', 'Why, and what comes next', 'Since', 'Stage'];
  await becomes(titles, chosen);
  await menu.getByRole('combobox', { name: 'Sorted by' }).selectOption('Stage');
  await becomes(() => page.getByRole('columnheader', { name: 'Stage' }).getAttribute('aria-sort'), 'ascending');
  await page.keyboard.press('Escape');
  await menu.waitFor({ state: 'detached' });
  await page.reload();
  await becomes(titles, chosen);
  assert.equal((await rows(page, 'Procedures'))[0].Stage, 'Finish');
  await page.getByRole('button', { name: 'Columns' }).click();
  await menu.getByRole('button', { name: 'The usual ones' }).click();
  await becomes(async () => (await titles()).length, 9);
});

journey('what is written at the moment that the completions are drawn is not missed', async (page, go) => {
  const mine = await submit({ wait: 'go' }, { labels: { customer: '4711' } });
  await submit({ wait: 'go' });
  await go('procedures');
  await becomes(async () => (await ids(page)).length, 2);
  // An observer hears of the list before anything that is due for the next frame.
  await filter(page).evaluate((field) => new MutationObserver((_, observer) => {
    if (!document.querySelector('#choices')) return;
    observer.disconnect();
    field.value = 'label:customer=4711';
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }).observe(document.body, { childList: true, subtree: true }));
  await filter(page).focus();
  await becomes(() => filter(page).inputValue(), 'label:customer=4711');
  // Nothing is left to complete, so nothing covers the row.
  await page.getByRole('link', { name: mine }).click();
  await shown(page, /^job v1/);
});

journey('the filter offers fields, states, kinds, reasons, rules, and labels and keys that are shown', async (page, go) => {
  const mine = await submit({ wait: 'go' }, { key: 'order-1', labels: { customer: '4711', city: 'New York' } });
  await submit({ sleep: 60_000 }, { kind: 'limited' });
  await go('procedures');
  await becomes(async () => (await ids(page)).length, 2);
  const choices = page.getByRole('listbox', { name: 'Completions' });
  const offered = () => choices.getByRole('option').evaluateAll((all) => all.map((one) => one.querySelector('bdi').textContent));
  await filter(page).click();
  await becomes(async () => (await offered()).slice(0, 4), ['state:', 'reason:', 'kind:', 'key:']);
  // The list is drawn before the field says that it is open.
  await becomes(() => filter(page).getAttribute('aria-expanded'), 'true');
  // By keyboard: the field, then its value.
  await page.keyboard.type('re');
  await becomes(offered, ['reason:']);
  await page.keyboard.press('ArrowDown');
  await becomes(() => filter(page).getAttribute('aria-activedescendant'), 'choice-0');
  await page.keyboard.press('Enter');
  await page.keyboard.type('ev');
  await becomes(async () => (await offered())[0], 'event');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Tab');
  await becomes(() => filter(page).inputValue(), 'reason:event ');
  await becomes(() => ids(page), [mine]);
  await becomes(() => filter(page).getAttribute('aria-expanded'), 'false');
  // By mouse: a label of a row that is shown, with a blank in its value.
  await page.keyboard.type('label:');
  await becomes(offered, ['city=', 'customer=']);
  await choices.getByRole('option', { name: 'city=' }).click();
  await becomes(offered, ['"city=New York"']);
  await choices.getByRole('option').first().click();
  await becomes(() => filter(page).inputValue(), 'reason:event label:"city=New York" ');
  await becomes(() => ids(page), [mine]);
  for (const [text, first] of [['kind:l', 'limited'], ['state:live,en', 'ended'], ['rule:dead', 'deadlock'], ['key:', 'order-1']]) {
    await filter(page).fill(text);
    await becomes(async () => (await offered()).includes(first), true);
  }
  // Esc leaves the field, and the list with it.
  await page.keyboard.press('Escape');
  await choices.waitFor({ state: 'detached' });
  assert.equal(await filter(page).evaluate((field) => field === document.activeElement), false);
  await becomes(() => filter(page).getAttribute('aria-expanded'), 'false');
}, { expected: /400/ });
