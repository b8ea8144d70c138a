// The page below any path, and addresses that were sent by a colleague.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, journey, pass, SCREENS, shown, SITE, submit } from '../kit.mjs';

after(hook);

journey('every screen below a deep mount, also when its address is opened', async (page, go) => {
  const id = await submit({ children: 2 });
  await pass(60_000);
  const outside = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(`${SITE}/a/b/c/`)) outside.push(request.url());
  });
  const deep = [{ path: `procedures/${id}`, title: /^job v1/ }, { path: `procedures/${id}?tab=history`, title: /^job v1/ },
    { path: `waits?id=${id}`, title: 'Locks and waits' }, { path: 'procedures?filter=reason%3Achildren', title: 'Procedures' }];
  for (const { path, title } of [...SCREENS, ...deep]) {
    await go(path);
    await shown(page, title);
    await pass(1_000); // ten explanations a second are given in all
    await page.reload();
    await shown(page, title);
    await pass(1_000);
    assert.equal(page.url(), `${SITE}/a/b/c/${path}`);
  }
  await page.getByRole('link', { name: id, exact: true }).first().click();
  await shown(page, /^job v1/);
  await page.getByRole('tab', { name: 'History' }).click();
  await page.getByRole('link', { name: 'Engine' }).click();
  await shown(page, 'Engine');
  await page.goBack();
  await shown(page, /^job v1/);
  assert.equal(page.url(), `${SITE}/a/b/c/procedures/${id}?tab=history`);
  assert.deepEqual(outside, [], 'nothing is asked for outside the mount');
}, { mount: 'a/b/c' });

journey('an address that is no screen says so', async (page, go) => {
  await go('no/such/screen');
  await page.getByText('There is no screen of this name.').waitFor();
  await page.getByRole('link', { name: 'See what needs you.' }).click();
  await shown(page, 'Attention');
  await go('procedures/99.0');
  await page.getByRole('main').getByRole('alert').waitFor();
}, { expected: /404/ });
