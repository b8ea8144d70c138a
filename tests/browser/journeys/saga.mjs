// A saga that rests: found, understood from the picture of its machine, sent forward, and seen to its end.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { act, after, becomes, comes, dialog, journey, pass, repair, rows, saga, shown, truth, until } from '../kit.mjs';

after(hook);

/** @typedef {import('playwright-core').Page} Page */

const picture = (/** @type {Page} */ page) => page.getByRole('region', { name: 'The machine' });

/** What is drawn: each state with what it says of itself. */
const drawn = (/** @type {Page} */ page) => picture(page).getByRole('option').evaluateAll((all) => all.map((node) => [...node.querySelectorAll(':scope > text.name, :scope > .words text')].map((text) => text.textContent)));

/** States that are in the colour of attention. */
const attention = (/** @type {Page} */ page) => picture(page).locator('.spot.rests text.name').allTextContents();

/** How many arrows were taken. */
const taken = (/** @type {Page} */ page) => picture(page).locator('.way.taken').count();

/** Buttons that answer a question of any other procedure. */
const answers = (/** @type {Page} */ page) => page.getByRole('button', { name: /^(Answer|Succeed|Fail)…/ });

/** What the table says. */
const table = async (/** @type {Page} */ page) => Object.fromEntries((await rows(page, 'States')).map((row) => [row.State, [row.Status, row.Tries, row.Here, row.Children]]));

const RESTS = { flight: 'x.Boom', rooms: ['ok', 'x.Boom', 'ok'], pay: 'ok' };

journey('a saga that rests is found under Attention, understood from its picture, sent forward, and seen to end', async (page, go) => {
  const id = await saga('order', { reserve: 'ok', pay: 'x.Boom' });
  /** @type {string[]} */
  const fetched = [];
  page.on('request', (request) => fetched.push(new URL(request.url()).pathname));
  await go();
  await shown(page, 'Attention');
  const verdict = page.getByRole('main').getByRole('listitem').filter({ hasText: 'the shop said no' });
  assert.deepEqual(fetched.filter((path) => /machine|chart/.test(path)), [], 'a saga alone needs it');
  await verdict.getByRole('button', { name: 'Retry now…' }).waitFor();
  assert.equal(await answers(page).count(), 0);
  await verdict.getByRole('link', { name: `Go to ${id}` }).click();

  await shown(page, /^saga\.order/);
  await page.getByRole('tab', { name: 'Machine', selected: true }).waitFor();
  await becomes(() => attention(page), ['Pay']);
  assert.deepEqual(fetched.filter((path) => /machine|chart/.test(path)).map((path) => path.replace(/^.*\/all\//, '')).sort(), ['chart.js', 'machine.css', 'machine.js']);
  await becomes(async () => (await table(page)).Pay, ['UN', '1', `${id} rests`, '–']);
  assert.deepEqual((await table(page)).Reserve, ['SU', '1', '–', '–']);
  assert.equal(await taken(page), 1);
  await page.getByText('x.Boom: the shop said no').first().waitFor();
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menu').getByRole('button', { name: 'Bypass…' }).waitFor();
  assert.equal(await answers(page).count(), 0, 'it is decided about on its tab');
  await page.getByRole('button', { name: 'More actions' }).click();

  await page.getByRole('tabpanel').getByRole('button', { name: 'Forward…' }).click();
  const forward = dialog(page, /^Forward/);
  await forward.getByRole('textbox', { name: 'Params' }).fill('{"pay": "x.NoMo');
  await forward.getByText('This is no JSON').waitFor();
  await forward.getByRole('textbox', { name: 'Params' }).fill('{"pay": "ok", "gift": true}');
  await forward.getByRole('region', { name: 'Plan' }).getByText(`${id}, state Pay`).waitFor();
  const sent = page.waitForRequest((request) => Boolean(request.postDataJSON()?.reason));
  await act(page, /^Forward/, 'Forward', { reason: 'another card' });
  assert.ok((await sent).postDataJSON().expected, 'as its plan has seen it');
  await comes(page.getByText('Every step took effect.'));
  await becomes(() => attention(page), []);
  await becomes(() => taken(page), 4);
  assert.deepEqual((await table(page)).Pay?.slice(0, 2), ['SU', '2']);
  await becomes(async () => (await truth()).states, { Success: 1 });
  await go();
  await page.getByRole('status').filter({ hasText: 'Nothing needs you.' }).waitFor();
}, { viewport: { width: 1280, height: 800 } });

journey('branches, elements and a sub machine are drawn where they are, and one of them is sent forward alone', async (page, go) => {
  const id = await saga('tour', { ...RESTS, pay: 'x.Boom' });
  const of = id.replace(/\.0$/, '');
  await go(`procedures/${id}`);
  await becomes(async () => (await attention(page)).sort(), ['Buy', 'Flight', 'Rooms']);
  await picture(page).getByText('Book: Rooms').waitFor();
  await becomes(() => drawn(page).then((all) => all.find(([name]) => name === 'Rooms')), ['Rooms', '2 SU · 1 UN']);
  assert.deepEqual((await table(page)).Buy, ['RU', '–', `${of}.3 waits`, `1 rests: ${of}.7`]);
  await repair();
  const rest = page.getByRole('list', { name: 'Rests' }).getByRole('listitem').filter({ hasText: 'Flight' });
  await rest.getByRole('button', { name: 'Forward…' }).click();
  await dialog(page, /^Forward/).getByRole('region', { name: 'Plan' }).getByText(`${of}.1, state Flight`).waitFor();
  await act(page, /^Forward/, 'Forward', { reason: 'there are seats again' });
  await becomes(async () => (await attention(page)).sort(), ['Buy', 'Rooms']);

  // The sub machine is a link, and has a picture of its own.
  await picture(page).getByRole('link', { name: `The sub machine ${of}.7` }).click();
  await shown(page, new RegExp(`^saga\\.order v\\d+ ${of}\\.7`));
  await becomes(() => attention(page), ['Pay']);
  await go(`procedures/${id}`);
  await page.getByRole('button', { name: 'Forward all…' }).click();
  await act(page, /^Forward/, 'Forward', { reason: 'all is well' });
  await comes(page.getByText('Every step took effect.'));
  await becomes(() => attention(page), []);
  assert.equal(await picture(page).locator('.way:not(.back):not(.taken)').count(), 0, 'it has gone every way but back');
});

journey('a saga is understood and sent forward by keyboard alone, on a narrow screen', async (page, go) => {
  const id = await saga('order', { reserve: 'ok', pay: 'x.Boom' });
  await go();
  await shown(page, 'Attention');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await becomes(() => attention(page), ['Pay']);
  const reach = async (/** @type {string} */ name) => {
    // A button is off for as long as its plan is on its way.
    await until(async () => {
      await page.keyboard.press('Tab');
      const focused = await page.evaluate(() => {
        const element = document.activeElement;
        if (element?.getAttribute('role') === 'option') return 'the picture';
        return element?.tagName === 'TEXTAREA' ? 'the params' : element instanceof HTMLInputElement ? 'the reason' : element instanceof HTMLElement ? element.innerText.split('\n')[0] ?? '' : '';
      });
      return focused === name;
    }, `Tab leads to ${name}`);
  };
  const at = () => page.evaluate(() => document.activeElement?.querySelector('text.name')?.textContent ?? '');
  await reach('the picture');
  assert.equal(await at(), 'Pay', 'where it rests');
  await page.keyboard.press('ArrowUp');
  await becomes(at, 'Reserve');
  await page.keyboard.press('ArrowDown');
  await until(async () => (await at()) !== 'Reserve', 'the arrows lead on');
  await page.keyboard.press('Shift+Tab');
  await reach('the picture');
  await page.evaluate(() => document.body.focus());
  await reach('Forward…');
  await page.keyboard.press('Enter');
  await dialog(page, /^Forward/).getByText(`${id}, state Pay`).waitFor();
  await reach('the params');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('{"pay": "ok"}');
  await reach('the reason');
  await page.keyboard.type('another card');
  await until(() => dialog(page, /^Forward/).getByRole('button', { name: 'Forward', exact: true }).isEnabled(), 'it can be sent');
  await page.keyboard.press('Enter');
  await dialog(page, /^Forward/).getByText('It is done').waitFor();
  await page.keyboard.press('Escape');
  await comes(page.getByText('Every step took effect.'));
  await becomes(async () => (await truth()).states, { Success: 1 });
}, { viewport: { width: 390, height: 844 } });

journey('a state that cannot be undone is marked, and what a designer drew stands as it was drawn', async (page, go) => {
  const id = await saga('drawn', { weigh: 'ok', ship: 'ok', heavy: true });
  await go(`procedures/${id}`);
  await page.getByText(/^Rolled back, 1 undone/).waitFor();
  const spots = await picture(page).getByRole('option').evaluateAll((all) => Object.fromEntries(all.map((node) => {
    const [, x, y] = /translate\(([\d.]+) ([\d.]+)\)/.exec(node.getAttribute('transform') ?? '') ?? [];
    return [node.querySelector('text.name')?.textContent, { x: Number(x), y: Number(y) }];
  })));
  assert.ok(spots.Weigh && spots.Fits && spots.Refuse && spots.Unweigh);
  assert.ok(spots.Fits.y > spots.Weigh.y && spots.Refuse.x > spots.Fits.x && spots.Unweigh.x < spots.Weigh.x, JSON.stringify(spots));
  assert.equal(await picture(page).locator('.way.back.taken').count(), 1);
});

journey('the kind of a machine has the versions of its definition', async (page, go) => {
  await saga('order', { reserve: 'ok', pay: 'ok' });
  await go('kinds');
  await becomes(async () => (await rows(page, 'Kinds')).filter(({ 'Kind, and what comes next': kind }) => kind?.startsWith('saga.order')).map(({ Versions }) => Versions), ['2']);
});

journey('a saga starts from its kind with params, as an object', async (page, go) => {
  await go('kinds');
  await shown(page, 'Kinds');
  await page.getByRole('row').filter({ hasText: /^saga\.order/ }).getByRole('button', { name: 'Start…' }).click();
  const open = dialog(page, /^Start saga\.order/);
  const params = open.getByRole('textbox', { name: /^Params/ });
  const doIt = open.getByRole('button', { name: 'Start', exact: true });
  await params.fill('7');
  await open.getByRole('alert').filter({ hasText: 'they are no object' }).waitFor();
  assert.equal(await doIt.isDisabled(), true);
  await params.fill('{"reserve": "ok", "pay": "ok"}');
  await open.getByText('The machine takes these params.').waitFor();
  await doIt.click();
  await shown(page, /^saga\.order/);
  await pass(1_000);
  await comes(page.getByText('Every step took effect.'));
  await becomes(async () => (await truth()).states, { Success: 1 });
}, { expected: /400/ });

journey('whoever may only look sees a saga, and decides nothing', async (page, go) => {
  const id = await saga('order', { reserve: 'ok', pay: 'x.Boom' });
  await go(`procedures/${id}`);
  await becomes(() => attention(page), ['Pay']);
  assert.equal(await page.getByRole('button', { name: /Forward|Skip/ }).count(), 0);
}, { mount: 'reader' });
