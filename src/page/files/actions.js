/** Buttons of verbs, and the way of each: a dry run, its plan, a reason, and then the act. */
import { createContext, html, useContext, useEffect, useRef, useState } from './dom.js';
import { exact, freshKey, get, post, Problem } from './api.js';
import { Dialog } from './dialog.js';
import { useRights } from './me.js';
import { newest } from './newest.js';
import { Trouble } from './parts.js';
import { fitting, OF_MANY, VERBS, verbOf } from './verbs.js';
import { Plan } from './plan.js';

/**
 * @typedef {import('./types.js').Row} Row
 * @typedef {{id: string, row?: Row, kind?: string}} Target
 * @typedef {{verb: import('./verbs.js').Verb, path: string, target: Target, fixed?: Record<string, unknown>}} Question
 */

const Asking = createContext((/** @type {Question} */ _question) => {});

/** Opens the dialog of a verb, for what may be gone before the dialog is: a row, or a verdict. */
export const useAsk = () => useContext(Asking);

/**
 * Holds the dialog of the verb that is asked for, beside the screen: what offered the verb goes with what the verb does,
 * and its answer is to be read all the same. Another screen closes it.
 * @param {{path: string, children: import('./types.js').Node}} props `path` names the screen
 */
export function Asks({ path, children }) {
  const [question, ask] = useState(/** @type {Question|null} */ (null));
  useEffect(() => ask(null), [path]);
  return html`
    <${Asking.Provider} value=${ask}>
      ${children}
      ${question && html`<${Ask} key=${question.path} ...${question} onClose=${() => ask(null)} />`}
    <//>`;
}

/**
 * The verbs that fit one procedure.
 * @param {{target: Target, only?: string[], rest?: boolean}} props
 *   `only` names verbs whatever its state; `rest` puts all but the first behind a button.
 */
export function Verbs({ target, only, rest = false }) {
  const may = useRights();
  const ask = useAsk();
  const [isWide, widen] = useState(false);
  const { row } = target;
  const known = (/** @type {string} */ name) => verbOf(name, row?.kind ?? target.kind);
  const names = only ?? (row ? fitting(row) : []);
  const allowed = names.filter((name) => may(/** @type {any} */ (known(name))?.right));
  const first = rest ? allowed.slice(0, 3) : allowed;
  const hidden = allowed.slice(first.length);
  const button = (/** @type {string} */ name) => {
    const verb = known(name);
    if (!verb) return null;
    const open = () => {
      widen(false);
      ask({ verb, path: `procedures/${target.id}/${verb.path ?? name}`, target, fixed: verb.fixed });
    };
    return html`<button type="button" key=${name} class=${verb.isGrave ? 'grave' : ''} title=${verb.says} onClick=${open}>${verb.name}…</button>`;
  };
  return html`
    ${first.map(button)}
    ${hidden.length > 0 && html`
      <span class="menu">
        <button type="button" aria-expanded=${isWide} aria-label="More actions" onClick=${() => widen(!isWide)}>⋯</button>
        ${isWide && html`<span class="drop" role="menu" onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Escape' && widen(false)}>${hidden.map(button)}</span>`}
      </span>`}`;
}

/** Verbs for all that a filter admits, as one procedure. @param {{filter: string}} props */
export function Bulk({ filter }) {
  const may = useRights();
  const [isWide, widen] = useState(false);
  const [open, set] = useState(/** @type {string|null} */ (null));
  const allowed = OF_MANY.filter((name) => may(/** @type {any} */ (VERBS[name]).right));
  if (!filter || allowed.length === 0) return null;
  const verb = open ? VERBS[open] : undefined;
  return html`
    <span class="menu">
      <button type="button" aria-expanded=${isWide} title="One verb for all that the filter admits" onClick=${() => widen(!isWide)}>All of these…</button>
      ${isWide && html`<span class="drop" role="menu" onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Escape' && widen(false)}>${allowed.map((name) => html`<button type="button" key=${name} class=${VERBS[name]?.isGrave ? 'grave' : ''} onClick=${() => { widen(false); set(name); }}>${VERBS[name]?.name}…</button>`)}</span>`}
    </span>
    ${verb && html`<${Ask} key=${open} verb=${{ ...verb, plans: true, says: `Of each: ${verb.says}`, fields: open === 'priority' ? verb.fields : [] }} path=${`bulk/${open}`} target=${{ id: 'all of', kind: filter }} start=${{}} fixed=${{ filter }} onClose=${() => set(null)} />`}`;
}

/** @param {unknown} found */
function worded(found) {
  if (found instanceof Problem) return found;
  return new Problem(400, { detail: `This is no JSON: ${found instanceof Error ? found.message : found}.`, remedy: 'Correct it.' });
}

/**
 * Asks for what a verb needs, shows its plan, and applies it.
 * @param {{verb: import('./verbs.js').Verb, path: string, target: Target, start?: Record<string, unknown>, fixed?: Record<string, unknown>, onClose: () => void}} props
 *   `fixed` goes with every request.
 */
export function Ask({ verb, path, target, start = {}, fixed = {}, onClose }) {
  const [row, setRow] = useState(target.row);
  const [values, setValues] = useState(/** @type {Record<string, any>} */ (start));
  const [reason, setReason] = useState('');
  const [typed, setTyped] = useState('');
  const [planned, setPlanned] = useState(/** @type {{of: string, plan: any}|null} */ (null));
  const [done, setDone] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {Problem|null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const [isSending, setSending] = useState(false);
  const [hand, setHand] = useState(/** @type {import('./types.js').Queued|null} */ (null));
  const key = useRef(freshKey());
  const { overtake, attempt } = useRef(newest({ setBusy, setError, worded })).current;
  const isOne = path.startsWith('procedures/');

  useEffect(() => {
    // The answer is for the node that asks now, not for one that asks once this is sent.
    if (verb.answers) get(`procedures/${target.id}/queue`, { limit: 1 }).then((body) => setHand(body.in_hand), () => {});
    if (!isOne || row) return;
    get(`procedures/${target.id}`).then((body) => setRow(body.procedure), () => {});
  }, []);
  const fields = verb.fields ?? [];
  const value = (/** @type {import('./verbs.js').Field} */ field) => values[field.name] ?? field.from?.(row) ?? '';

  const isLeftOut = (/** @type {import('./verbs.js').Field} */ field) => Boolean(field.without && values[`no ${field.name}`]);
  const missing = fields.find((field) => field.without && !isLeftOut(field) && !String(value(field)).trim());

  const body = () => {
    /** @type {Record<string, unknown>} */
    const made = { ...fixed };
    for (const field of fields) {
      const given = value(field);
      if (field.type === 'flag') {
        if (given) made[field.name] = true;
      } else if (field.type === 'number') {
        if (given !== '' && !(values.unlimited && ['limit', 'begins', 'per_ms'].includes(field.name))) made[field.name] = Number(given);
      } else if (field.type === 'json') {
        made[field.name] = isLeftOut(field) ? null : exact(given || 'null');
      } else {
        made[field.name] = given;
      }
    }
    return verb.answers ? { answer: verb.answers(made.output, hand?.place ?? null) } : made;
  };
  const fingerprint = JSON.stringify([values, row?.revision, hand?.place]);
  // The plan of another request is neither shown nor sent.
  const plan = planned?.of === fingerprint ? planned.plan : null;
  const setPlan = (/** @type {any} */ made) => setPlanned(made && { of: fingerprint, plan: made });
  const look = () => attempt(async (isLatest) => {
    if (missing) return;
    const made = await post(path, body(), true);
    if (isLatest()) setPlan(made);
  });
  useEffect(() => {
    // What is sent is what its plan was made for.
    overtake();
    setPlan(null);
    setError(null);
    setBusy(true);
    const timer = window.setTimeout(look, fields.length ? 300 : 0);
    return () => window.clearTimeout(timer);
  }, [fingerprint]);

  const apply = () => attempt(async (isLatest) => {
    const made = { ...body(), reason, key: key.current };
    if (verb.plans && plan?.revision) Object.assign(made, { expected: plan.revision });
    if (verb.types) Object.assign(made, { confirm: typed });
    setSending(true);
    try {
      // It is done, whatever the form has become since.
      setDone(await post(path, made));
    } catch (found) {
      if (found instanceof Problem && found.kind === 'revised') {
        key.current = freshKey();
        const anew = await post(path, body(), true);
        if (isLatest()) setPlan(anew);
      }
      // A look that overtook it does not hide that it was refused.
      if (!isLatest()) setError(worded(found));
      throw found;
    } finally {
      setSending(false);
    }
  });
  const isReady = !isBusy && !isSending && plan && (verb.needsNoReason || reason.trim()) && (!verb.types || typed === target.id);
  const title = html`${verb.name} ${fixed.filter ? 'all of ' : ''}<bdi class="mono">${target.kind && !isOne ? target.kind : target.id}</bdi>`;
  if (done) {
    return html`
      <${Dialog} title=${title} onClose=${onClose}>
        <p class="done">${done.count !== undefined ? 'It is begun, and on disk.' : done.changed === 0 && done.changes?.length === 0 ? 'It is done; no row of a procedure changed.' : 'It is done, and on disk with its entry in the audit.'}</p>
        <${Plan} plan=${done} isDone planned=${plan} />
        <footer><a class="button" href="audit" onClick=${onClose}>Audit</a><button type="button" class="main" autofocus onClick=${onClose}>Close</button></footer>
      <//>`;
  }
  return html`
    <${Dialog} title=${title} onClose=${onClose}>
      <form onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); if (isReady) apply(); }}>
        <p>${hand && html`<b><bdi>${hand.name ?? `Place ${hand.place}`}</bdi></b>: `}${verb.says}</p>
        ${fields.map((field) => html`<${Input} key=${field.name} field=${field} value=${value(field)} isLeftOut=${isLeftOut(field)}
          onValue=${(/** @type {any} */ given) => setValues({ ...values, [field.name]: given })} onLeaveOut=${(/** @type {boolean} */ is) => setValues({ ...values, [`no ${field.name}`]: is })} />`)}
        <section class="plan" aria-label="Plan" aria-busy=${isBusy}>
          <h3>Plan</h3>
          ${plan ? html`<${Plan} plan=${plan} />` : !error && html`<p class="dim">${missing ? `Write the ${missing.label.toLowerCase()}, or choose “${missing.without}”.` : 'Asking what it would do …'}</p>`}
        </section>
        ${!verb.needsNoReason && html`
          <label class="field"><span>Reason</span>
            <input type="text" value=${reason} maxlength="1024" autofocus autocomplete="off" placeholder="Recorded in the audit log" onInput=${(/** @type {any} */ event) => setReason(event.target.value)} />
          </label>`}
        ${verb.types && html`
          <label class="field"><span>Type <b class="mono">${target.id}</b>: this cannot be taken back</span>
            <input type="text" class="mono" value=${typed} autocomplete="off" spellcheck="false" onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} />
          </label>`}
        ${error && html`<${Trouble} error=${error} />`}
        <footer>
          <button type="button" onClick=${onClose}>Cancel</button>
          <button type="submit" class=${verb.isGrave ? 'main grave' : 'main'} disabled=${!isReady}>${verb.name}</button>
        </footer>
      </form>
    <//>`;
}

/** @param {{field: import('./verbs.js').Field, value: any, isLeftOut: boolean, onValue: (value: any) => void, onLeaveOut: (is: boolean) => void}} props */
function Input({ field, value, isLeftOut, onValue, onLeaveOut }) {
  if (field.type === 'flag') {
    return html`<label class="flag" title=${field.help}><input type="checkbox" checked=${Boolean(value)} onChange=${(/** @type {any} */ event) => onValue(event.target.checked)} /> ${field.label}</label>`;
  }
  if (field.type === 'json') {
    return html`<label class="field" title=${field.help}><span>${field.label} <span class="dim">${field.help}</span></span>
      <textarea rows="4" class="mono" spellcheck="false" value=${value} disabled=${isLeftOut} onInput=${(/** @type {any} */ event) => onValue(event.target.value)}></textarea></label>
      ${field.without && html`<label class="flag"><input type="checkbox" checked=${isLeftOut} onChange=${(/** @type {any} */ event) => onLeaveOut(event.target.checked)} /> ${field.without}</label>`}`;
  }
  return html`<label class="field"><span>${field.label} <span class="dim">${field.help}</span></span>
    <input type=${field.type === 'number' ? 'number' : 'text'} value=${value} onInput=${(/** @type {any} */ event) => onValue(event.target.value)} /></label>`;
}
