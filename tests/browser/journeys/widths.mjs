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
