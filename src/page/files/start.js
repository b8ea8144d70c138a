/** Starting a procedure from the page: its value as JSON, which a dry run checks while it is written. */
import { html, useEffect, useRef, useState } from './dom.js';
import { exact, freshKey, post, Problem } from './api.js';
import { Dialog } from './dialog.js';
import { newest } from './newest.js';
import { Trouble } from './parts.js';
import { go, pageOf } from './router.js';

/** How long after the last key the value is checked, in milliseconds. */
const PAUSE = 300;

/** @typedef {{value: string, key: string, name: string, labels: string, priority: string, reason: string}} Written */

/** How what is submitted is called: the value of a procedure, or the params with which a saga begins. */
const WORDS = {
  value: { title: 'Value', help: 'JSON, as the kind expects it.', wrong: 'The value is no JSON', empty: 'Write the value: it is checked before anything starts.', taken: 'The kind takes this value.', busy: 'Checking the value …' },
  params: { title: 'Params', help: 'A JSON object: what the saga begins with.', wrong: 'The params are no JSON', empty: 'Write the params, {} if there are none: they are checked before anything starts.', taken: 'The machine takes these params.', busy: 'Checking the params …' },
};

/** @typedef {typeof WORDS.value} Words */

/** What is sent for it. What cannot be read says where. @param {Written} written @param {Words} words */
function bodyOf({ value, key, name, labels, priority }, words) {
  /** @type {Record<string, unknown>} */
  const body = { value: read(words.wrong, () => exact(value)) };
  if (key) body.idempotency_key = key;
  if (name) body.name = name;
  if (priority) body.priority = Number(priority);
  const lines = labels.split('\n').map((line) => line.trim()).filter(Boolean);
  if (lines.length > 0) body.labels = Object.fromEntries(lines.map(label));
  return body;
}

/** @param {string} line @returns {[string, string]} */
function label(line) {
  const at = line.indexOf('=');
  if (at < 1) throw new Problem(400, { detail: `The label “${line}” has no name.`, remedy: 'Write each label as name=value on a line of its own.' });
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

/** @template T @param {string} what @param {() => T} parse */
function read(what, parse) {
  try {
    return parse();
  } catch (found) {
    if (found instanceof Problem) throw found;
    throw new Problem(400, { detail: `${what}: ${found instanceof Error ? found.message : found}.`, remedy: 'Correct it.' });
  }
}

/** @param {unknown} found */
function worded(found) {
  if (!(found instanceof Problem)) throw found;
  return found;
}

/** @param {{kind: string, takes: 'value'|'params', onClose: () => void}} props */
export function Start({ kind, takes, onClose }) {
  const words = WORDS[takes];
  const [written, set] = useState(/** @type {Written} */ ({ value: '', key: '', name: '', labels: '', priority: '', reason: '' }));
  const [isChecked, setChecked] = useState(false);
  const [error, setError] = useState(/** @type {Problem|null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const { overtake, attempt } = useRef(newest({ setBusy, setError, worded })).current;
  const request = useRef(freshKey());
  const path = `kinds/${encodeURIComponent(kind)}/submit`;
  const isEmpty = !written.value.trim();

  const { reason, ...checks } = written;
  const fingerprint = JSON.stringify(checks);
  useEffect(() => {
    // What is sent is what was checked.
    overtake();
    setChecked(false);
    setError(null);
    setBusy(!isEmpty);
    if (isEmpty) return;
    const timer = window.setTimeout(() => attempt(async (isLatest) => {
      await post(path, bodyOf(written, words), true);
      if (isLatest()) setChecked(true);
    }), PAUSE);
    return () => window.clearTimeout(timer);
  }, [fingerprint]);

  const submit = () => attempt(async () => {
    const { submitted } = await post(path, { ...bodyOf(written, words), reason, key: request.current });
    onClose();
    go(pageOf(submitted));
  });
  const isReady = !isBusy && isChecked;
  const line = (/** @type {keyof Written} */ name, /** @type {string} */ title, /** @type {string} */ help, type = 'text') => html`
    <label class="field"><span>${title} <span class="dim">${help}</span></span>
      <input type=${type} value=${written[name]} autocomplete="off" spellcheck="false" onInput=${(/** @type {any} */ event) => set({ ...written, [name]: event.target.value })} /></label>`;
  const text = (/** @type {keyof Written} */ name, /** @type {string} */ title, /** @type {string} */ help, rows = 2) => html`
    <label class="field"><span>${title} <span class="dim">${help}</span></span>
      <textarea class="mono" rows=${rows} value=${written[name]} autofocus=${name === 'value'} autocomplete="off" spellcheck="false" onInput=${(/** @type {any} */ event) => set({ ...written, [name]: event.target.value })}></textarea></label>`;
  return html`
    <${Dialog} title=${html`Start <bdi class="mono">${kind}</bdi>`} onClose=${onClose}>
      <form onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); if (isReady) submit(); }}>
        ${text('value', words.title, words.help, 6)}
        ${line('key', 'Idempotency key', 'A second submission with this key finds the first.')}
        ${line('name', 'Name', 'Shown beside its id.')}
        ${text('labels', 'Labels', 'name=value, one a line.')}
        ${line('priority', 'Priority', '0 unless set; higher goes first.', 'number')}
        ${line('reason', 'Reason', 'Recorded in the audit log.')}
        <p role="status" class=${isChecked ? 'done' : 'dim'}>${said(words, isEmpty, isBusy, isChecked)}</p>
        ${error && html`<${Trouble} error=${error} />`}
        <footer>
          <button type="button" onClick=${onClose}>Cancel</button>
          <button type="submit" class="main" disabled=${!isReady}>Start</button>
        </footer>
      </form>
    <//>`;
}

/** How it stands. @param {Words} words @param {boolean} isEmpty @param {boolean} isBusy @param {boolean} isChecked */
function said(words, isEmpty, isBusy, isChecked) {
  if (isEmpty) return words.empty;
  if (isChecked) return words.taken;
  return isBusy ? words.busy : '';
}
