// Who may do what: a reader, who is not known at all, and a page of somebody else's.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after as hook } from 'node:test';
import { after, api, journey, pass, SCREENS, shown, SITE, submit, truth } from '../kit.mjs';

after(hook);

/** Every path that changes something, and what it would be sent. */
const ACTIONS = (id) => [
  ...['pause', 'resume', 'retry', 'retry-undo', 'abort', 'skip-undo', 'bypass', 'discharge', 'acknowledge', 'reveal', 'export']
    .map((verb) => [`procedures/${id}/${verb}`, { confirm: id }]),
  [`procedures/${id}/override-result`, { confirm: id, output: 'x' }],
  [`procedures/${id}/priority`, { priority: 1 }],
  [`procedures/${id}/signal`, { name: 'go', payload: null }],
  ['kinds/job/pause', {}], ['kinds/job/resume', {}], ['limits/limited', { limit: 9 }],
  ['engine/pause', {}], ['engine/resume', {}], ['engine/drain', {}],
  ['bulk/abort', { filter: 'kind:job' }],
];

/** A request as any program may send it: names and headers as it likes. */
const ask = (path, headers, body) => new Promise((done, failed) => {
  request(`${SITE}/${path}`, { headers, method: body ? 'POST' : 'GET' }, (reply) => {
    reply.resume();
    reply.on('end', () => done(reply.statusCode));
  }).on('error', failed).end(body);
});

journey('a reader sees no button that acts, and is refused each action', async (page, go) => {
  const id = await submit({ stuck: 'cannot' });
  for (let at = 0; at < 3; at += 1) await submit({ wait: 'go' }, { kind: 'limited' });
  await pass(60_000);
  const about = ['waits', 'history', 'data', 'signals', 'traces', 'audit'].map((tab) => ({ path: `procedures/${id}?tab=${tab}`, title: /^job v1/ }));
  // What sorts, filters, folds, copies and chooses what is seen changes nothing.
  const harmless = /^(Unfinished|Waiting for a lock|Retrying|Rolling back|Old|Finished|Theme|Keys|Columns|Copy .*|Export|All .*|Last .*)$/;
  for (const screen of [...SCREENS, ...about]) {
    await pass(1_000); // ten explanations a second are given in all
    await go(screen.path);
    await shown(page, screen.title);
    await page.getByText('read only').waitFor();
    const buttons = await page.getByRole('button').evaluateAll((all) => all.filter((one) => !one.closest('[role=columnheader]')).map((one) => one.getAttribute('aria-label') ?? one.innerText));
    assert.deepEqual(buttons.filter((name) => !harmless.test(name)), [], `on ${screen.path}`);
    assert.equal(await page.getByRole('spinbutton').count(), 0, `on ${screen.path}`);
  }
  const before = await truth();
  for (const [path, body] of ACTIONS(id)) {
    const { status, body: answer } = await api(path, { mount: 'reader', body: { reason: 'x', ...body } });
    assert.deepEqual([path, status, answer.kind], [path, 403, 'right']);
    assert.match(answer.detail, /operate|abort|repair|configure|submit|payload/, 'the right is named');
  }
  assert.deepEqual(await truth(), before, 'nothing has changed');
}, { mount: 'reader' });

journey('one for this machine alone is read only', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await go();
  await shown(page, 'Attention');
  await page.getByText('read only').waitFor();
  const host = new URL(SITE).host;
  assert.equal(await ask('default/api/v1/me', {}), 200);
  assert.equal(await ask('default/api/v1/me', { host: host.replace('127.0.0.1', 'localhost') }), 200);
  assert.equal(await ask('default/api/v1/me', { host: 'rebound.example' }), 421);
  for (const header of ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via']) {
    assert.equal(await ask('default/api/v1/me', { [header]: '10.0.0.1' }), 403, header);
    assert.equal(await ask('default/', { [header]: '10.0.0.1' }), 403, `the page, ${header}`);
  }
  for (const [path, body] of ACTIONS(id)) {
    assert.equal((await api(path, { mount: 'default', body: { reason: 'x', ...body } })).status, 403, path);
  }
}, { mount: 'default' });

journey('a name that was made to lead here gets nothing, whatever the access says', async () => {
  const id = await submit({ wait: 'go' });
  const before = await truth();
  const rebound = { host: 'rebound.example', origin: 'http://rebound.example', 'sec-fetch-site': 'same-origin' };
  for (const path of ['all/', 'all/page.js', 'all/api/v1/me', 'all/api/v1/events', `all/procedures/${id}`]) {
    assert.equal(await ask(path, rebound), 421, path);
  }
  const own = { ...rebound, 'content-type': 'application/json', 'x-procession': '1' };
  for (const path of ['engine/pause', `procedures/${id}/pause`, `procedures/${id}/reveal`, `procedures/${id}/abort?dry_run=true`]) {
    assert.equal(await ask(`all/api/v1/${path}`, own, '{"reason":"theirs"}'), 421, path);
  }
  assert.deepEqual(await truth(), before, 'nothing has changed');
});

journey("another site's page posts in vain", async (page) => {
  await submit({ wait: 'go' });
  // The same server by another name is another site to a browser.
  const other = SITE.replace('127.0.0.1', 'localhost');
  await page.route(`${other}/theirs`, (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>theirs</title><p>hello</p>' }));
  await page.goto(`${other}/theirs`);
  const before = await truth();
  const path = 'all/api/v1/engine/pause';
  const tried = await page.evaluate(async (target) => {
    const post = (how) => fetch(target, { method: 'POST', body: '{"reason":"theirs"}', ...how }).then((reply) => reply.type, () => 'refused');
    return [
      await post({ headers: { 'content-type': 'application/json', 'x-procession': '1' } }),
      // The browser sends this one without asking, and tells the page nothing of the answer.
      await post({ mode: 'no-cors', headers: { 'content-type': 'text/plain' } }),
    ];
  }, `${SITE}/${path}`);
  assert.equal(tried[0], 'refused', 'the browser asks first, and is not allowed');
  assert.ok(['opaque', 'refused'].includes(tried[1]), tried[1]);
  const answer = page.waitForResponse((reply) => reply.request().isNavigationRequest() && reply.request().method() === 'POST');
  await page.evaluate((target) => {
    const form = document.createElement('form');
    Object.assign(form, { method: 'post', enctype: 'text/plain', action: target });
    document.body.append(form);
    form.submit();
  }, `${SITE}/${path}`);
  assert.equal((await answer).status(), 403);
  // What a browser says of where a request comes from, each by itself.
  const own = { 'content-type': 'application/json', 'x-procession': '1' };
  const body = '{"reason":"theirs"}';
  assert.equal(await ask(path, { ...own, 'sec-fetch-site': 'cross-site' }, body), 403);
  assert.equal(await ask(path, { ...own, 'sec-fetch-site': 'same-site' }, body), 403);
  assert.equal(await ask(path, { ...own, origin: other }, body), 403);
  assert.equal(await ask(path, { 'content-type': 'application/json' }, body), 403);
  assert.deepEqual(await truth(), before, 'nothing has changed');
}, { expected: /CORS|403|Failed to load resource|ERR_FAILED/ });

journey('what is too large is refused, and says so', async (page, go) => {
  const id = await submit({ wait: 'go' });
  await go('procedures');
  await shown(page, 'Procedures');
  await page.getByRole('combobox', { name: 'Filter' }).fill(`key:${'x'.repeat(1_100)}`);
  const alert = page.getByRole('main').getByRole('alert');
  await alert.waitFor();
  assert.match(await alert.innerText(), /The filter .*1,?024/);

  await go(`procedures/${id}`);
  await page.getByRole('button', { name: 'Signal…', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: /^Signal/ });
  await dialog.getByRole('textbox', { name: 'Payload' }).fill(JSON.stringify('x'.repeat(70_000)));
  await dialog.getByRole('alert').waitFor();
  assert.match(await dialog.getByRole('alert').innerText(), /65,?536|64 KiB/);
  assert.deepEqual((await truth()).states, { WaitingTimeout: 1 });
}, { expected: /413|400/ });
