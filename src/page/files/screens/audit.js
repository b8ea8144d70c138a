/** What operators did: who, what, to whom, why, and what came of it. */
import { html, useState } from '../dom.js';
import { get, Problem } from '../api.js';
import { written } from '../json.js';
import { useLoad } from '../load.js';
import { Ago, download, Empty, Head, Id, Shown, Trouble } from '../parts.js';
import { setQuery } from '../router.js';
import { Table } from '../table.js';
import { count, local, several } from '../words.js';
import { now } from '../clock.js';

/** @typedef {import('../types.js').Act} Act */

/** Acts that one export holds at most: the engine keeps no more by itself. */
const SAVED = 10_000;

/** @param {Act} act */
export function outcome(act) {
  const [first] = act.changes;
  if (act.submitted) return `runs again as ${act.submitted}`;
  if (!first) return act.changed ? several(act.changed, 'procedure') : 'no procedure changed';
  const rest = act.changed > 1 ? `, and ${act.changed - 1} more` : '';
  const text = first.before === first.after ? `stays ${first.after}` : `${first.before} → ${first.after}`;
  return local(text + rest, now());
}

/** @type {import('../table.js').Column<Act>[]} */
export const COLUMNS = [
  { name: 'When', width: '72px', show: (act) => html`<${Ago} time=${act.at} />` },
  { name: 'Who', width: 'minmax(90px, 0.6fr)', sort: (act) => act.who, show: (act) => html`<bdi>${act.who}</bdi>` },
  { name: 'What', width: 'minmax(180px, 1.3fr)', show: (act) => html`<bdi title=${act.verb}>${act.verb}</bdi>` },
  { name: 'Target', width: '90px', show: (act) => (act.target ? html`<${Id} id=${act.target} tab="audit" />` : html`<span class="none">–</span>`) },
  { name: 'Why', width: 'minmax(160px, 1.2fr)', show: (act) => html`<bdi title=${act.why}>${act.why}</bdi>` },
  { name: 'Before and after', width: 'minmax(220px, 2fr)', show: (act) => html`<bdi title=${outcome(act)}>${outcome(act)}</bdi>` },
];

/** @param {{query: URLSearchParams}} props */
export function Audit({ query }) {
  const filter = query.get('filter') ?? '';
  const loaded = useLoad('audit', { filter, limit: 500 }, { on: ['gauges'], pause: 3_000, filter: 'root:0' });
  const [found, setOlder] = useState(/** @type {{filter: string, items: Act[], cursor: string|null}|null} */ (null));
  const [failed, fail] = useState(/** @type {Problem|null} */ (null));
  const older = found?.filter === filter ? found : null;
  const rows = /** @type {Act[]} */ ([...(loaded.data?.items ?? []), ...(older?.items ?? [])]);
  const cursor = older ? older.cursor : loaded.data?.cursor;
  const more = async () => {
    if (!cursor) return;
    try {
      const page = await get('audit', { filter, cursor, limit: 500 });
      setOlder({ filter, items: [...(older?.items ?? []), ...page.items], cursor: page.cursor });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
  };
  return html`
    <div class="screen list">
      <${Head} title="Audit" note=${loaded.data && `${several(rows.length, 'act')}${cursor ? ', and older ones' : ''}`}>
        <button type="button" title=${`Saves all acts that the filter admits as JSON, the newest ${count(SAVED)} at most`} onClick=${() => save(filter).then(() => fail(null), fail)} disabled=${rows.length === 0}>Export</button>
      <//>
      <form class="filter" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
        <label><span class="hidden">Filter</span>
          <input data-filter type="search" value=${filter} placeholder="who:ann verb:abort target:42 or words of the verb and the reason" spellcheck="false" onInput=${(/** @type {any} */ event) => setQuery({ filter: event.target.value })} /></label><kbd>/</kbd>
      </form>
      ${failed && html`<${Trouble} error=${failed} />`}
      <${Shown} loaded=${loaded} what="the audit">
        ${rows.length === 0
          ? html`<${Empty}>${filter ? 'No act fits these words.' : 'No operator has done anything yet.'}<//>`
          : html`<${Table} label="Audit" rows=${rows} columns=${COLUMNS} rowKey=${(/** @type {Act} */ act) => act.number} rowId=${(/** @type {Act} */ act) => act.target} onEnd=${more} />`}
      <//>
    </div>`;
}

/** Saves all that a filter admits as JSON. @param {string} filter */
async function save(filter) {
  /** @type {Act[]} */
  const rows = [];
  let cursor = null;
  do {
    const page = await get('audit', { filter, cursor, limit: 500 });
    rows.push(...page.items);
    ({ cursor } = page);
  } while (cursor && rows.length < SAVED);
  download('audit.json', written(rows, 2));
}
