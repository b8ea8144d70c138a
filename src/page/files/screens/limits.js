/** How many permits are out, of how many; and who waits for one. */
import { html, useState } from '../dom.js';
import { Ask } from '../actions.js';
import { waitersOf } from '../labels.js';
import { useLoad } from '../load.js';
import { useRights } from '../me.js';
import { Ago, At, Empty, Head, Id, Shown } from '../parts.js';
import { listOf } from '../router.js';
import { useSort } from '../sort.js';
import { Table } from '../table.js';
import { WIDE } from '../verbs.js';
import { count, several } from '../words.js';

/** @typedef {import('../types.js').Limit & {oldest?: {id: string, since: string}|null}} Limit */

export function Limits() {
  const loaded = useLoad('limits', {}, { on: ['limits'], pause: 500, filter: 'root:0' });
  const kinds = /** @type {import('../types.js').KindUse[]} */ (useLoad('kinds').data?.items ?? []);
  const may = useRights();
  const [edit, set] = useState(/** @type {{key: string, start: Record<string, any>}|null} */ (null));
  const items = /** @type {Limit[]} */ (loaded.data?.items ?? []);
  /** @type {import('../table.js').Column<Limit>[]} */
  const columns = [
    { name: 'Of', width: 'minmax(104px, 0.8fr)', bare: true, sort: (row) => row.key, show: (row) => html`<bdi class="mono" title=${row.key}>${row.key === '*' ? 'all procedures' : row.key}</bdi>` },
    { name: 'Used', width: 'minmax(130px, 1.2fr)', sort: (row) => row.used, show: (row) => html`<${Gauge} row=${row} />` },
    { name: 'Limit', width: '170px', pin: true, show: (row) => html`<${Edit} row=${row} mayEdit=${may('configure')} onEdit=${(/** @type {Record<string, any>} */ start) => set({ key: row.key, start })} />` },
    { name: 'Queue', width: '84px', sort: (row) => row.waiting, show: (row) => (row.waiting ? html`<a href=${listOf(waitersOf(row.key, kinds))}>${several(row.waiting, 'waits', 'wait')}</a>` : html`<span class="none">nobody</span>`) },
    { name: 'Had to wait', width: '88px', sort: (row) => row.had_to_wait, show: (row) => html`<span class="mono" title="requests that came while there was no permit for them, since the start; no limit refuses">${count(row.had_to_wait)}</span>` },
    { name: 'Oldest waiter', width: '140px', show: (row) => (row.oldest ? html`<${Id} id=${row.oldest.id} /> <span class="dim">for</span> <${Ago} time=${row.oldest.since} />` : html`<span class="none">–</span>`) },
    { name: 'Next', width: 'minmax(200px, 1.8fr)', show: (row) => html`<span class="next">${next(row)}</span>` },
  ];
  const { rows, ...sorted } = useSort(items, columns);
  return html`
    <div class="screen">
      <${Head} title="Limits" note=${loaded.data && `${several(items.length, 'limit')}; a change is durable, and takes no permit back.`} />
      <${Shown} loaded=${loaded}>
        ${items.length === 0
          ? html`<${Empty}>No limit is set: as many run as come. A kind's limit is set with the builder's <code>limit</code>, or by the API.<//>`
          : html`<${Table} label="Limits" rows=${rows} sorted=${sorted} columns=${columns} rowKey=${(/** @type {Limit} */ row) => row.key} height=${44} />`}
      <//>
      ${edit && html`<${Ask} verb=${WIDE.limit} path=${`limits/${encodeURIComponent(edit.key)}`} target=${{ id: edit.key, kind: edit.key }}
        start=${edit.start} onClose=${() => { set(null); loaded.reload(); }} />`}
    </div>`;
}

/** @param {Limit} row */
function next(row) {
  const isFull = row.limit !== null && row.used >= row.limit;
  if (row.rate?.begins === 0) return 'none may begin';
  if (!isFull && row.rate?.free_at) return html`the ${row.waiting === 0 ? 'next to come' : 'first'} goes on at <${At} time=${row.rate.free_at} />`;
  if (row.waiting === 0) return isFull ? 'the next to come waits' : 'the next to come goes on at once';
  return isFull ? 'the first goes on when one is free' : 'the first goes on now';
}

/** @param {import('../types.js').LimitRate} rate */
function period(rate) {
  return rate.per_ms % 1000 === 0 ? `${count(rate.per_ms / 1000)} s` : `${count(rate.per_ms)} ms`;
}

/** @param {{row: Limit}} props */
function Gauge({ row }) {
  const part = row.limit ? Math.min(1, row.used / row.limit) : 0;
  const tone = row.limit !== null && row.used >= row.limit ? (row.waiting ? 'full' : 'most') : '';
  return html`
    <span class=${`gauge ${tone}`} role="meter" aria-valuenow=${row.used} aria-valuemin="0" aria-valuemax=${row.limit ?? undefined} aria-label=${`used of ${row.key}`}>
      <span class="track"><span class="fill" style=${{ width: `${part * 100}%` }}></span></span>
      <span class="mono">${count(row.used)}${row.limit !== null && html`<span class="dim"> of ${count(row.limit)}</span>`}${row.rate && html`<span class="dim" title="begins within the last period">, ${count(row.rate.begun)} of ${count(row.rate.begins)} in ${period(row.rate)}</span>`}</span>
    </span>`;
}

/** @param {{row: Limit, mayEdit: boolean, onEdit: (start: Record<string, any>) => void}} props */
function Edit({ row, mayEdit, onEdit }) {
  const shown = row.limit === null ? '' : String(row.limit);
  const [text, set] = useState(/** @type {string|null} */ (null));
  const { rate } = row;
  if (rate) {
    const both = `${row.limit === null ? '' : `${count(row.limit)}, `}${count(rate.begins)} in ${period(rate)}`;
    if (!mayEdit) return html`<span class="mono">${both}</span>`;
    const start = { ...(row.limit === null ? {} : { limit: row.limit }), begins: rate.begins, per_ms: rate.per_ms };
    return html`<span class="mono">${both}</span> <button onClick=${() => onEdit(start)} aria-label=${`set the limit of ${row.key}`}>Set…</button>`;
  }
  if (!mayEdit) return html`<span class="mono">${shown || 'unlimited'}</span>`;
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text !== null && text !== shown) onEdit(text.trim() === '' ? { unlimited: true } : { limit: text.trim() });
    set(null);
  };
  return html`
    <form class="inline" onSubmit=${send}>
      <input type="number" min="0" aria-label=${`limit of ${row.key}`} placeholder="unlimited" value=${text ?? shown} onInput=${(/** @type {any} */ event) => set(event.target.value)} />
      <button type="submit" disabled=${text === null || text === shown}>Set…</button>
    </form>`;
}
