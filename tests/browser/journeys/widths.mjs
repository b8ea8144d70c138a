// Every width from 360 pixels: nothing wider than the window, every button in it, and all that somebody on call needs on a phone.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, album, api, becomes, dialog, journey, pass, rows, saga, SCREENS, shown, signal, stream, submit, truth, until } from '../kit.mjs';

after(hook);

const LONG = 'x'.repeat(200);
/** An override to right-to-left, which nothing in the text takes back. */
const TURNED = 'order-\u202e4711';

/** One of each thing that a page may show, with the longest names; gives where they are. */
async function every() {
  const long = await submit({ wait: LONG }, { key: `order-${LONG}`, labels: { customer: LONG, city: 'New York' } });
  const ids = [long, await submit({ retry: `rpc timeout ${LONG}` }, { key: TURNED }), await submit({ stuck: LONG }), await submit({ ask: `may ${LONG} go?` }), await submit({ children: 9 }), await submit({ fail: LONG }, { key: 'bad' })];
  const graph = await submit('graph');
  const [one, two] = [await submit({ both: [LONG, 'y'] }), await submit({ both: ['y', LONG] })];
  await signal(one, 'go');
  await signal(two, 'go');
  for (let at = 0; at < 3; at += 1) await submit({ wait: 'go' }, { kind: 'limited' });
  await api('kinds/limited/pause', { body: { reason: `for ${LONG}` } });
  const [set, queue, machine] = [await album(), await stream(8), await saga('order', { reserve: 'ok', pay: 'x.Boom' })];
  await pass(120_000);
  const tabs = ['waits', 'data', 'signals', 'audit'].map((tab) => ({ path: `procedures/${ids[0]}?tab=${tab}`, title: /^job v1/ }));
  return [...SCREENS, ...tabs, { path: 'procedures?filter=state:live,ended', title: 'Procedures' },
    ...ids.map((id) => ({ path: `procedures/${id}?tab=history`, title: /^job v1/ })),
    { path: `procedures/${graph}?tab=graph`, title: /^job v1/ }, { path: `procedures/${set}?tab=graph`, title: /^procession\.set/ },
    { path: `procedures/${queue}`, title: /^procession\.stream/ }, { path: `procedures/${machine}`, title: /^saga\.order/ }, { path: `waits?id=${one}`, title: 'Locks and waits' }];
}

/** What is wider than the window, and what one presses or writes in that is not in it. Runs in the page. */
function outside() {
  const found = [];
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) found.push(`the page is ${scrollWidth - innerWidth} px too wide`);
  for (const element of document.querySelectorAll('button, .button, input, textarea, select, [role=tab], nav a, h1, dialog')) {
    const { left, right, width } = element.getBoundingClientRect();
    if (width === 0 || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (left < -0.5 || right > innerWidth + 0.5) found.push(`${element.tagName.toLowerCase()} “${(element.innerText || element.ariaLabel || '').slice(0, 30)}” from ${Math.round(left)} to ${Math.round(right)}`);
  }
  for (const screen of document.querySelectorAll('.screen, .sheet')) {
    if (screen.scrollWidth > screen.clientWidth) found.push(`${screen.className} is ${screen.scrollWidth - screen.clientWidth} px too wide`);
  }
  return found;
}

const LOOKS = /** @type {const} */ ([[360, 'light'], [390, 'dark'], [1000, 'light'], [1280, 'dark'], [1920, 'light']]);

journey('every screen is within the window at every width', async (page, go) => {
  for (const { path, title } of await every()) {
    await go(path);
    await shown(page, title);
    // Explanations are made ten times a second at most, by the engine's clock.
    await pass(1_000);
    for (const [width, colorScheme] of LOOKS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      await becomes(() => page.evaluate(outside), []);
    }
  }
});

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
  await page.getByText(/^Ended well/).waitFor();
  // What has ended begins with its history.
  await becomes(() => page.getByRole('tab').evaluateAll((all) => all.slice(0, 2).map((tab) => [tab.textContent.replace(/\d+/, '').trim(), tab.ariaSelected])), [['History', 'true'], ['Waits', 'false']]);
  await becomes(async () => (await truth()).states, { Success: 1 });
}, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: 'dark' });
