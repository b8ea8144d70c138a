/** Charts of a kind, or of all roots: what ended, what failed, how long it took and how long stages waited. */
import { html } from '../dom.js';
import { useLoad } from '../load.js';
import { Empty, Head, Shown } from '../parts.js';
import { Plot, clockOf } from '../plot.js';
import { setQuery } from '../router.js';
import { Table } from '../table.js';
import { absolute, count, duration } from '../words.js';

/**
 * @typedef {{count: number, p50_ms: number, p99_ms: number}} Times
 * @typedef {{from: string, known: boolean, ended: number|null, failed: number|null, took: Times|null, queued: Times|null}} Bucket
 * @typedef {{of: string, kind: string|null, span: string, step_ms: number, buckets: Bucket[], open: Bucket}} Body
 */

const SPANS = [{ word: '1h', name: 'Last hour', of: 'in the last hour' }, { word: '24h', name: 'Last 24 hours', of: 'in the last 24 hours' }];

/** @param {Body} body */
function note({ of, kind }) {
  if (of === 'other_kinds') return `More than 64 kinds have charts: ${kind} is counted together with all further ones.`;
  return kind ? 'All procedures of this kind, roots and children, from submission or spawn to end.' : 'The roots of all kinds, from submission to end; the waits of all stages.';
}

/** @param {{query: URLSearchParams}} props */
export function Charts({ query }) {
  const span = SPANS.find(({ word }) => word === query.get('span')) ?? /** @type {typeof SPANS[0]} */ (SPANS[0]);
  const kind = query.get('kind') ?? '';
  const loaded = useLoad('charts', kind ? { span: span.word, kind } : { span: span.word }, { on: ['gauges', 'change'], pause: 5_000, filter: 'root:0' });
  const kinds = /** @type {import('../types.js').KindUse[]} */ (useLoad('kinds', {}, { pause: 30_000 }).data?.items ?? []);
  const body = /** @type {Body|null} */ (loaded.data);
  const names = [...new Set([...kinds.filter((each) => each.registered).map((each) => each.kind), ...(kind ? [kind] : [])])].sort();
  return html`
    <div class="screen charts">
      <${Head} title="Charts" note=${body && note(body)}>
        <label>Kind <select value=${kind} onChange=${(/** @type {any} */ event) => setQuery({ kind: event.target.value }, false)}>
          <option value="">all kinds</option>
          ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select></label>
        <div class="quick" role="group" aria-label="Span">
          ${SPANS.map(({ word, name }) => html`<button type="button" key=${word} aria-pressed=${word === span.word} onClick=${() => setQuery({ span: word === '1h' ? '' : word }, false)}>${name}</button>`)}
        </div>
      <//>
      <${Shown} loaded=${loaded}>${body && html`<${Charted} key=${kind + span.word} body=${body} of=${span.of} />`}<//>
    </div>`;
}

/** @param {Times|null} times */
const median = (times) => times?.p50_ms ?? null;
/** @param {Times|null} times */
const last = (times) => times?.p99_ms ?? null;
/** @param {(number|null)[]} numbers */
const most = (numbers) => Math.max(0, ...numbers.map((number) => number ?? 0));
/** @param {number} rate */
const figure = (rate) => count(Math.round(rate * 100) / 100);

/** @param {{body: Body, of: string}} props */
function Charted({ body, of }) {
  const { buckets, open, step_ms: step } = body;
  const times = buckets.map(({ from }) => Date.parse(from));
  const minute = (/** @type {number|null} */ number) => (number === null ? null : (number * 60_000) / step);
  const column = (/** @type {(bucket: Bucket) => number|null} */ get) => buckets.map(get);
  const whole = [...buckets, open];
  const sum = (/** @type {(bucket: Bucket) => number|null} */ get) => whole.reduce((all, bucket) => all + (get(bucket) ?? 0), 0);
  const [ended, failed] = [sum((bucket) => bucket.ended), sum((bucket) => bucket.failed)];
  const known = buckets.filter((bucket) => bucket.known).length;
  const peak = figure(most(column(({ ended: number }) => minute(number))));
  const longest = (/** @type {'took'|'queued'} */ what) => duration(most(column((bucket) => last(bucket[what]))));
  const hasRun = whole.some(({ queued }) => queued);
  return html`
    ${known < buckets.length && html`<p class="dim">${known === 0 ? `No ${step > 60_000 ? 'quarter of an hour' : 'minute'} is over since the engine began to count.` : 'Where lines are missing no engine counted, or its figures are lost.'} The table has what is counted now.</p>`}
    ${ended === 0 && !hasRun && html`<${Empty}>Nothing ended ${of}, and no stage ran.<//>`}
    <div class="charted">
      <div class="plots">
        <${Plot} title="Ended a minute" note=${`${count(ended)} ended, ${count(failed)} failed ${of}`} times=${times} show=${figure} sum=${`${count(ended)} ended and ${count(failed)} failed ${of}; at most ${peak} a minute.`}
          lines=${[{ name: 'ended', tone: 'accent', values: column((bucket) => minute(bucket.ended)) }, { name: 'failed', tone: 'bad', isDashed: true, values: column((bucket) => minute(bucket.failed)) }]} />
        <${Plot} title="Time to the end" note="failed ones included" times=${times} show=${duration} sum=${`The longest 99th percentile is ${longest('took')}.`}
          lines=${[{ name: 'median', tone: 'accent', values: column((bucket) => median(bucket.took)) }, { name: '99th percentile', tone: 'retry', isDashed: true, values: column((bucket) => last(bucket.took)) }]} />
        <${Plot} title="Waits of stages" note="for a worker, permits and locks" times=${times} show=${duration} sum=${`The longest 99th percentile is ${longest('queued')}.`}
          lines=${[{ name: 'median', tone: 'accent', values: column((bucket) => median(bucket.queued)) }, { name: '99th percentile', tone: 'retry', isDashed: true, values: column((bucket) => last(bucket.queued)) }]} />
      </div>
      <${Table} label="Figures" rows=${whole.reverse()} columns=${columns(open)} rowKey=${(/** @type {Bucket} */ bucket) => bucket.from} height=${30} />
    </div>`;
}

/** @param {Bucket} open @returns {import('../table.js').Column<Bucket>[]} */
function columns(open) {
  const none = html`<span class="none">–</span>`;
  const number = (/** @type {number|null} */ value) => (value === null ? html`<span class="none">unknown</span>` : value === 0 ? none : count(value));
  const time = (/** @type {number|null} */ value) => (value === null ? none : duration(value));
  return [
    { name: 'From', width: 'minmax(84px, 1fr)', show: (bucket) => html`<time datetime=${bucket.from} title=${absolute(bucket.from)}>${clockOf(bucket.from)}</time>${bucket === open && html` <span class="tag">open</span>`}` },
    { name: 'Ended', width: '62px', align: 'right', show: (bucket) => number(bucket.ended) },
    { name: 'Failed', width: '62px', align: 'right', show: (bucket) => (bucket.failed ? html`<span class="bad">${count(bucket.failed)}</span>` : number(bucket.failed)) },
    { name: 'Median', width: '62px', align: 'right', help: 'Half of those that ended took no longer', show: (bucket) => time(median(bucket.took)) },
    { name: 'p99', width: '62px', align: 'right', help: '99 of 100 that ended took no longer', show: (bucket) => time(last(bucket.took)) },
    { name: 'Waited', width: '62px', align: 'right', help: 'Half of the stages waited no longer', show: (bucket) => time(median(bucket.queued)) },
    { name: 'Waited p99', width: '72px', align: 'right', help: '99 of 100 stages waited no longer', show: (bucket) => time(last(bucket.queued)) },
  ];
}
