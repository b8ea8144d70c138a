// Parts of the page that need no browser: what they decide, called as the page calls them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const FILES = '../../../src/page/files/';
// Addresses are relative to the page, which is not here.
globalThis.document ??= /** @type {any} */ ({ baseURI: 'http://localhost/' });
const { exact } = await import(`${FILES}api.js`);
const { waitersOf } = await import(`${FILES}labels.js`);
const { newest } = await import(`${FILES}newest.js`);
const { append, fold } = await import(`${FILES}pages.js`);
const { newestFirst } = await import(`${FILES}words.js`);

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

const row = (id, ended = null) => ({ id, ended });
const ids = (rows) => rows.map(({ id }) => id);

test('a change is laid over rows: those that left go, those that are new stand where they belong', () => {
  const rows = [row('9.0'), row('7.0'), row('5.0')];
  const change = { rows: [row('8.0'), row('7.0', 'now'), row('2.0')], left: ['9.0'], gone: [], cut: false };
  assert.deepEqual(ids(fold(rows, change, false, newestFirst, '4.0')), ['8.0', '5.0']);
  assert.deepEqual(ids(fold(rows, change, true, newestFirst, null)), ['8.0', '7.0', '5.0', '2.0']);
  assert.deepEqual(ids(fold(rows, { rows: [], left: [], gone: ['5'] }, false, newestFirst, '4.0')), ['9.0', '7.0']);
});

test('a page goes behind those that it continues, and behind no others', () => {
  const page = (id, cursor) => ({ items: [row(id)], cursor, scanned: 1, truncated: false });
  const at = (cursor, from = '9.0') => ({ asked: 'newest ', from, cursor });
  const one = append(null, page('8.0', '8.0'), at('9.0'));
  const two = append(one, page('7.0', '7.0'), at('8.0'));
  assert.deepEqual([ids(two.rows), two.cursor, two.scanned], [['8.0', '7.0'], '7.0', 2]);
  assert.equal(append(two, page('7.0', '7.0'), at('8.0')), two, 'it is there already');
  assert.equal(append(null, page('6.0', '6.0'), at('7.0')), null, 'those before it were dropped meanwhile');
  assert.deepEqual(ids(append(two, page('6.0', '6.0'), at('7.0', '7.0')).rows), ['6.0'], 'the first page ends elsewhere since');
});

test('JSON is read as it is written, or refused', () => {
  assert.deepEqual(exact('{"a": [1, -2.5e3, 9007199254740991]}'), { a: [1, -2500, 9007199254740991] });
  for (const text of ['1e400', '{"a": [-1e400]}']) assert.throws(() => exact(text), /beyond 1\.8 × 10\^308 is too large to be sent/, text);
  assert.throws(() => exact('9007199254740993'), /would be rounded here/);
  assert.throws(() => exact('1e300'), /would be rounded here/);
  assert.throws(() => exact('{'), SyntaxError);
});

test('the queue of a limit leads to those that wait for it', () => {
  const kinds = [{ kind: 'job', registered: true }, { kind: 'a "b": c', registered: true }, { kind: 'old', registered: false }];
  assert.equal(waitersOf('job', kinds), 'reason:permit kind:job');
  assert.equal(waitersOf('a "b": c', kinds), 'reason:permit kind:"a \\"b\\": c"');
  for (const name of ['*', 'cards', 'old']) assert.equal(waitersOf(name, kinds), 'reason:permit', name);
});
