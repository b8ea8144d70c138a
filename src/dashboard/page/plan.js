/** What an act would do, or has done: every part of it that the API tells. */
import { html } from './dom.js';
import { Id, Linked } from './parts.js';
import { count, local, sentence, several } from './words.js';
import { now } from './clock.js';

/** Parts of a plan that have a place of their own, or are none of the reader's. */
const KNOWN = ['now', 'as_of', 'dry_run', 'revision', 'number', 'changes', 'changed', 'abort', 'warnings', 'limit'];

/** @param {{plan: any, isDone?: boolean}} props */
export function Plan({ plan, isDone }) {
  const changes = plan.changes ?? [];
  const warnings = plan.warnings ?? [];
  const more = Object.entries(plan).filter(([name, value]) => !KNOWN.includes(name) && value !== null && !(Array.isArray(value) && value.length === 0));
  return html`
    ${plan.abort && html`<p class=${plan.abort.outcome === 'too_late' ? 'warning' : ''}>${abort(plan.abort, isDone)}</p>`}
    ${warnings.map((/** @type {unknown} */ warning) => html`<p class="warning"><${Linked} text=${said(warning)} /></p>`)}
    ${changes.length > 0
      ? html`<table class="changes"><tbody>${changes.map(change)}</tbody></table>`
      : html`<p class="dim">${isDone ? 'No procedure changed.' : 'No procedure changes at once.'}</p>`}
    ${plan.changed > changes.length && changes.length > 0 && html`<p class="dim">${several(plan.changed, 'procedure')} in all; ${count(changes.length)} are shown.</p>`}
    ${more.map(([name, value]) => html`<dl class="part"><dt>${sentence(name.replaceAll('_', ' '))}</dt><dd>${part(value)}</dd></dl>`)}`;
}

/** @param {{id: string, before: string, after: string}} each */
const change = (each) => html`
  <tr key=${each.id}><th scope="row"><${Id} id=${each.id} /></th><td>${local(each.before, now())}</td><td class="dim">→</td><td>${local(each.after, now())}</td></tr>`;

/** @param {{outcome: string, why: string|null}} met @param {boolean} [isDone] */
function abort(met, isDone) {
  if (met.outcome === 'too_late') return `Too late: ${met.why}.`;
  if (met.outcome === 'already_rolling_back') return 'It is rolling back already.';
  return isDone ? 'It rolls back.' : 'It will roll back.';
}

/** @param {unknown} value */
function part(value) {
  if (Array.isArray(value)) return html`<ul>${value.map((each) => html`<li><${Linked} text=${said(each)} /></li>`)}</ul>`;
  return html`<${Linked} text=${said(value)} />`;
}

/** A value in words, whatever it is. @param {unknown} value @returns {string} */
function said(value) {
  if (typeof value === 'string') return local(value, now());
  if (value === null || typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return value.map(said).join(', ');
  return Object.entries(value).filter(([, each]) => each !== null).map(([name, each]) => (name === 'id' ? said(each) : `${name.replaceAll('_', ' ')} ${said(each)}`)).join(', ');
}
