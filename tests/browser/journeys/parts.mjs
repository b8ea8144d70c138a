// Parts of the page that need no browser: what they decide, called as the page calls them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const FILES = '../../../src/page/files/';
// Addresses are relative to the page, which is not here.
globalThis.document ??= /** @type {any} */ ({ baseURI: 'http://localhost/' });
const { newest } = await import(`${FILES}newest.js`);

/** A form whose requests are answered when the test says so. */
function form() {
  const state = { isBusy: false, error: null, plan: null };
  const { overtake, attempt } = newest({
    setBusy: (is) => { state.isBusy = is; },
    setError: (error) => { state.error = error; },
    worded: (found) => found.message,
  });
  const look = () => {
    const answer = deferred();
    const ended = attempt(async (isLatest) => {
      const plan = await answer.promise;
      if (isLatest()) state.plan = plan;
    });
    return { ...answer, ended };
  };
  return { state, overtake, look };
}

function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

test('a late dry run tells nothing once the form has changed', async () => {
  const { state, overtake, look } = form();
  const first = look();
  overtake(); // The form changes; its own look begins a while later.
  first.resolve('one');
  await first.ended;
  assert.deepEqual(state, { isBusy: true, error: null, plan: null });
  const second = look();
  second.resolve('all below');
  await second.ended;
  assert.deepEqual(state, { isBusy: false, error: null, plan: 'all below' });
});

test('a dry run that is overtaken neither replaces the newer plan nor tells its error', async () => {
  for (const end of ['resolve', 'reject']) {
    const { state, look } = form();
    const first = look();
    const second = look();
    second.resolve('all below');
    await second.ended;
    first[end](new Error('refused'));
    await first.ended;
    assert.deepEqual(state, { isBusy: false, error: null, plan: 'all below' });
  }
});
