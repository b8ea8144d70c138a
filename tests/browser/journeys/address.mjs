// The address is the state: what is folded and how much time is shown are in it.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, journey, pass, shown, submit, until } from '../kit.mjs';

after(hook);

const query = (page) => new URL(page.url()).search;

journey('folds are in the address, and back and forward go through them', async (page, go) => {
  const id = await submit({ children: 7 });
  await go(`procedures/${id}`);
  await shown(page, /^job v1/);
  const tree = page.getByRole('treegrid', { name: 'Family and timeline' });
  const count = () => tree.getAttribute('aria-rowcount');
  const group = tree.getByRole('row').filter({ hasText: 'job × 7' });
  // A small family opens unfolded: itself, the group and its seven.
  await becomes(count, '9');
  assert.equal(query(page), '');
  await group.getByRole('button', { name: 'Fold' }).click();
  await becomes(count, '2');
  assert.equal(query(page), '?fold=1.0+job');
  await page.reload();
  await becomes(count, '2');
  // By keyboard, too; and another tab leaves it.
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await until(() => group.evaluate((row) => row === document.activeElement), 'the group has the focus');
  await page.keyboard.press('ArrowRight');
  await becomes(count, '9');
  assert.equal(query(page), '');
  // Where nothing is below there is nothing to fold.
  await page.keyboard.press('j');
  await until(() => tree.getByRole('row', { name: '1.1' }).evaluate((row) => row === document.activeElement), 'a child has the focus');
  await page.keyboard.press('ArrowLeft');
  assert.equal(query(page), '');
  await tree.getByRole('row').first().getByRole('button', { name: 'Fold' }).click();
  await becomes(count, '1');
  await page.getByRole('tab', { name: 'History' }).click();
  assert.equal(query(page), '?fold=1.0&tab=history');
  assert.equal(await count(), '1');
  await page.goBack();
  await becomes(count, '9');
  await page.goBack();
  await becomes(count, '2');
  await page.goForward();
  await becomes(count, '9');
  await page.goForward();
  await becomes(count, '1');
  // One that is opened by itself begins as it likes.
  await tree.getByRole('link', { name: id }).click();
  await becomes(count, '9');
  assert.equal(query(page), '');
});

journey('a family that opens folded has what was unfolded in the address, and not without a bound', async (page, go) => {
  const id = await submit({ children: 50 });
  await go(`procedures/${id}?open=${encodeURIComponent(`${id} job`)}`);
  const tree = page.getByRole('treegrid', { name: 'Family and timeline' });
  await becomes(() => tree.getAttribute('aria-rowcount'), '52');
  await tree.getByRole('row').filter({ hasText: 'job × 50' }).getByRole('button', { name: 'Fold' }).click();
  await becomes(() => tree.getAttribute('aria-rowcount'), '2');
  assert.equal(query(page), '');
  const many = Array.from({ length: 300 }, (_, at) => `open=9.${at}`).join('&');
  await go(`procedures/${id}?${many}`);
  await tree.getByRole('row').filter({ hasText: 'job × 50' }).getByRole('button', { name: 'Unfold' }).click();
  await becomes(() => tree.getAttribute('aria-rowcount'), '52');
  const open = new URLSearchParams(query(page)).getAll('open');
  assert.equal(open.at(-1), `${id} job`);
  assert.ok(open.join().length <= 1_000, `${open.length} folds`);
});

journey('how much time is shown is in the address', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await pass(7_200_000);
  await go(`procedures/${id}`);
  await shown(page, /^job v1/);
  const pressed = () => page.getByRole('group', { name: 'How much time is shown' }).getByRole('button', { pressed: true }).innerText();
  const last = (name) => page.getByRole('button', { name, exact: true }).click();
  await becomes(pressed, 'All 2 h');
  await last('Last 10 m');
  await becomes(pressed, 'Last 10 m');
  assert.equal(query(page), '?last=600000');
  await last('Last 1 m');
  await becomes(pressed, 'Last 1 m');
  await page.reload();
  await becomes(pressed, 'Last 1 m');
  await page.goBack();
  await becomes(pressed, 'Last 10 m');
  await page.goBack();
  await becomes(pressed, 'All 2 h');
  await page.goForward();
  await becomes(pressed, 'Last 10 m');
  await go(`procedures/${id}?last=soon`);
  await becomes(pressed, 'All 2 h');
});

journey('an address that changes while the page starts is the one that is shown', async (page, go) => {
  // As soon as anything is drawn, and before the page listens.
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (!document.querySelector('main')) return;
      observer.disconnect();
      history.pushState(null, '', `${location.pathname}limits`);
      dispatchEvent(new PopStateEvent('popstate'));
    }).observe(document, { childList: true, subtree: true });
  });
  await go();
  await shown(page, 'Limits');
});
