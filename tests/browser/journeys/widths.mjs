// On a phone: all that somebody on call needs, with nothing wider than the window and every button in it. Every screen at
// every width is in `screens.mjs`.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, comes, dialog, journey, rows, shown, submit, truth, until } from '../kit.mjs';
import { outside } from '../measure.mjs';

after(hook);

/** An override to right-to-left, which nothing in the text takes back. */
const TURNED = 'order-\u202e4711';

journey('on a phone: the menu, Attention, one procedure, its plan, and the answer', async (page, go) => {
  const id = await submit({ ask: 'refund order-4711?' }, { key: TURNED });
  await go();
  await shown(page, 'Attention');
  const inWindow = async (what) => assert.deepEqual(await page.evaluate(outside), [], what);
  // The menu is folded until somebody asks for it, and again once they have gone where it leads.
  const menu = page.getByRole('navigation', { name: 'Screens' });
  assert.equal(await menu.getByRole('link', { name: 'Procedures' }).isVisible(), false);
  await menu.getByRole('button', { name: 'Attention' }).tap();
  await inWindow('the menu');
  await menu.getByRole('link', { name: 'Procedures' }).tap();
  await shown(page, 'Procedures');
  await menu.getByRole('link', { name: 'Procedures' }).waitFor({ state: 'hidden' });
  await inWindow('the list');
  // What turns the text around does so within the key alone.
  const [row] = await rows(page, 'Procedures');
  assert.equal(row.Key, TURNED);
  const isolated = await page.getByText(TURNED, { exact: true }).evaluate((element) => getComputedStyle(element).unicodeBidi);
  assert.equal(isolated, 'isolate');

  await menu.getByRole('button', { name: 'Procedures' }).tap();
  await menu.getByRole('link', { name: 'Attention' }).tap();
  await page.getByRole('main').getByRole('listitem').filter({ hasText: 'refund order-4711?' }).getByRole('link', { name: `Go to ${id}` }).tap();
  await shown(page, /^job v1/);
  await page.getByText(/^Asks: “refund order-4711\?”/).waitFor();
  await inWindow('the procedure');
  await page.getByRole('button', { name: 'More actions' }).tap();
  await page.getByRole('menu').getByRole('button', { name: 'Signal…' }).waitFor();
  await inWindow('all actions');
  await page.getByRole('button', { name: 'More actions' }).tap();
  await page.getByRole('button', { name: 'Answer…' }).tap();
  const answer = dialog(page, /^Answer/);
  await answer.getByRole('region', { name: 'Plan' }).getByRole('row').filter({ hasText: id }).waitFor();
  const doIt = answer.getByRole('button', { name: 'Answer', exact: true });
  await until(() => doIt.isEnabled(), 'it can be answered');
  await inWindow('the plan');
  await doIt.tap();
  await answer.getByText('It is done').waitFor();
  await inWindow('what was done');
  await answer.getByRole('button', { name: 'Close' }).last().tap();
  await comes(page.getByText(/^Ended well/));
  // What has ended begins with its history.
  await becomes(() => page.getByRole('tab').evaluateAll((all) => all.slice(0, 2).map((tab) => [tab.textContent.replace(/\d+/, '').trim(), tab.ariaSelected])), [['History', 'true'], ['Waits', 'false']]);
  await becomes(async () => (await truth()).states, { Success: 1 });
}, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: 'dark' });
