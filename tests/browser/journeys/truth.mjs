// Every figure on every screen, compared with what the engine itself answers.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, age, api, becomes, bytes, covers, facts, journey, many, newest, pass, past, rows, SAID, shown, signal, submit, took, truth } from '../kit.mjs';

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
  // Its undo has failed once, and is tried again.
  await submit({ stuck: 'not yet' });
  return truth();
}

/** How much is committed is compared for itself, where nothing else is: in this world something always tries again. */
const PULSE = { 'Commits a second': SAID, 'Commits a second in the last five minutes': SAID, figcaption: SAID };
/** The page's clock stands with the engine's, so that ages are exact. */
const STILL = { still: true };
const p99 = (of) => ['Commit p99', took(of.commit_p99_ms)];
/** What is less than ten milliseconds is told to a tenth of one. */
const fine = (ms) => (ms < 10 ? `${Math.round(ms * 10) / 10} ms` : took(ms));
const several = (value, one, many = `${one}s`) => `${value} ${value === 1 ? one : many}`;
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
    active: live(of).length, retrying: 1, 'rolling back': 1, 'rollback failed': 1, paused: 1, 'failed in 24 h': of.states.RolledBack,
  });
  const WORDS = { Initializing: 'initializing', Runnable: 'runnable', Waiting: 'waiting', WaitingTimeout: 'waiting', Failed: 'failed' };
  const active = live(of).map((row) => WORDS[row.state]);
  const byState = [...new Set(Object.values(WORDS))].filter((word) => active.includes(word)).map((word) => `${active.filter((other) => other === word).length} ${word}`);
  assert.equal((await main.getByRole('link', { name: /^\d+\s*active/ }).innerText()).split('\n')[2], byState.join(', '));
  for (const [name, figure, filter] of tiles) {
    assert.equal((await counted(filter)).length, figure, `${name} leads to as many as it says`);
  }
  assert.equal(await main.getByRole('list').first().getByRole('listitem').count(), of.verdicts);
  for (const { text, since, facts: known } of of.told) {
    const verdict = main.getByRole('listitem').filter({ hasText: new RegExp(text.replace(/[().]/g, '\\$&'), 'i') });
    const said = (await verdict.innerText()).replace(/\s+/g, ' ');
    assert.ok(said.includes(` for ${age(since)} `), `${said}: for ${age(since)}`);
    for (const [name, value] of Object.entries(known)) {
      if (name === 'next') assert.match(said, /next in 3 m/);
      else if (!['cycle', 'victim'].includes(name)) assert.ok(said.includes(`${name} ${value}`), `${said}: ${name} ${value}`);
    }
  }
  await covers(page, {
    status: [`${of.verdicts} things need you.`], tile: SAID, ...PULSE, 'Commit p99': p99(of),
    'verdict: rule': SAID, 'verdict: id': SAID, 'verdict: text': SAID, 'verdict: facts': SAID, 'verdict: since': SAID, 'verdict: button': SAID,
  });
}, STILL);

journey('the truth of the list', async (page, go) => {
  const of = await world();
  const listed = newest(of.rows);
  await go('procedures?filter=state:live,ended');
  await becomes(async () => (await rows(page, 'Procedures')).map((row) => ({
    id: row.Id, kind: row.Kind.split(' ')[0], attempt: number(row.Attempt), priority: number(row.Prio),
  })), listed.map(({ id, kind, attempt, priority }) => ({ id, kind, attempt, priority })));
  assert.equal(await page.getByRole('main').getByRole('status').innerText(), `${of.rows.length} rows · ${of.rows.length} scanned`);
  const words = await page.getByTitle(/The engine's word is/).evaluateAll((all) => all.map((one) => /word is (\w+)/.exec(one.title)[1]));
  assert.deepEqual(words, listed.map((row) => row.state));
  const each = (show) => listed.map(show).filter((text) => /\d/.test(text));
  await covers(page, {
    status: SAID,
    'Procedures: Id': each(({ id }) => id),
    'Procedures: Kind': each(({ kind }) => `${kind} v1`),
    'Procedures: Key': ['req-1'],
    'Procedures: Why, and what comes next': ['failed with “not yet”, and backs off after attempt 1 its undo is retried at 10:10:01', `backs off after attempt ${of.rows[0].attempt} stage Work runs at 10:13:31`],
    'Procedures: Since': each(({ since }) => age(since)),
    'Procedures: Attempt': each(({ attempt }) => (attempt ? String(attempt) : '–')),
    'Procedures: Prio': each(({ priority }) => (priority ? String(priority) : '–')),
    'Procedures: Root': each(({ id }) => (id.endsWith('.0') ? '–' : id.replace(/\..*/, '.0'))),
  });
  await go('procedures');
  await becomes(async () => (await rows(page, 'Procedures')).map((row) => row.Id), newest(live(of)).map((row) => row.id));
}, STILL);

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
  const known = await past('1.0');
  const column = (show) => known.map(show).map(String);
  const begun = (entry) => new Date(of.now - entry.begun).toISOString().slice(11, 19);
  await covers(page, {
    h1: ['job v1 1.0 copy'], id: ['1.0'], li: ['key req-1', 'priority 0', 'submitted 10:00:00'],
    what: [`retrying for ${age(storm.since)}`],
    why: [`Backs off after attempt ${storm.attempt}; the last error, of stage Work: “rpc timeout rs-17”.`],
    next: ['Next: stage Work runs at 10:13:31.'],
    says: [`retry stormS2 ${of.told.find((verdict) => verdict.procedure === '1.0').text}, for ${age(of.told.find((verdict) => verdict.procedure === '1.0').since)}`],
    // Ticks of the axis, and how much of it is shown: neither is the engine's.
    treegrid: SAID, button: SAID, tab: [`History ${known.length}`, 'Signals 0', 'Actions and audit 0'],
    'History: #': column((entry) => entry.number),
    'History: Visit': column((entry) => entry.visit),
    'History: Attempt': column((entry) => entry.attempt),
    'History: Begun': column(begun),
    'History: Waited': column((entry) => took(entry.waited)),
    'History: Took': column((entry) => took(entry.took)),
    'History: Error': entries.filter((entry) => entry.Error !== '–').map((entry) => entry.Error),
  });
  await go('procedures/8.0?tab=waits');
  await shown(page, /^job v1 8\.0/);
  const deadlock = of.told.find((verdict) => verdict.rule === 'deadlock');
  await page.getByText(`for ${age(of.rows.find((row) => row.id === '8.0').since)}`).first().waitFor();
  // The stage that takes its signal has not run: it waits for the lock.
  await covers(page, {
    h1: SAID, id: SAID, li: ['priority 0', 'submitted 10:00:00'], what: [`waiting · lock for ${age(of.rows.find((row) => row.id === '8.0').since)}`],
    why: ['Waits for the exclusive lock y, held by 9.0, place 1 of 1.Show waits'],
    says: [`deadlockS5 ${deadlock.text.replace(/^a/, 'A')}, for ${age(deadlock.since)} · victim ${deadlock.facts.victim}`],
    treegrid: SAID, button: SAID, tab: [`History ${(await past('8.0')).length}`, 'Signals 1', 'Actions and audit 0'],
    'Waits: Who': ['8.0', '9.0'], 'Waits: waits for': ['9.0', '8.0'],
    'Waits: for': ['8.0', '9.0'].map((id) => age(of.rows.find((row) => row.id === id).since)),
  });
}, STILL);

journey('the truth of what one waits for', async (page, go) => {
  const of = await world();
  // Done of all, out of the limit, mode and holder; and the place.
  const says = async (id, what) => {
    await go(`procedures/${id}`);
    await becomes(async () => (await page.getByText(/^Waits for /).locator('..').innerText()).replace(/\s+/g, ' ').split('. ')[0], `Waits for ${what}`);
  };
  const [limit] = of.limits;
  const lock = of.locks.find(({ path }) => path === 'default/users');
  await says('3.0', 'its children: 0 of 3 done; in progress: 3.1, 3.2, 3.3');
  await says('13.0', `a permit of limited: ${limit.used} of ${limit.limit} are out, place 2 of ${limit.waiting}, behind 12.0`);
  await says('6.0', `the exclusive lock default/users, held by ${lock.holders}, place ${lock.waiting.indexOf('6.0') + 1} of ${lock.waiting.length}, behind 5.0`);
  await signal('3.2', 'go');
  await pass(1_000);
  await says('3.0', 'its children: 1 of 3 done; in progress: 3.1, 3.3');
}, STILL);

journey('the truth of locks and waits', async (page, go) => {
  const of = await world();
  await go('waits');
  await shown(page, 'Locks and waits');
  assert.deepEqual((await rows(page, 'Locks')).map((row) => ({ path: row.Resource, holders: ids(row.Holder), waiting: ids(row['Waiters, in order']) })),
    of.locks.map(({ path, holders, waiting }) => ({ path, holders, waiting })));
  const waiting = of.locks.reduce((sum, lock) => sum + lock.waiting.length, 0);
  assert.equal(await page.getByRole('main').getByRole('status').innerText(), `${of.locks.length} locks held or wanted; ${waiting} procedures wait for one`);
  const circle = of.told.find((verdict) => verdict.rule === 'deadlock');
  // Graphs are laid out by a script that comes behind the rest.
  await page.getByRole('img', { name: '4 nodes; the table above says the same' }).waitFor();
  await covers(page, {
    status: SAID, 'Locks: Held for': of.locks.map((lock) => age(lock.held)), 'Locks: Holder': SAID, 'Locks: Waiters, in order': SAID, id: SAID,
    p: [`8.0 waits for 9.0 (lock y, for ${age(circle.since)}), 9.0 waits for 8.0 (lock x, for ${age(circle.since)}). The victim is ${circle.facts.victim}: its end lets the others go on.`],
    'Locks: Next': of.locks.filter((lock) => lock.waiting.length).map((lock) => `${lock.waiting[0]} has it when ${lock.holders.join(' and ')} gives it up`),
    // The graph of the circle: two procedures and two locks.
    a: ['8.0', '9.0'], '4 nodes; the table above says the same': SAID,
  });
}, STILL);

journey('the truth of limits', async (page, go) => {
  const of = await world();
  await go('limits');
  await shown(page, 'Limits');
  const shownLimits = (await rows(page, 'Limits')).map((row) => {
    const [used, limit] = row.Used.split(' of ').map(number);
    return { key: row.Of, limit, used, waiting: number(row.Queue.split(' ')[0].replace('nobody', '0')), had_to_wait: number(row['Had to wait']) };
  });
  assert.deepEqual(shownLimits, of.limits);
  const oldest = of.rows.filter((row) => row.kind === 'limited' && row.state === 'Initializing').sort((one, other) => other.since - one.since)[0];
  await covers(page, {
    status: [`${of.limits.length} limit; a change is durable, and takes no permit back.`],
    'Limits: Used': SAID, 'Limits: Had to wait': SAID, 'Limits: Queue': SAID, 'Limits: Oldest waiter': [`${oldest.id} for ${age(oldest.since)}`],
    'used of limited': [`used of limited ${of.limits[0].used}`], 'limit of limited': [String(of.limits[0].limit)],
  });
}, STILL);

/** Versions of the machines that `sagas.rs` registers. @type {Record<string, string>} */
const MACHINES = { 'saga.order': '2', 'saga.tour': '–', 'saga.drawn': '1' };

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
    const known = of.since_start[kind];
    const several = (figure, one, others = `${one}s`) => `${figure} ${figure === 1 ? one : others}`;
    if (mine.length > 0) assert.ok(since.endsWith([` ${known.submitted} submitted`, known.retries && several(known.retries, 'retry', 'retries'), known.panics && several(known.panics, 'panic')].filter(Boolean).join(', ')), `${kind}: ${since}`);
    if (mine.length > 0) assert.match(since, /^Prepare 0 ms · Work 0 ms /, 'nothing takes time by a clock that stands');
    assert.ok(said.endsWith(of.live_by_kind[kind] ? ' stages start as they become ready' : ' it runs as soon as one is submitted'), said);
    assert.match(buttons, /Pause/);
    assert.deepEqual(figures, {
      Versions: MACHINES[kind] ?? (of.live_by_kind[kind] ? `v1 ${of.live_by_kind[kind]}` : 'none'),
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
  const columns = ['Versions', 'Initial', 'Runnable', 'Waiting', 'Failed', 'Undone', 'Success', 'In the last minute', 'Stages since the start'];
  await covers(page, { status: [`${table.length} kinds; of the finished the newest 10,000 are counted.`], ...Object.fromEntries(columns.map((name) => [`Kinds: ${name}`, SAID])) });
}, STILL);

journey('the truth of the engine', async (page, go) => {
  const of = await world();
  await go('engine');
  await shown(page, 'Engine');
  assert.equal(of.live_families, new Set(live(of).map((row) => row.id.split('.')[0])).size, 'the engine agrees with itself');
  const fact = (value) => [String(value)];
  const mails = of.mailboxes;
  // This page's own is opened behind what it reads first.
  assert.match((await facts(page))['streams open'], /^[01]$/);
  await covers(page, {
    ...PULSE, 'Commit p99': p99(of), 'commit p99': ['commit p99', took(of.commit_p99_ms)], 'sync p50': ['sync p50', fine(of.sync_ms[0])], 'sync p99': ['sync p99', fine(of.sync_ms[1])],
    decided: fact(of.decided), durable: fact(of.durable), epoch: fact(of.epoch), commits: fact(of.commits),
    batches: [`${of.batches} (${(of.commits / of.batches).toFixed(1)} commits each)`],
    'last batch': [`${of.last_batch.commits} commit, ${took(of.last_batch.ms)}`],
    'on disk': [bytes(of.size_bytes)], appended: [bytes(of.appended_bytes)], 'free on its disk': [bytes(of.disk_free_bytes)],
    'live families': fact(of.live_families), 'stages out': fact(of.going), actors: fact(of.actors),
    'results that came late': fact(of.late), 'lost wake-ups': fact(of.lost_wakes),
    panics: fact(Object.values(of.since_start).reduce((sum, kind) => sum + kind.panics, 0)),
    'families found': fact(of.found.families), procedures: fact(of.found.procedures), quarantined: fact(of.found.quarantined), took: [took(of.found.ms)], 'of that to read': [took(of.found.read)],
    'streams open': SAID,
    supervisor: fact(mails[0]), limiter: fact(mails[1]), journal: fact(several(mails[2], 'batch', 'batches')), reader: fact(several(mails[3], 'read')), workers: fact(several(mails[4], 'call')),
    ': Worker': of.workers.map(([worker]) => String(worker)), ': Queue': of.workers.filter(([, waiting]) => waiting).map(([, waiting]) => several(waiting, 'call')),
    ': Actors': of.workers.map(([, , actors]) => String(actors)),
  });
  assert.equal(await page.getByRole('main').getByRole('status').innerText(), 'It runs, and all that was decided is on disk.');
}, STILL);

journey('the truth of how much is committed', async (page, go) => {
  // Whatever an order does is shown before it is answered, and no time has passed: the count is exact.
  const before = await truth();
  await many({ wait: 'go' }, 12);
  const after12 = await truth();
  await pass(2_000);
  const rate = (of, since) => (Number(of.durable) - Number(since.durable)) / 2;
  const shownRates = async (path) => {
    await go(path);
    const section = page.getByRole('region', { name: 'Throughput' });
    const line = await section.getByRole('img').getAttribute('aria-label');
    const said = await facts(page);
    return [said['Commits a second'], line, await section.getByRole('figure').innerText()];
  };
  const words = (now, most) => [String(now), `Commits a second in the last five minutes: ${now} now, ${most} at most`, `5 m ago\npeak ${most}/s\nnow`];
  const first = rate(after12, before);
  assert.ok(first >= 12, 'at least two commits each');
  for (const path of ['', 'engine']) await becomes(() => shownRates(path), words(first, first));
  await signal('1.0', 'go');
  const again = await truth();
  await pass(2_000);
  for (const path of ['', 'engine']) await becomes(() => shownRates(path), words(rate(again, after12), first));
  await pass(2_000);
  for (const path of ['', 'engine']) await becomes(() => shownRates(path), words(0, first));
  await pass(300_000);
  for (const path of ['', 'engine']) await becomes(() => shownRates(path), words(0, 0));
}, STILL);

journey('the truth of the audit', async (page, go) => {
  const of = await world();
  await go('audit');
  await shown(page, 'Audit');
  const table = await rows(page, 'Audit');
  assert.equal(table.length, of.audit);
  assert.deepEqual(table.map((row) => row.Why), ['later', 'a look']);
  await covers(page, {
    status: [`${of.audit} acts`], 'Audit: When': of.acts.map(age), 'Audit: What': ['set the priority of 20.0 to -3', 'pause 20.0'], 'Audit: Target': ['20.0', '20.0'],
  });
  await page.getByRole('searchbox', { name: 'Filter' }).fill('later');
  await becomes(async () => (await rows(page, 'Audit')).map((row) => row.Why), ['later']);
}, STILL);
