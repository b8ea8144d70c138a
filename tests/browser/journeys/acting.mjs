// What is started and sent from the page, and what it says of large families.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, comes, dialog, journey, pass, shown, submit, truth, until } from '../kit.mjs';

after(hook);

/** No part of the page is wider than the window, and neither is the dialog. */
const fits = (page) => page.evaluate(() => [document.documentElement, document.querySelector('dialog[open]')].every((part) => !part || part.scrollWidth <= innerWidth));

const start = async (page) => {
  await shown(page, 'Kinds');
  await page.getByRole('row').filter({ hasText: /^job/ }).getByRole('button', { name: 'Start…' }).click();
  return dialog(page, /^Start job/);
};

journey('one is started from the page, and gets the event in the shape that its code expects', async (page, go) => {
  await go('kinds');
  const open = await start(page);
  const doIt = open.getByRole('button', { name: 'Start', exact: true });
  assert.equal(await doIt.isDisabled(), true);
  const value = open.getByRole('textbox', { name: /^Value/ });
  await value.fill('{"wait": ');
  await open.getByText('The value is no JSON').waitFor();
  await value.fill('123456789012345678901');
  await open.getByText('would be rounded').waitFor();
  await value.fill('{"wat": "approved"}');
  await open.getByRole('alert').filter({ hasText: 'unknown variant `wat`' }).waitFor();
  assert.equal(await doIt.isDisabled(), true);
  assert.deepEqual((await truth()).states, {}, 'nothing was begun to check it');
  await value.fill('{"wait": "approved"}');
  await open.getByRole('textbox', { name: 'Idempotency key' }).fill('order-7');
  await open.getByRole('textbox', { name: /^Name/ }).fill('the first');
  await open.getByRole('textbox', { name: 'Labels' }).fill('tenant');
  await open.getByText('has no name').waitFor();
  await open.getByRole('textbox', { name: 'Labels' }).fill('tenant=north\n');
  await open.getByRole('spinbutton', { name: 'Priority' }).fill('3');
  await open.getByText('The kind takes this value.').waitFor();
  await doIt.click();
  await shown(page, /^job v1.*the first/);
  const marks = page.getByRole('main').locator('.marks');
  await marks.getByText('order-7').waitFor();
  await marks.getByRole('link', { name: 'north' }).waitFor();
  await becomes(async () => (await truth()).rows.map(({ priority, state }) => [priority, state]), [[3, 'WaitingTimeout']]);

  await page.getByRole('button', { name: 'Signal…', exact: true }).click();
  const signal = dialog(page, /^Signal/);
  const send = signal.getByRole('button', { name: 'Signal', exact: true });
  await signal.getByRole('textbox', { name: 'Payload' }).fill('{"by": 7}');
  await signal.getByRole('alert').filter({ hasText: 'expected a string' }).waitFor();
  assert.equal(await send.isDisabled(), true, 'what the kind refuses is not sent');
  await signal.getByRole('checkbox', { name: 'without a payload' }).check();
  await signal.getByRole('alert').filter({ hasText: 'expected struct Approval' }).waitFor();
  assert.equal(await send.isDisabled(), true);
  await signal.getByRole('checkbox', { name: 'without a payload' }).uncheck();
  await signal.getByRole('textbox', { name: 'Payload' }).fill('{"by": "ann"}');
  await until(() => send.isEnabled(), 'it can be sent');
  await send.click();
  await signal.getByText('It is done').waitFor();
  // A stream tells of rows ten times a second at most, by the engine's clock.
  await pass(1_000);
  await signal.getByRole('button', { name: 'Close' }).last().click();
  await comes(page.getByText(/^Ended well/));

  // The same key again leads to the same one.
  await go('kinds');
  const again = await start(page);
  await again.getByRole('textbox', { name: /^Value/ }).fill('{"wait": "approved"}');
  await again.getByRole('textbox', { name: 'Idempotency key' }).fill('order-7');
  await until(() => again.getByRole('button', { name: 'Start', exact: true }).isEnabled(), 'it can be started');
  await again.getByRole('button', { name: 'Start', exact: true }).click();
  await shown(page, /^job v1.*the first/);
  assert.deepEqual((await truth()).states, { Success: 1 });
}, { expected: /400/ });

journey('who may not submit is offered no start', async (page, go) => {
  await go('kinds');
  await shown(page, 'Kinds');
  await page.getByRole('row').filter({ hasText: /^job/ }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Start…' }).count(), 0);
}, { mount: 'reader' });

journey('one is started on a phone', async (page, go) => {
  await go('kinds');
  const open = await start(page);
  await open.getByRole('textbox', { name: /^Value/ }).fill('{"end": "well"}');
  await open.getByText('The kind takes this value.').waitFor();
  assert.equal(await fits(page), true);
  await open.getByRole('button', { name: 'Start', exact: true }).click();
  await shown(page, /^job v1/);
  await pass(1_000);
  await comes(page.getByText(/^Ended well/));
}, { viewport: { width: 390, height: 844 }, colorScheme: 'light' });

journey('a large family is told by who is in progress', async (page, go) => {
  const says = (beginning) => page.getByText(beginning).locator('..').innerText().then((text) => text.replace(/\s+/g, ' ').split('. ')[0]);
  const narrow = await submit({ narrow: 14 });
  const of = (/** @type {number} */ member) => narrow.replace(/0$/, String(member));
  await go(`procedures/${narrow}`);
  await becomes(() => says(/^Waits for its children/), `Waits for its children: 0 of 14 done; in progress: ${of(1)}, ${of(2)}; 12 wait for a slot`);
  await go(`procedures/${of(9)}`);
  await becomes(() => says(/^Waits for a slot/), `Waits for a slot among its parent's children: the parent runs 2 children at a time; in progress: ${of(1)}, ${of(2)}, place 7 of 12`);
  const wide = await submit({ children: 1_200 });
  await go(`procedures/${wide}`);
  const ten = Array.from({ length: 10 }, (_, at) => wide.replace(/0$/, String(at + 1))).join(', ');
  await becomes(() => says(/^Waits for its children/), `Waits for its children: 0 of 1,200 done; in progress: ${ten} and 1,190 more`);
});

journey('a menu leads to the same screen of another engine', async (page, go) => {
  await go('procedures?filter=kind%3Ajob');
  await shown(page, 'Procedures');
  const menu = page.getByRole('combobox', { name: 'Engine' });
  await menu.waitFor();
  const marked = () => menu.evaluate((select) => [...select.selectedOptions].map((option) => option.textContent));
  assert.deepEqual(await marked(), ['north']);
  assert.deepEqual(await menu.getByRole('option').allTextContents(), ['north', 'south', 'far']);
  await menu.selectOption('south');
  await page.waitForURL('**/a/b/c/procedures?filter=kind%3Ajob');
  await shown(page, 'Procedures');
  await becomes(marked, ['south']);
});

journey('a timeline says which attempts are not kept', async (page, go) => {
  const id = await submit({ retry: 'no luck' });
  for (let minutes = 0; minutes < 30; minutes += 1) await pass(60_000);
  await go(`procedures/${id}`);
  await shown(page, /^job v1/);
  const first = await page.evaluate(async (of) => {
    const { items } = await (await fetch(`api/v1/procedures/${of}/history`)).json();
    return Math.min(...items.filter(({ stage }) => /Work/.test(stage)).map(({ attempt }) => attempt));
  }, id);
  assert.ok(first > 2, `${first} is the first that is kept`);
  const lanes = page.locator('.lanes');
  await until(async () => {
    const { width } = await lanes.boundingBox();
    await lanes.hover({ position: { x: width * 0.2, y: 14 } });
    return await page.getByText(`${first - 1} attempts of Work are not kept`).count() === 1;
  }, 'the time of those attempts says so');
});
