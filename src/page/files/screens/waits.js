/** Locks, who holds them and who waits in which order; circles; and the part of it that matters as a graph. */
import { html, useMemo } from '../dom.js';
import { Verbs } from '../actions.js';
import { late } from '../late.js';
import { useLoad } from '../load.js';
import { Ago, Empty, Head, Id, Shape, Shown } from '../parts.js';
import { setQuery } from '../router.js';
import { useSort } from '../sort.js';
import { Table } from '../table.js';
import { count, several } from '../words.js';

// Drawn with a package that few screens need.
const Graph = late(() => import('../graph.js').then((script) => script.Graph));

/** @typedef {import('../types.js').LockUse} LockUse @typedef {import('../types.js').Cycle} Cycle */

/** @param {{query: URLSearchParams}} props */
export function Waits({ query }) {
  const id = query.get('id');
  const path = query.get('lock');
  const locks = useLoad('locks', {}, { on: ['change', 'gauges'], pause: 1_500, filter: 'root:0' });
  const attention = useLoad('attention', {}, { on: ['verdict'], pause: 1_500 });
  const one = useLoad(id ? `procedures/${id}/waits` : null, {}, { on: ['gauges', 'verdict'], pause: 2_000 });
  const items = /** @type {LockUse[]} */ (locks.data?.items ?? []);
  const cycles = useMemo(() => /** @type {Cycle[]} */ ((attention.data?.verdicts ?? []).map((/** @type {any} */ verdict) => verdict.deadlock).filter(Boolean)), [attention.data]);
  const waiting = items.reduce((sum, lock) => sum + lock.waiting.length, 0);
  /** @type {import('../table.js').Column<LockUse>[]} */
  const columns = [
    { name: 'Resource', width: 'minmax(180px, 1.3fr)', bare: true, sort: (lock) => lock.path, show: (lock) => html`<button type="button" class="plain mono" title="Show its part of the graph" onClick=${() => setQuery({ lock: lock.path, id: null })}><bdi>${lock.path}</bdi></button>` },
    { name: 'Mode', width: '90px', show: (lock) => lock.holders[0]?.mode ?? html`<span class="none">free</span>` },
    { name: 'Holder', width: 'minmax(120px, 1fr)', show: (lock) => people(lock.holders.map((holder) => holder.id)) },
    { name: 'Held for', width: '110px', show: (lock) => html`<${Held} holders=${lock.holders} />` },
    { name: 'Waiters, in order', width: 'minmax(200px, 2fr)', sort: (lock) => lock.waiting.length, show: (lock) => people(lock.waiting) },
    { name: 'Next', width: 'minmax(180px, 1.4fr)', show: (lock) => html`<span class="next">${next(lock)}</span>` },
  ];
  const { rows, ...sorted } = useSort(items, columns);
  return html`
    <div class="screen waits">
      <${Head} title="Locks and waits" note=${locks.data && `${several(items.length, 'lock')} held or wanted; ${several(waiting, 'procedure waits', 'procedures wait')} for one${locks.data.truncated ? '; only the first are shown' : ''}`} />
      ${cycles.map((cycle) => html`<${Circle} key=${cycle.victim} cycle=${cycle} />`)}
      <${Shown} loaded=${locks}>
        ${items.length === 0 ? html`<${Empty}>No lock is held, and nobody waits for one.<//>`
          : html`<${Table} label="Locks" rows=${rows} sorted=${sorted} columns=${columns} rowKey=${(/** @type {LockUse} */ lock) => lock.path} rowId=${(/** @type {LockUse} */ lock) => lock.holders[0]?.id ?? null} height=${36} />`}
        <${Graph} locks=${items} cycles=${cycles} waits=${one.data} id=${id} path=${path} />
      <//>
    </div>`;
}

/** @param {LockUse} lock */
function next(lock) {
  const [first] = lock.waiting;
  if (!first) return 'nobody waits: it is free when its holder ends';
  return lock.holders.length ? `${first} has it when ${lock.holders.map(({ id }) => id).slice(0, 2).join(' and ')} gives it up` : `${first} has it when all else that it needs is free`;
}

/** @param {string[]} ids */
function people(ids) {
  if (ids.length === 0) return html`<span class="none">nobody</span>`;
  return html`<span class="people">${ids.slice(0, 8).map((id, at) => html`<span key=${`${id} ${at}`}><${Id} id=${id} /></span>`)}${ids.length > 8 && html`<span class="dim">and ${count(ids.length - 8)} more</span>`}</span>`;
}

/** Of several who share it the one is shown who has had it longest. @param {{holders: LockUse['holders']}} props */
function Held({ holders }) {
  const times = holders.flatMap(({ since }) => (since === null ? [] : [since])).sort();
  if (holders.length === 0) return html`<span class="none">–</span>`;
  if (times.length < holders.length) return html`<span class="none" title="its family is set aside, or it was taken before an engine recorded since when">not known</span>`;
  return html`<${Ago} time=${times[0]} />`;
}

/** @param {{cycle: Cycle}} props */
const Circle = ({ cycle }) => html`
  <section class="circle" role="alert">
    <p class="state bad"><${Shape} shape="warn" />deadlock</p>
    <p>${cycle.cycle.map((link, at) => html`${at > 0 && ', '}<${Id} id=${link.from} /> waits for <${Id} id=${link.to} /> <span class="dim">(${link.why}, for <${Ago} time=${link.since} />)</span>`)}.
      The victim is <${Id} id=${cycle.victim} />: its end lets the others go on.</p>
    <div class="offers"><${Verbs} target=${{ id: cycle.victim }} only=${['abort']} /></div>
  </section>`;
