// Every screen, tab and dialog at every width, dark and light: nothing wider than the window, no control outside it or
// cut off, every text at least 4.5 to 1 from what is behind it, and a console without errors.

import assert from 'node:assert/strict';
import { after as hook } from 'node:test';
import { after, album, api, dialog, journey, pass, picture, saga, schedule, SCREENS, shown, signal, speaker, stands, stream, submit, until } from '../kit.mjs';
import { faint, faintOnCanvas, ON_CANVAS, outside } from '../measure.mjs';

after(hook);

/** @typedef {import('playwright-core').Page} Page */

/**
 * @typedef {object} Look
 * @property {string} path
 * @property {string | RegExp} [title] none where there is no screen
 * @property {string} [tab] the title of the tab that is open
 * @property {[Parameters<Page['getByRole']>[0], string | RegExp]} [has] by role and name, what shows that its content is there
 * @property {string | RegExp} [says] a text that shows it
 * @property {(page: Page) => Promise<unknown>} [open] what is opened on it: a dialog, a menu, a form
 * @property {(page: Page) => Promise<unknown>} [close] closes it, where Escape and another screen do not
 * @property {number[]} [widths] other widths than all
 */

/** From the widest to the narrowest: what is opened stays open while the window shrinks. */
const WIDTHS = [1920, 1280, 1000, 390, 360];
/** Up to 1,100 pixels the menu of the screens is folded. */
const FOLDED = WIDTHS.filter((width) => width <= 1100);

const LONG = 'x'.repeat(200);
/** An override to right-to-left, which nothing in the text takes back. */
const TURNED = 'order-\u202e4711';
/** A path that no screen has. */
const NOWHERE = 'nothing';
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

/** One of each thing that a page may show, with the longest names; returns their ids. */
async function world() {
  const long = await submit({ wait: LONG }, { key: `order-${LONG}`, trace: `00-${TRACE}-00f067aa0ba902b7-01`, labels: { customer: LONG, city: 'New York' } });
  await signal(long, `early-${LONG}`);
  const retries = await submit({ retry: `rpc timeout ${LONG}` }, { key: TURNED });
  const stuck = await submit({ stuck: LONG });
  const asks = await submit({ ask: `may ${LONG} go?` });
  const parent = await submit({ children: 9 });
  const failed = await submit({ fail: LONG }, { key: 'bad' });
  for (const [key, text] of [['order-1', 'no space on rs-17'], ['order-2', 'no space on rs-4']]) await submit({ fail: text }, { key });
  const ended = await submit({ end: 'well' });
  const filled = await submit({ fill: [LONG] });
  const gates = await submit('graph');
  const [one, two] = [await submit({ both: [LONG, 'y'] }), await submit({ both: ['y', LONG] })];
  await signal(one, 'go');
  await signal(two, 'go');
  for (let at = 0; at < 3; at += 1) await submit({ wait: 'go' }, { kind: 'limited' });
  await api('kinds/limited/pause', { body: { reason: `for ${LONG}` } });
  await api(`procedures/${parent}/priority`, { body: { priority: 7, reason: `for ${LONG}` } });
  const [set, folded, queue, nightly] = [await album(), await album(320), await stream(8), await schedule()];
  const order = await saga('order', { reserve: 'ok', pay: 'x.Boom' });
  const tour = await saga('tour', { flight: 'x.Boom', rooms: ['ok', 'x.Boom', 'ok'], pay: 'x.Boom' });
  const { body: plan } = await api('bulk/pause?dry_run=true', { body: { filter: 'key:order', reason: `for ${LONG}` } });
  const { body: bulk } = await api('bulk/pause', { body: { filter: 'key:order', reason: `for ${LONG}`, expected: plan.revision } });
  await pass(120_000);
  await until(async () => {
    await pass(10_000);
    return (await api('failures')).body.count >= 3;
  }, 'the failures are listed');
  return { long, retries, stuck, asks, parent, failed, ended, filled, gates, one, set, folded, queue, nightly, order, tour, bulk: bulk.id };
}

/** The tabs that every procedure has, and those that some have, by their names in the address. */
const TABS = { waits: 'Waits', history: 'History', data: 'Payload and output', signals: 'Signals', traces: 'Trace links', audit: 'Actions and audit' };
const MORE_TABS = { graph: 'Graph', queue: 'Queue', machine: 'Machine', bulk: 'Bulk' };

/** One procedure and one of its tabs. @param {string} id @param {keyof TABS | keyof MORE_TABS} tab @param {Partial<Look>} [more] @returns {Look} */
const one = (id, tab, more = {}) => ({ path: `procedures/${id}?tab=${tab}`, title: new RegExp(` ${id.replace('.', '\\.')}`), tab: { ...TABS, ...MORE_TABS }[tab], ...more });

/** One of its attempts, opened. @param {string} id @param {number} entry @param {Partial<Look>} more @returns {Look} */
const attempt = (id, entry, more) => ({ ...one(id, 'history', more), path: `procedures/${id}?tab=history&entry=${entry}` });

/** Presses a button that opens something. @param {string | RegExp} name */
const press = (name) => (/** @type {Page} */ page) => page.getByRole('main').getByRole('button', { name, exact: typeof name === 'string' }).first().click();

/**
 * The plan of an act, from the button that asks for it.
 * @param {string} verb @param {{isHidden?: boolean, fill?: [string | RegExp, string], says?: string | RegExp}} [how] `isHidden`: it is among *More actions*
 */
const plan = (verb, { isHidden = false, fill, says } = {}) => async (/** @type {Page} */ page) => {
  if (isHidden) await press('More actions')(page);
  await press(`${verb}…`)(page);
  const open = dialog(page, new RegExp(`^${verb}`));
  if (fill) await open.getByRole('textbox', { name: fill[0] }).fill(fill[1]);
  if (says) await open.getByText(says).first().waitFor();
  await until(async () => (await open.getByRole('region', { name: 'Plan' }).getAttribute('aria-busy')) === 'false', `${verb} has its plan`);
};

/**
 * The notice that the engine suffers, over the screen. It is told again until it is seen, as a page that heard nothing for
 * a second reads anew how the engine truly stands.
 * @param {string} engine @param {string | RegExp} says
 */
const notice = (engine, says) => ({
  open: (/** @type {Page} */ page) => until(async () => {
    await stands(page, engine);
    return page.getByRole('alert').filter({ hasText: says }).isVisible();
  }, `the notice says ${engine}`),
  close: async (/** @type {Page} */ page) => {
    await stands(page, 'live');
    await page.getByRole('alert').filter({ hasText: says }).waitFor({ state: 'detached' });
  },
});

/** What the page says for a moment, after a key. @type {Look['open']} */
const copied = async (page) => {
  await page.keyboard.press('y');
  await page.getByRole('status').filter({ hasText: /is copied|be copied/ }).waitFor();
};

/** What an engine that has nothing says on each screen. @returns {Look[]} */
const empty = () => [...SCREENS, { path: 'kinds/charts', title: 'Charts' }, { path: 'kinds?stages=job', title: 'Kinds' }];

/** @param {Awaited<ReturnType<typeof world>>} ids @returns {Look[]} */
const screens = (ids) => [
  { path: '', title: 'Attention', says: /rollback failed/i },
  { path: '', title: 'Attention', widths: FOLDED, open: (page) => page.getByRole('navigation', { name: 'Screens' }).getByRole('button', { name: /^Attention/ }).click() },
  { path: 'failures', title: 'Failures', has: ['table', 'Failures'] },
  { path: 'failures', title: 'Failures', open: plan('Run again', { says: /would be asked of/ }) },
  { path: 'procedures', title: 'Procedures', has: ['table', 'Procedures'] },
  { path: 'procedures?filter=state:live,ended', title: 'Procedures', has: ['table', 'Procedures'] },
  { path: 'procedures?filter=kind:nothing', title: 'Procedures', says: /No running procedure matches/ },
  { path: 'procedures', title: 'Procedures', open: async (page) => {
    await page.getByRole('combobox', { name: 'Filter' }).fill('kind:j');
    await page.getByRole('listbox', { name: 'Completions' }).waitFor();
  } },
  { path: 'procedures', title: 'Procedures', open: async (page) => {
    await press('Columns')(page);
    await page.getByRole('group', { name: 'Columns' }).waitFor();
  } },
  { path: 'procedures?filter=kind:job', title: 'Procedures', open: press('All of these…') },
  { path: 'procedures?filter=kind:job', title: 'Procedures', open: async (page) => {
    await press('All of these…')(page);
    await plan('Priority', { says: /would be asked of/ })(page);
  } },
  { path: 'flows', title: 'Sets and streams', has: ['table', 'Sets and streams'] },
  { path: 'waits', title: 'Locks and waits', says: /victim/i },
  { path: `waits?id=${ids.one}`, title: 'Locks and waits', has: ['img', /./] },
  { path: 'limits', title: 'Limits', has: ['table', 'Limits'] },
  { path: 'limits', title: 'Limits', open: async (page) => {
    await page.getByRole('spinbutton', { name: 'limit of limited' }).fill('3');
    await page.getByRole('row').filter({ hasText: 'limited' }).getByRole('button', { name: 'Set…' }).click();
    await dialog(page, /^Set/).getByRole('region', { name: 'Plan' }).waitFor();
  } },
  { path: 'kinds', title: 'Kinds', has: ['table', 'Kinds'] },
  { path: 'kinds', title: 'Kinds', open: async (page) => {
    await page.getByRole('row').filter({ hasText: /^job/ }).getByRole('button', { name: 'Start…' }).click();
    await dialog(page, /^Start job/).getByRole('textbox', { name: /^Value/ }).fill('{"wait": "approved"}');
    await dialog(page, /^Start job/).getByText('The kind takes this value.').waitFor();
  } },
  { path: 'kinds?stages=job', title: 'Kinds', has: ['img', /stages/] },
  { path: 'kinds/charts', title: 'Charts', has: ['img', /^Ended a minute/] },
  { path: 'kinds/charts?kind=job&span=24h', title: 'Charts', has: ['table', 'Figures'] },
  { path: 'engine', title: 'Engine', has: ['region', 'Throughput'] },
  { path: 'engine', title: 'Engine', open: plan('Drain', { says: /What runs has until/ }) },
  { path: 'audit', title: 'Audit', has: ['table', /./] },
  { path: '', title: 'Attention', says: /rollback failed/i, ...notice('journal_failed', 'The journal has failed') },
  { path: 'procedures?filter=state:live,ended', title: 'Procedures', has: ['table', 'Procedures'], ...notice('recovering', 'still reading what its journal holds') },
  ...[1920, 390].map((width) => one(ids.long, 'waits', { open: copied, widths: [width] })),
  { path: NOWHERE, says: 'There is no screen of this name.' },
  ...Object.keys(TABS).map((tab) => one(ids.long, /** @type {keyof TABS} */ (tab))),
  ...[ids.retries, ids.stuck, ids.asks, ids.parent, ids.failed, ids.ended].map((id) => one(id, 'history', { has: ['table', 'History'] })),
  one(ids.one, 'waits', { says: /A circle/ }),
  one(ids.gates, 'graph', { has: ['region', 'Who runs after whom'] }),
  one(ids.set, 'graph', { has: ['region', 'Who runs after whom'] }),
  one(ids.set, 'graph', { has: ['region', 'Who runs after whom'], open: plan('Retry now') }),
  ...(/** @type {const} */ (['waits', 'history', 'data', 'audit'])).map((tab) => one(ids.set, tab)),
  one(`${ids.set.split('.')[0]}.1`, 'history'),
  one(ids.folded, 'graph', { has: ['region', 'Who runs after whom'], says: /folded by layer and state/ }),
  one(ids.queue, 'queue', { has: ['table', 'Queue'] }),
  ...(/** @type {const} */ (['waits', 'history', 'data', 'signals'])).map((tab) => one(ids.queue, tab)),
  one(ids.nightly, 'waits', { says: /Next run at/ }),
  one(ids.order, 'machine', { has: ['region', 'The machine'] }),
  one(ids.tour, 'machine', { has: ['region', 'The machine'], says: 'Book: Rooms' }),
  one(ids.tour, 'machine', { has: ['region', 'The machine'], open: plan('Forward') }),
  one(ids.bulk, 'bulk', { has: ['table', 'Outcomes'] }),
  one(ids.long, 'data', { open: press('Reveal…') }),
  one(ids.long, 'waits', { open: press('More actions') }),
  one(ids.long, 'waits', { open: plan('Signal', { fill: ['Payload', '{"by": 7}'] }) }),
  one(ids.long, 'waits', { open: plan('Abort', { isHidden: true }) }),
  one(ids.asks, 'waits', { open: plan('Answer') }),
  one(ids.stuck, 'waits', { open: plan('Skip undo') }),
  one(ids.asks, 'waits', { open: plan('Bypass', { isHidden: true }) }),
  one(ids.parent, 'waits', { open: async (page) => {
    await plan('Priority', { isHidden: true })(page);
    const open = dialog(page, /^Priority/);
    await open.getByRole('spinbutton', { name: /^New priority/ }).fill('8');
    await open.getByRole('textbox', { name: 'Reason' }).fill(`for ${LONG}`);
    await open.getByRole('button', { name: 'Priority', exact: true }).click();
    await open.getByText('It is done').waitFor();
  } }),
  { path: 'audit', title: 'Audit', open: async (page) => {
    await page.keyboard.press('?');
    await dialog(page, 'Keys and filters').waitFor();
  } },
];

/** What only a host shows that shows users' data. @param {Awaited<ReturnType<typeof world>>} ids @returns {Look[]} */
const revealed = (ids) => [
  one(ids.filled, 'history', { has: ['table', 'History'] }),
  attempt(ids.filled, 1, { has: ['region', /^Attempt: Prepare/], says: 'item' }),
  attempt(ids.filled, 2, { has: ['region', /^Attempt: Work/], says: /looked for more/ }),
  one(ids.long, 'data', { says: 'Payload' }),
  one(ids.order, 'machine', { has: ['region', 'The machine'], open: (page) => page.getByText('Context').click() }),
];

/** Goes where a link would lead, without loading the page again. @param {Page} page @param {string} mount @param {string} path */
const follow = (page, mount, path) => page.evaluate((to) => {
  history.pushState(null, '', to);
  dispatchEvent(new PopStateEvent('popstate'));
}, `/${mount}/${path}`);

/** Waits until what depends on the window's width is drawn for this one. */
const drawn = (/** @type {Page} */ page) => page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));

/** Goes to a look, and opens what is opened on it. @param {Page} page @param {string} mount @param {Look} look */
async function reach(page, mount, { path, title, tab, has, says, open }) {
  // Explanations are made ten times a second at most, by the engine's clock.
  await pass(1_000);
  await follow(page, mount, path);
  if (title) await shown(page, title);
  if (tab) await page.getByRole('tab', { name: new RegExp(`^${tab}`), selected: true }).waitFor();
  if (has) await page.getByRole(has[0], { name: has[1] }).first().waitFor();
  if (says) await page.getByText(says).first().waitFor();
  await open?.(page);
}

/** What is wrong in one look, at each width. @param {Page} page @param {string} mount @param {Look} look @returns {Promise<string[]>} */
async function measure(page, mount, look) {
  const wrong = /** @type {string[]} */ ([]);
  const name = `${look.path.replace(/x{9,}/g, '…') || 'attention'}${look.open ? ', opened' : ''}`;
  const [widest = 0, ...narrower] = look.widths ?? WIDTHS;
  try {
    await page.setViewportSize({ width: widest, height: 800 });
    await reach(page, mount, look);
    for (const width of [widest, ...narrower]) {
      await page.setViewportSize({ width, height: 800 });
      await drawn(page);
      const found = await settled(async () => [...await page.evaluate(outside), ...await page.evaluate(faint)]);
      if (found.length > 0) await picture(page, `screens ${name} at ${width}`);
      wrong.push(...found.map((what) => `${name} at ${width} px: ${what}`));
    }
  } catch (error) {
    await picture(page, `screens ${name}`);
    wrong.push(`${name}: ${error instanceof Error ? error.message : error}`);
  }
  await look.close?.(page);
  if (look.open) {
    await page.keyboard.press('Escape');
    // A menu closes with its screen.
    await follow(page, mount, NOWHERE);
  }
  return wrong;
}

/** Asks until nothing is found; otherwise returns what was found last. @param {() => Promise<string[]>} ask */
async function settled(ask) {
  let found = /** @type {string[]} */ ([]);
  await until(async () => {
    found = await ask();
    return found.length === 0;
  }, 'nothing is wrong').catch((error) => { if (found.length === 0) throw error; });
  return found;
}

/** Looks that are wrong, at most: more of them would take too long, and say the same. */
const MOST = 10;

for (const colorScheme of /** @type {const} */ (['dark', 'light'])) {
  journey(`every screen at every width, ${colorScheme}`, async (page, go) => {
    const wrong = /** @type {string[]} */ ([]);
    const all = async (/** @type {string} */ mount, /** @type {Look[]} */ looks) => {
      for (const look of looks) if (wrong.length < MOST) wrong.push(...await measure(page, mount, look));
    };
    await speaker(page);
    await go();
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), colorScheme);
    await all('all', empty());
    const ids = await world();
    await all('all', screens(ids));
    wrong.push(...await page.evaluate(faintOnCanvas, ON_CANVAS));
    await page.goto(page.url().replace(/\/all\/.*/, '/shown/'));
    await all('shown', revealed(ids));
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
  }, { colorScheme });
}
