// Every figure on every screen, compared with what the engine itself answers.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { act, after, api, becomes, facts, journey, pass, rows, shown, signal, submit, truth } from '../kit.mjs';

after(hook);

/** A world with one of everything, in which nothing moves. */
async function world() {
  await submit({ retry: 'rpc timeout rs-17' }, { key: 'req-1' });
  await submit({ stuck: 'cannot' });
  await submit({ children: 3 });
  await submit({ hold: 'default/users' });
  for (let at = 0; at < 3; at += 1) await submit({ hold: 'default/users' });
  const [one, two] = [await submit({ both: ['x', 'y'] }), await submit({ both: ['y', 'x'] })];
  await signal(one, 'go');
  await signal(two, 'go');
  for (let at = 0; at < 5; at += 1) await submit({ wait: 'go' }, { kind: 'limited' });
  for (let at = 0; at < 4; at += 1) await submit({ end: 'well' });
  await submit({ fail: 'bad' });
  const paused = await submit({ wait: 'go' });
  await api(`procedures/${paused}/pause`, { body: { reason: 'a look' } });
  await api(`procedures/${paused}/priority`, { body: { priority: -3, reason: 'later' } });
  await pass(600_000);
  return truth();
}

const number = (text) => Number(text.replaceAll(',', '').replace('–', '0'));
const ids = (text) => text.match(/\d+\.\d+/g) ?? [];
const live = (of) => of.rows.filter((row) => !row.ended);
/** Reads all pages of what the API says, which a tile leads to. */
const counted = async (filter) => (await api(`procedures?limit=500&filter=${encodeURIComponent(filter)}`)).body.items;

journey('the truth of Attention', async (page, go) => {
  const of = await world();
  await go();
  await shown(page, 'Attention');
  const main = page.getByRole('main');
  const tiles = await main.getByRole('link').filter({ hasText: /^\d+\s*[a-z]/ }).evaluateAll((all) => all.map((one) => {
    const [figure, name] = one.innerText.split('\n');
    return [name, Number(figure), new URL(one.href).searchParams.get('filter')];
  }));
  assert.deepEqual(Object.fromEntries(tiles.map(([name, figure]) => [name, figure])), {
    active: live(of).length, retrying: 1, 'rolling back': 0, 'rollback failed': 1, paused: 1, 'failed in 24 h': of.states.RolledBack,
  });
  for (const [name, figure, filter] of tiles) {
    // Of those that roll back the tile counts the ones that go on by themselves.
    const found = (await counted(filter)).filter((row) => name !== 'rolling back' || row.reason !== 'rollback_failed');
    assert.equal(found.length, figure, `${name} leads to as many as it says`);
  }
  assert.equal(await main.getByRole('list').first().getByRole('listitem').count(), of.verdicts);
  assert.equal(await main.getByRole('status').innerText(), `${of.verdicts} things need you.`);
});

journey('the truth of the list', async (page, go) => {
  const of = await world();
  await go('procedures?filter=state:live,ended');
  await becomes(async () => (await rows(page, 'Procedures')).map((row) => ({
    id: row.Id, kind: row.Kind.split(' ')[0], attempt: number(row.Attempt), priority: number(row.Prio),
  })), of.rows.map(({ id, kind, attempt, priority }) => ({ id, kind, attempt, priority })));
  assert.equal(await page.getByRole('main').getByRole('status').innerText(), `${of.rows.length} rows · ${of.rows.length} scanned`);
  const words = await page.getByTitle(/The engine's word is/).evaluateAll((all) => all.map((one) => /word is (\w+)/.exec(one.title)[1]));
  assert.deepEqual(words, of.rows.map((row) => row.state));
  await go('procedures');
  await becomes(async () => (await rows(page, 'Procedures')).map((row) => row.Id), live(of).map((row) => row.id));
});

journey('the truth of a procedure', async (page, go) => {
  const of = await world();
  await go('procedures/3.0');
  await shown(page, /^job v1 3\.0/);
  const tree = page.getByRole('treegrid', { name: 'Family and timeline' });
  const family = of.rows.filter((row) => row.id.startsWith('3.'));
  await tree.getByText(`${family.length} members`).waitFor();
  await becomes(() => tree.getByRole('row').getByRole('link').allInnerTexts(), family.map((row) => row.id));
  await go('procedures/1.0?tab=history');
  await shown(page, /^job v1 1\.0/);
  const [storm] = of.rows;
  await page.getByText(new RegExp(`^Backs off after attempt ${storm.attempt}\\b`)).waitFor();
  const entries = await rows(page, 'History');
  assert.equal(entries.at(-1).Attempt, String(storm.attempt));
  assert.equal(entries.filter((entry) => entry['Ended with'] === 'retry').length, entries.filter((entry) => entry.Error === 'rpc timeout rs-17').length);
});

journey('the truth of locks and waits', async (page, go) => {
  const of = await world();
  await go('waits');
  await shown(page, 'Locks and waits');
  assert.deepEqual((await rows(page, 'Locks')).map((row) => ({ path: row.Resource, holders: ids(row.Holder), waiting: ids(row['Waiters, in order']) })), of.locks);
  const waiting = of.locks.reduce((sum, lock) => sum + lock.waiting.length, 0);
  assert.equal(await page.getByRole('main').getByRole('status').innerText(), `${of.locks.length} locks held or wanted; ${waiting} procedures wait for one`);
});

journey('the truth of limits', async (page, go) => {
  const of = await world();
  await go('limits');
  await shown(page, 'Limits');
  const shownLimits = (await rows(page, 'Limits')).map((row) => {
    const [used, limit] = row.Used.split(' of ').map(number);
    return { key: row.Of, limit, used, waiting: number(row.Queue.split(' ')[0].replace('nobody', '0')) };
  });
  assert.deepEqual(shownLimits, of.limits);
  assert.equal(await page.getByRole('spinbutton').inputValue(), String(of.limits[0].limit));
});

journey('the truth of kinds', async (page, go) => {
  await world();
  // Something of the last minute, and of just before it.
  await submit({ end: 'well' });
  await submit({ wait: 'go' }, { kind: 'limited' });
  await pass(30_000);
  for (const each of [{ end: 'well' }, { fail: 'bad' }, { children: 2 }]) await submit(each);
  await pass(30_000);
  const of = await truth();
  await go('kinds');
  await shown(page, 'Kinds');
  const table = await rows(page, 'Kinds');
  const kinds = table.map((row) => row['Kind, and what comes next'].split(' ')[0]);
  for (const [at, row] of table.entries()) {
    const kind = kinds[at];
    const mine = of.rows.filter((each) => each.kind === kind);
    const states = (...names) => String(mine.filter((each) => names.includes(each.state)).length || '–');
    const { 'Kind, and what comes next': said, Actions: buttons, 'Stages since the start': since = '', 'In the last minute': recent, ...figures } = row;
    const [started, ended] = [mine.filter((each) => each.submitted < 60), mine.filter((each) => each.ended && each.ended_ago < 60)];
    const failed = ended.filter((each) => each.state !== 'Success').length;
    const wanted = `${started.length} started ${ended.length} ended${failed ? `, ${failed} failed` : ''}`;
    assert.equal(recent, started.length + ended.length ? wanted : 'none', `${kind} in the last minute`);
    if (mine.length > 0) assert.match(since, new RegExp(`\\b${mine.length} submitted`));
    assert.match(said, / (stages start as they become ready|it runs as soon as one is submitted)$/);
    assert.match(buttons, /Pause/);
    assert.deepEqual(figures, {
      Versions: of.live_by_kind[kind] ? `v1 ${of.live_by_kind[kind]}` : 'none live',
      Initial: states('Initializing'),
      Runnable: states('Runnable'),
      Waiting: states('Waiting', 'WaitingTimeout'),
      Failed: states('Failed'),
      Undone: states('RolledBack'),
      Success: states('Success'),
    });
  }
  assert.match(table.find((row) => row.Versions && row['Kind, and what comes next'].startsWith('job '))['In the last minute'], /^5 started 2 ended, 1 failed$/);
  assert.deepEqual(kinds.filter((kind) => kind in of.live_by_kind), Object.keys(of.live_by_kind).sort());
});

journey('the truth of the engine', async (page, go) => {
  const of = await world();
  await go('engine');
  await shown(page, 'Engine');
  const said = await facts(page);
  assert.deepEqual({ decided: said.decided, durable: said.durable, epoch: said.epoch, commits: number(said.commits), going: number(said['stages out']) },
    { decided: of.decided, durable: of.durable, epoch: of.epoch, commits: of.commits, going: of.going });
  assert.equal(of.live_families, new Set(live(of).map((row) => row.id.split('.')[0])).size, 'the engine agrees with itself');
  const figures = { 'live families': 'live_families', actors: 'actors', 'results that came late': 'late', 'lost wake-ups': 'lost_wakes' };
  for (const [name, field] of Object.entries(figures)) assert.equal(number(said[name]), of[field], name);
  assert.equal(number(said.batches.split(' ')[0]), of.batches);
  assert.deepEqual([number(said['families found']), number(said.procedures)], [of.found.families, of.found.procedures]);
  assert.equal(await page.getByRole('row').count(), of.workers + 1, 'workers, below the titles of their columns');
  assert.equal(await page.getByRole('main').getByRole('status').innerText(), 'It runs, and all that was decided is on disk.');
});

journey('the truth of the audit', async (page, go) => {
  const of = await world();
  await go('audit');
  await shown(page, 'Audit');
  const table = await rows(page, 'Audit');
  assert.equal(table.length, of.audit);
  assert.deepEqual(table.map((row) => row.Why), ['later', 'a look']);
  assert.equal(await page.getByRole('main').getByRole('status').innerText(), `${of.audit} acts`);
  await page.getByRole('searchbox', { name: 'Filter' }).fill('later');
  await becomes(async () => (await rows(page, 'Audit')).map((row) => row.Why), ['later']);
});
