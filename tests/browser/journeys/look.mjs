// How it looks: dark and light, columns that have their place, and nothing that moves for those who want none of it.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, api, becomes, journey, pass, SCREENS, shown, signal, submit } from '../kit.mjs';

after(hook);

/** One of each state that a page may show. */
async function every() {
  const ids = [await submit({ retry: 'rpc timeout' }), await submit({ stuck: 'cannot' }), await submit({ children: 3 })];
  const [one, two] = [await submit({ both: ['x', 'y'] }), await submit({ both: ['y', 'x'] })];
  await signal(one, 'go');
  await signal(two, 'go');
  for (let at = 0; at < 3; at += 1) await submit({ wait: 'go' }, { kind: 'limited' });
  await submit({ end: 'well' });
  await submit({ fail: 'bad' });
  await pass(120_000);
  return [...SCREENS, { path: 'procedures?filter=state:live,ended', title: 'Procedures' },
    ...[...ids, one].map((id) => ({ path: `procedures/${id}?tab=history`, title: /^job v1/ }))];
}

/** Tables that are wider than their place, and titles and buttons in them that are cut. Runs in the page. */
function cut() {
  const found = [];
  for (const table of document.querySelectorAll('[role=table]')) {
    const name = table.getAttribute('aria-label');
    if (table.scrollWidth > table.clientWidth) found.push(`${name} is ${table.scrollWidth - table.clientWidth} px too wide`);
    for (const cell of table.querySelectorAll('[role=columnheader], [role=cell]:has(button)')) {
      if (cell.scrollWidth > cell.clientWidth) found.push(`${name}: “${cell.innerText}” is cut`);
    }
  }
  return found;
}

const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const isDark = (colour) => colour.match(/\d+/g).slice(0, 3).every((part) => Number(part) < 60);

journey('dark and light by a switch, which is remembered', async (page, go) => {
  await go();
  await shown(page, 'Attention');
  assert.equal(isDark(await ground(page)), false);
  await page.emulateMedia({ colorScheme: 'dark' });
  await becomes(async () => isDark(await ground(page)), true);
  await page.getByRole('button', { name: 'Theme' }).click();
  assert.equal(isDark(await ground(page)), false);
  await page.reload();
  await shown(page, 'Attention');
  assert.equal(isDark(await ground(page)), false, 'what was chosen is remembered');
  await page.keyboard.press('t');
  assert.equal(isDark(await ground(page)), true);
}, { colorScheme: 'light' });

journey('nothing moves where that is not wanted', async (page, go) => {
  for (const { path, title } of await every()) {
    await go(path);
    await shown(page, title);
    assert.equal(await page.evaluate(() => document.getAnimations().length), 0, path);
    const moving = await page.evaluate(() => [...document.querySelectorAll('*')].filter((one) => {
      const style = getComputedStyle(one);
      return style.animationName !== 'none' || style.transitionDuration.split(',').some((time) => parseFloat(time) > 0);
    }).length);
    assert.equal(moving, 0, path);
  }
}, { reducedMotion: 'reduce' });

journey('every column has its place on a screen of 1,280 pixels', async (page, go) => {
  const screens = await every();
  await api('kinds/limited/pause', { body: { reason: 'the longer word' } });
  await pass(1_000);
  for (const { path, title } of screens) {
    await go(path);
    await shown(page, title);
    assert.deepEqual(await page.evaluate(cut), [], `on ${path || 'attention'}`);
  }
}, { viewport: { width: 1280, height: 800 } });
