/** One procedure: what it does and why in a sentence, its family over time, and all that is kept of it. */
import { html } from '../dom.js';
import { Verbs } from '../actions.js';
import { now } from '../clock.js';
import { Family, useTree } from '../family.js';
import { labelsOf } from '../labels.js';
import { useLoad } from '../load.js';
import { Ago, At, Copy, Hour, Id, Linked, Names, Shape, Shown, State } from '../parts.js';
import { listOf, setQuery } from '../router.js';
import { harm, keyOf, RULES, shown, standing, why } from '../states.js';
import { tabsOf } from '../tabs.js';
import { isSchedule } from '../verbs.js';
import { count, local, sentence, several } from '../words.js';

/** @typedef {import('../types.js').Row} Row */

/** @param {{id: string, query: URLSearchParams}} props */
export function Procedure({ id, query }) {
  const root = id.split('.')[0] ?? id;
  const filter = `root:${root}`;
  const one = useLoad(`procedures/${id}`, {}, { on: ['change'], filter });
  const waits = useLoad(`procedures/${id}/waits`, {}, { on: ['change', 'verdict'], pause: 2_000 });
  const tree = useTree(id);
  const attention = useLoad('attention', {}, { on: ['verdict'], pause: 2_000 });
  const row = /** @type {Row|undefined} */ (one.data?.procedure);
  const verdicts = /** @type {import('../types.js').Verdict[]} */ (attention.data?.verdicts ?? []);
  const own = verdicts.filter((verdict) => concerns(verdict, id));
  // Of those for whom it waits: what holds one of them up holds it up.
  const names = new Map((tree.data?.items ?? []).filter((/** @type {Row} */ member) => member.name).map((/** @type {Row} */ member) => [member.id, member.name]));
  const before = new Set((waits.data?.links ?? []).map((/** @type {any} */ link) => link.to));
  const others = verdicts.filter((verdict) => before.has(verdict.procedure) && !own.includes(verdict)).slice(0, 3);
  const tabs = row ? tabsOf(row, tree.data?.items ?? []) : [];
  const tab = tabs.find(({ name }) => name === query.get('tab')) ?? tabs[0];
  const Tab = tab?.Show;
  return html`
    <${Names.Provider} value=${names}><div class="screen procedure">
      <${Shown} loaded=${one} what=${`procedure ${id}`}>${row && html`
        <header class="person">
          <div class="line">
            <div class="names"><h1><bdi class="kind">${row.kind}</bdi> <span class="dim">v${row.version}</span> <span class="id">${row.id}</span>${row.name && html` <bdi class="named">${row.name}</bdi>`} <${Copy} text=${row.id} /></h1>
            <ul class="marks">
              ${row.key && html`<li><span class="dim">key</span> <bdi class="mono">${row.key}</bdi></li>`}
              ${labelsOf(row).map(({ name, value, filter }) => html`<li key=${name}><bdi class="dim">${name}</bdi> <a class="mono" href=${listOf(`${filter} state:live,ended`)} title="All with this label"><bdi>${value || '–'}</bdi></a></li>`)}
              <li><span class="dim">priority</span> ${row.priority}</li>
              ${row.parent && html`<li><span class="dim">child of</span> <${Id} id=${row.parent} /></li>`}
              <li><span class="dim">submitted</span> <${Hour} time=${row.submitted} stop /></li>
              ${row.past_no_return && html`<li class="past" title="It only goes forward: what fails is tried again, and an abort comes too late."><${Shape} shape="gate" />past its point of no return, with ${row.past_no_return.replaceAll('"', '')}</li>`}
            </ul></div>
            <div class="tools"><${Verbs} target=${{ id, row }} rest /></div>
          </div>
          <${Sentence} row=${row} waits=${waits.data} body=${one.data} />
          ${row.cause && html`<p class="cause"><span class="dim">cause</span> <bdi class="bad">${shown(row.cause.text)}</bdi> <span class="dim">in</span> <${Id} id=${row.cause.origin} /></p>`}
          ${[...own, ...others].map((verdict) => html`<${Says} key=${keyOf(verdict)} verdict=${verdict} self=${id} />`)}
        </header>
        <${Family} id=${id} query=${query} tree=${tree} />
        <div class="tabs" role="tablist" aria-label="What is kept of it">
          ${tabs.map(({ name, title }) => html`<button type="button" role="tab" key=${name} aria-selected=${name === tab?.name} onClick=${() => setQuery({ tab: name })}>${title}<${Count} of=${one.data?.counts[name]} /></button>`)}
        </div>
        <section class="tab" role="tabpanel" aria-label=${tab?.title}>${Tab && html`<${Tab} id=${id} row=${row} body=${one.data} waits=${waits} tree=${tree} />`}</section>
      `}<//>
    </div><//>`;
}

/** @param {import('../types.js').Verdict} verdict @param {string} id */
function concerns(verdict, id) {
  return verdict.procedure === id || verdict.facts.member === id || (verdict.deadlock?.cycle.some((link) => link.from === id) ?? false);
}

/** How many there are, and whether that is all. @param {{of?: {count: number, more: boolean}}} props */
const Count = ({ of }) => of && html` <span class="dim">${count(of.count)}${of.more && '+'}</span>`;

/** How far its rollback is, and what it failed with last. @param {any} failing */
function progress(failing) {
  const { undone, of, last } = failing ?? {};
  return [of && `${undone} of ${of} stages undone`, last && `the last error, of stage ${last.stage}: “${shown(last.error)}”`].filter(Boolean).join('; ');
}

/** Links of one sentence, at most. */
const NAMED = 10;

/** Some of many, by their ids; `all` where there are more of them than ids. @param {string} words @param {string[]} ids @param {number} [all] */
const named = (words, ids, all = ids.length) => ids.length > 0 && html`${words} ${ids.slice(0, NAMED).map((id, index) => html`${index > 0 && ', '}<${Id} id=${id} />`)}${all > NAMED && ` and ${count(all - NAMED)} more`}`;

/** How far its children are: who is in progress, and how many of the others wait for a slot. @param {NonNullable<import('../types.js').Waits['children']>} children */
const ofChildren = ({ done, total, running, held, named: first }) => html`: ${count(done)} of ${count(total)} done${named('; in progress:', first, running)}${held > 0 && `; ${several(held, 'waits', 'wait')} for a slot`}`;

/** What a child waits for that its parent holds back. @param {NonNullable<import('../types.js').Waits['slot']>} slot */
const ofSlot = ({ width, running, named: first }) => html`: the parent runs ${several(width, 'child', 'children')} at a time${named('; in progress:', first, running)}`;

/** @param {{row: Row, waits: import('../types.js').Waits|null, body: any}} props */
function Sentence({ row, waits, body }) {
  const more = progress(body.failing);
  const at = now();
  const tone = standing(row).tone;
  const { lock, permit, children, slot, place, links = [] } = (!row.ended && waits) || /** @type {Partial<import('../types.js').Waits>} */ ({});
  const holders = lock?.holders ?? [];
  // Those whom children and slots wait for are named with them.
  const before = children || slot ? [] : [...new Set(links.filter((link) => link.from === row.id && !holders.includes(link.to)).map((link) => link.to))];
  // Its row says what it was told when it asked: that may be free by now.
  const lacks = lock ? `waits for the ${lock.mode} lock ${lock.path}` : permit && `waits for a permit of ${permit.key}`;
  const what = why(lacks && ['lock', 'permit'].includes(row.reason ?? '') ? { ...row, waits: lacks } : row);
  const ends = (waits?.ends ?? []).filter((end) => end.id !== row.id).slice(0, 3);
  return html`
    <div class=${`sentence ${tone}`}>
      <p class="what"><${State} row=${row} /> <span class="long">${row.ended ? 'since' : 'for'} ${row.ended ? html`<${At} time=${row.since} stop />` : html`<${Ago} time=${row.since} label="since" stop />`}</span></p>
      <p class="why">
        <${Linked} text=${sentence(local(what, at))} self=${row.id} />${children && ofChildren(children)}${slot && ofSlot(slot)}${permit && `: ${permit.used}${permit.limit === null ? '' : ` of ${permit.limit}`} are out`}${permit?.rate && `, ${permit.rate.begun} of ${permit.rate.begins} in ${permit.rate.per_ms} ms have begun`}${named(', held by', holders)}${place && html`, place ${place.place} of ${place.of}`}${named(', behind', before)}${more && `; ${more}`}${body.paused_by.map((/** @type {any} */ by) => html`; <${Linked} text=${by.what} self=${row.id} /> was paused by ${by.who ?? 'an operator'}${by.why && `: “${by.why}”`}`)}.
        ${!row.ended && ends.map((end) => html` <${Id} id=${end.id} /> continues ${local(end.until, at)}. `)}
        ${!row.ended && waits && waits.behind > 0 && html`${several(waits.behind, 'procedure waits', 'procedures wait')}${waits.behind >= 1_000 && ' or more'} behind it at gates. `}
        ${!row.ended && waits && (waits.links.length > 0) && html`<a class="more" href=${`waits?id=${row.id}`}>Show waits</a>`}
      </p>
      ${isSchedule(row) && row.stage === 'Tick' && !row.ended && row.until && html`<p class="next">Next run at <${At} time=${row.until} />${row.paused && ', once it is resumed'}.</p>`}
      <p class="next">Next: ${local(row.next, at).replace(/^nothing: /, 'nothing, ')}.</p>
    </div>`;
}

/** @param {{verdict: import('../types.js').Verdict, self: string}} props */
function Says({ verdict, self }) {
  const rule = RULES[verdict.rule];
  const tone = harm(verdict.rule);
  const other = verdict.deadlock?.victim ?? verdict.procedure;
  return html`
    <p class=${`says ${tone}`} title=${rule?.help}><span class=${`state ${tone}`}><${Shape} shape=${tone === 'bad' ? 'warn' : 'retry'} />${rule?.name ?? verdict.rule}</span>
      <span class="code">${rule?.code}</span> <${Linked} text=${local(sentence(verdict.text), now())} self=${self} />, for <${Ago} time=${verdict.since} />
      ${verdict.deadlock && html`<span class="dim"> · victim</span> ${other === self ? 'this one' : html`<${Id} id=${other} />`}`}</p>`;
}
