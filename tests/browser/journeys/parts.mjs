// Parts of the page that need no browser: what they decide, called as the page calls them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const FILES = '../../../src/page/files/';
// Addresses are relative to the page, which is not here.
globalThis.document ??= /** @type {any} */ ({ baseURI: 'http://localhost/' });
const { exact } = await import(`${FILES}api.js`);
const { Digits, parsed, written } = await import(`${FILES}json.js`);
const { namesStates, quoted, waitersOf } = await import(`${FILES}labels.js`);
const { beyond } = await import(`${FILES}plan.js`);
const { newest } = await import(`${FILES}newest.js`);
const { append, fold, reread } = await import(`${FILES}pages.js`);
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
  assert.deepEqual(exact('{"a": [1, -2500, 9007199254740991]}'), { a: [1, -2500, 9007199254740991] });
  for (const text of ['1e400', '{"a": [-1e400]}']) assert.throws(() => exact(text), /beyond 1\.8 × 10\^308 is too large to be sent/, text);
  for (const text of ['18446744073709551616', '[-9223372036854775809]']) assert.throws(() => exact(text), /of more than 64 bits would be rounded/, text);
  assert.throws(() => exact('{'), SyntaxError);
  // A number is no name, whatever its digits.
  assert.throws(() => exact('{9007199254740993: 1}'), SyntaxError);
});

test('a number that is sent has the digits that were written', () => {
  for (const text of ['9007199254740993', '-9223372036854775808', '18446744073709551615', '{"a":[1e300,1.0,0.12345678901234567890,-2.5e3,7]}', '["9007199254740993","\\"9007199254740993"]']) {
    assert.equal(written(exact(text)), text);
  }
});

test('whole numbers of the API are shown as they are, all others are numbers', () => {
  const text = '{"id": 9007199254740993, "of": ["18446744073709551615", {"10000000000000000001": -9007199254740993}], "size": 12, "share": 0.25}';
  const body = parsed(text);
  assert.ok(body.id instanceof Digits);
  assert.equal(String(body.id), '9007199254740993');
  assert.equal(body.of[0], '18446744073709551615');
  assert.equal(body.size + body.share, 12.25);
  assert.equal(written(body), text.replaceAll(', ', ',').replaceAll(': ', ':'));
  assert.equal(written(body.of, 2), '[\n  "18446744073709551615",\n  {\n    "10000000000000000001": -9007199254740993\n  }\n]');
  assert.deepEqual(parsed('[9007199254740992, 9007199254740994]'), [2 ** 53, 2 ** 53 + 2], 'these are read as they are');
  assert.throws(() => parsed('[9007199254740993'), SyntaxError);
});

test('unusual names are one value of a filter', () => {
  assert.equal(quoted('job'), 'job');
  assert.equal(quoted('a(b)'), 'a(b)');
  for (const name of ['a b', 'a:b', 'a,b', 'a\u0085b', 'a\tb', 'a\nb']) assert.equal(quoted(name), `"${name}"`, 'as they stand: the server knows no other escapes');
  assert.equal(quoted('a "b" \\c'), '"a \\"b\\" \\\\c"');
  assert.ok(namesStates('kind:job state:ended') && namesStates('failure:any'));
  assert.ok(!namesStates('kind:"a state:b"') && !namesStates('kind:"a \\" state:b"') && !namesStates('key:x'));
});

test('rows behind the first page are read anew, as many as there were', async () => {
  const row = (id, state) => ({ id: `${id}.0`, state });
  const old = { asked: 'a', from: '5.0', rows: [5, 4, 3].map((id) => row(id, 'Runnable')), cursor: '2.0', scanned: 3, truncated: false };
  const pages = { '5.0': { items: [row(5, 'Success'), row(4, 'Runnable')], cursor: '3.0', scanned: 2, truncated: false }, '3.0': { items: [row(3, 'Success'), row(2, 'Runnable')], cursor: '1.0', scanned: 2, truncated: true } };
  const asked = [];
  const anew = await reread(old, '5.0', async (cursor) => { asked.push(cursor); return pages[cursor]; });
  assert.deepEqual(asked, ['5.0', '3.0']);
  assert.deepEqual(anew, { asked: 'a', from: '5.0', rows: [row(5, 'Success'), row(4, 'Runnable'), row(3, 'Success'), row(2, 'Runnable')], cursor: '1.0', scanned: 4, truncated: true });
  assert.deepEqual((await reread(old, null, () => assert.fail('there is no page behind'))).rows, []);
  let count = 0;
  await reread(old, '5.0', async () => { count += 1; return { items: [], cursor: '5.0', scanned: 0, truncated: true }; });
  assert.equal(count, 40, 'however little a page brings, it ends');
});

test('an act tells what it concerned beyond its plan', () => {
  const reach = (undone, stays) => ({ reach: { undone, stays } });
  assert.deepEqual(beyond(reach(5, 0), reach(4, 0)), ['1 executed stage more than the plan showed is undone']);
  assert.deepEqual(beyond(reach(3, 2), reach(4, 0)), ['2 executed stages more than the plan showed stay']);
  for (const [done, planned] of [[reach(4, 0), reach(4, 0)], [{}, reach(4, 0)], [reach(4, 0), null]]) assert.deepEqual(beyond(done, planned), []);
});

test('the queue of a limit leads to those that wait for it', () => {
  const kinds = [{ kind: 'job', registered: true }, { kind: 'a "b": c', registered: true }, { kind: 'old', registered: false }];
  assert.equal(waitersOf('job', kinds), 'reason:permit kind:job');
  assert.equal(waitersOf('a "b": c', kinds), 'reason:permit kind:"a \\"b\\": c"');
  for (const name of ['*', 'cards', 'old']) assert.equal(waitersOf(name, kinds), 'reason:permit', name);
});
