// A question to a person: from Attention to the procedure, and answered there.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, becomes, comes, dialog, journey, shown, submit, truth, until } from '../kit.mjs';

after(hook);

const asked = (page) => page.getByRole('main').getByRole('listitem').filter({ hasText: 'asks' });

/** The rules of the engine's own verdicts. */
const rules = async () => (await truth()).told.map(({ rule }) => rule);

journey('a question is seen, looked at with its plan, answered, and gone', async (page, go) => {
  const root = await submit({ graph_asks: 'drop table users?' });
  const asker = root.replace(/\.0$/, '.1');
  await go();
  await shown(page, 'Attention');
  await asked(page).getByText('asks while 3 wait behind it at gates: drop table users?').waitFor();
  await asked(page).getByText('behind 3', { exact: true }).waitFor();
  await asked(page).getByRole('button', { name: 'Answer…' }).waitFor();
  await asked(page).getByRole('link', { name: `Go to ${asker}` }).click();

  await shown(page, /^job v1/);
  await page.getByText(/^Asks: “drop table users\?”/).waitFor();
  await page.getByText('3 procedures wait behind it at gates.').waitFor();
  await page.getByText(/Next: stage "?Finish"? runs once somebody decides/).waitFor();
  await page.getByRole('button', { name: 'Answer…' }).click();
  const answer = dialog(page, /^Answer/);
  const plan = answer.getByRole('region', { name: 'Plan' });
  await plan.getByRole('row').filter({ hasText: asker }).waitFor();
  const doIt = answer.getByRole('button', { name: 'Answer', exact: true });
  await until(() => doIt.isEnabled(), 'an answer needs no reason');
  // What is no JSON is refused before anything is sent.
  await answer.getByRole('textbox', { name: 'Answer' }).fill('perhaps');
  await answer.getByText('This is no JSON').waitFor();
  assert.deepEqual(await rules(), ['undecided']);
  await answer.getByRole('textbox', { name: 'Answer' }).fill('{"drop": true}');
  await answer.getByText('This is no JSON').waitFor({ state: 'detached' });
  await doIt.click();
  await answer.getByText('It is done').waitFor();
  await answer.getByRole('button', { name: 'Close' }).last().click();
  await answer.waitFor({ state: 'detached' });
  await comes(page.getByText(/^Ended well/));
  await page.getByRole('button', { name: 'Answer…' }).waitFor({ state: 'detached' });
  assert.deepEqual(await rules(), []);

  // Those behind it go on, and nothing needs anybody.
  await becomes(async () => (await truth()).states, { Waiting: 1, Success: 1, WaitingTimeout: 2, Initializing: 1 });
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await shown(page, 'Attention');
  await page.getByRole('status').filter({ hasText: 'Nothing needs you.' }).waitFor();
  assert.equal(await asked(page).count(), 0);
});

journey('a question is answered by keyboard alone', async (page, go) => {
  const id = await submit({ ask: 'go on?' });
  await go();
  await shown(page, 'Attention');
  await asked(page).waitFor();
  await page.keyboard.press('j');
  await until(() => asked(page).evaluate((row) => row === document.activeElement), 'the verdict has the focus');
  await page.keyboard.press('Enter');
  await shown(page, /^job v1/);
  await page.getByRole('button', { name: 'Answer…' }).waitFor();
  const reach = async (name) => {
    // A button is off for as long as its plan is on its way.
    await until(async () => {
      await page.keyboard.press('Tab');
      const focused = await page.evaluate(() => {
        const element = document.activeElement;
        return element?.tagName === 'TEXTAREA' ? 'the answer' : element?.innerText?.split('\n')[0] ?? '';
      });
      return focused === name;
    }, `Tab leads to ${name}`);
  };
  await reach('Answer…');
  await page.keyboard.press('Enter');
  await dialog(page, /^Answer/).getByRole('region', { name: 'Plan' }).getByText(id).waitFor();
  await reach('the answer');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('7');
  await becomes(() => dialog(page, /^Answer/).getByRole('textbox', { name: 'Answer' }).inputValue(), '7');
  await until(() => dialog(page, /^Answer/).getByRole('button', { name: 'Answer', exact: true }).isEnabled(), 'it can be answered');
  await reach('Answer');
  await page.keyboard.press('Enter');
  await dialog(page, /^Answer/).getByText('It is done').waitFor();
  await page.keyboard.press('Escape');
  await dialog(page, /^Answer/).waitFor({ state: 'detached' });
  await becomes(async () => (await truth()).states, { Success: 1 });
  assert.deepEqual(await rules(), []);
});
