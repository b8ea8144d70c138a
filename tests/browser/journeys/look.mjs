// How it looks: dark and light, contrast, and nothing that moves for those who want none of it.

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

/** Texts that stand out from what is behind them by less than 4.5 to 1. Runs in the page. */
function faint() {
  const parse = (colour) => (/^rgb/.test(colour) ? colour.match(/[\d.]+/g).map(Number) : [0, 0, 0, 0]);
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((part, at) => part * a + below[at] * (1 - a));
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const all = [];
    for (let at = element; at; at = at.parentElement) all.unshift(parse(getComputedStyle(at).backgroundColor));
    return all.reduce((below, colour) => over(colour, below), [255, 255, 255]);
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility() || element.closest(':disabled, svg, noscript, .hidden')) continue;
    const ground = behind(element);
    const [one, two] = [light(over(parse(getComputedStyle(element).color), ground)), light(ground)];
    const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (contrast < 4.5) found.push(`${contrast.toFixed(2)} “${node.textContent.trim().slice(0, 40)}”`);
  }
  return [...new Set(found)];
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

for (const colorScheme of ['light', 'dark']) {
  journey(`every text stands out, ${colorScheme}`, async (page, go) => {
    for (const { path, title } of await every()) {
      await go(path);
      await shown(page, title);
      assert.equal(isDark(await ground(page)), colorScheme === 'dark');
      assert.deepEqual(await page.evaluate(faint), [], `on ${path || 'attention'}`);
    }
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    assert.deepEqual(await page.evaluate(faint), [], 'on the keys');
  }, { colorScheme });
}

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
