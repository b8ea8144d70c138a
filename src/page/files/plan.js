/** What an act would do, or has done: every part of it that the API tells. */
import { html } from './dom.js';
import { Id, Linked, State } from './parts.js';
import { count, local, sentence, several } from './words.js';
import { now } from './clock.js';

/** Parts of a plan that have a place of their own, or are none of the reader's. */
const KNOWN = ['now', 'as_of', 'dry_run', 'revision', 'number', 'changes', 'changed', 'abort', 'warnings', 'plan', 'truncated', 'count', 'over', 'items', 'scanned', 'id', 'repeated', 'new', 'reach'];

/** Lines of one part of a plan that are shown. */
const LINES = 12;

/** What parts of a plan say, in the order in which they are read. @type {Record<string, string>} */
const PARTS = { sets: 'Sets', undone: 'Undone', undos: 'Undone', stays: 'Stays as it is', freed: 'Given back', moves_next: 'Moves next', next: 'Moves next', submitted: 'Runs again as' };

/** What an act concerned beyond the plan that was shown: a family goes on while somebody looks at it. @param {any} done @param {any} planned */
export function beyond(done, planned) {
  if (!done.reach || !planned?.reach) return [];
  const more = (/** @type {'undone'|'stays'} */ name) => Math.max(0, done.reach[name] - planned.reach[name]);
  const told = (/** @type {number} */ number, /** @type {string} */ one, /** @type {string} */ many) => (number ? [`${several(number, 'executed stage')} more than the plan showed ${number === 1 ? one : many}`] : []);
  return [...told(more('undone'), 'is undone', 'are undone'), ...told(more('stays'), 'stays', 'stay')];
}

/** @param {{plan: any, isDone?: boolean, planned?: any}} props `planned`: the plan that an act was approved by. */
export function Plan({ plan, isDone, planned }) {
  const inner = plan.plan ?? {};
  const all = { ...plan, ...inner };
  const changes = all.changes ?? [];
  // The identity that a plan tells is the next that is free: whoever comes first gets it.
  const isSure = (/** @type {string} */ name) => isDone || name !== 'submitted';
  const more = [...Object.keys(PARTS), ...Object.keys(all).filter((name) => !KNOWN.includes(name) && !(name in PARTS))]
    .filter((name) => isSure(name) && all[name] !== null && all[name] !== undefined && !(Array.isArray(all[name]) && all[name].length === 0));
  return html`
    ${all.abort && html`<p class=${all.abort.outcome === 'too_late' ? 'warning' : ''}>${abort(all.abort, isDone)}</p>`}
    ${(all.warnings ?? []).map((/** @type {unknown} */ warning) => html`<p class="warning"><${Linked} text=${sentence(said(warning))} />.</p>`)}
    ${beyond(plan, planned).map((text) => html`<p class="warning">${text}.</p>`)}
    ${all.count !== undefined ? html`<${Many} plan=${all} isDone=${isDone} />` : changes.length > 0
      ? html`<table class="changes"><tbody>${changes.slice(0, LINES).map(change)}</tbody></table>`
      : html`<p class="dim">${isDone ? 'No procedure changed.' : 'No procedure changes at once.'}</p>`}
    ${all.changed > Math.min(LINES, changes.length) && changes.length > 0 && html`<p class="dim">${several(all.changed, 'procedure')} in all.</p>`}
    ${more.map((name) => html`<dl class="part" key=${name}><dt>${PARTS[name] ?? sentence(name.replaceAll('_', ' '))}</dt><dd>${part(name, all[name])}</dd></dl>`)}
    ${all.truncated === true && html`<p class="dim">The plan is longer than what is shown.</p>`}`;
}

/** A plan for many at once. @param {{plan: any, isDone?: boolean}} props */
const Many = ({ plan, isDone }) => html`
  <p class=${plan.over ? 'warning' : ''}>${plan.over ? `${several(plan.count, 'procedure')} fit the filter: more than one bulk takes. Narrow it.`
    : isDone ? `It is begun for ${several(plan.count, 'procedure')}.` : `It would be asked of ${several(plan.count, 'procedure')}.`}</p>
  ${plan.id && html`<p>It is a procedure of its own: <${Id} id=${plan.id} />.</p>`}
  ${plan.items && html`<table class="changes"><tbody>${plan.items.slice(0, LINES).map((/** @type {import('./types.js').Row} */ row) => html`
    <tr key=${row.id}><th scope="row"><${Id} id=${row.id} /></th><td><bdi>${row.kind}</bdi></td><td><${State} row=${row} /></td></tr>`)}</tbody></table>`}`;

/** @param {{id: string, before: string, after: string}} each */
const change = (each) => html`
  <tr key=${each.id}><th scope="row"><${Id} id=${each.id} /></th><td><bdi>${local(each.before, now())}</bdi></td><td class="dim">→</td><td><bdi>${local(each.after, now())}</bdi></td></tr>`;

/** @param {{outcome: string, why: string|null}} met @param {boolean} [isDone] */
function abort(met, isDone) {
  if (met.outcome === 'too_late') return `Too late: ${met.why}.`;
  if (met.outcome === 'already_rolling_back') return 'It is rolling back already.';
  return isDone ? 'It rolls back.' : 'It will roll back.';
}

/** @param {string} name @param {unknown} value */
function part(name, value) {
  if (name === 'drain') return drain(/** @type {any} */ (value));
  if (!Array.isArray(value)) return html`<${Linked} text=${said(value)} />`;
  return html`<ul>${value.slice(0, LINES).map((each) => html`<li><${Linked} text=${line(name, each)} /></li>`)}${value.length > LINES && html`<li class="dim">and ${count(value.length - LINES)} more</li>`}</ul>`;
}

/** @param {{going: number, live_families: number, until: string}} plan */
const drain = (plan) => `What runs has until ${local(plan.until, now())}: ${several(plan.going, 'stage')} now. ${several(plan.live_families, 'family', 'families')} wait for the next start.`;

/** One line of a part, in words where its shape is known. @param {string} name @param {any} each */
function line(name, each) {
  if (name === 'sets' && each?.what) return `${each.what}: ${each.now} → ${each.then}`;
  if (name === 'undone' && each?.stage) return `${each.id} stage ${each.stage}`;
  if (name === 'stays' && each?.stages) return `${each.id} ${each.stages.join(', ')}: ${each.why}`;
  if (name === 'freed' && each?.locks) return `${each.id} ${[...each.locks, ...each.limits.map((/** @type {string} */ key) => `a permit of ${key}`)].join(', ')} ${each.when === 'now' ? 'now' : 'after its rollback'}`;
  return said(each);
}

/** A value in words, whatever it is. @param {unknown} value @returns {string} */
function said(value) {
  if (typeof value === 'string') return local(value, now());
  if (value === null || typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return value.map(said).join(', ');
  return Object.entries(value).filter(([, each]) => each !== null).map(([name, each]) => (name === 'id' ? said(each) : `${name.replaceAll('_', ' ')} ${said(each)}`)).join(', ');
}
