/** What the word at the cursor of a filter may go on with. It is fetched when a filter is written. */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './dom.js';
import { useLoad } from './load.js';
import { labelsOf, quoted } from './labels.js';
import { REASONS, RULES } from './states.js';

/** @typedef {{text: string, says: string, ends: boolean}} Choice `ends`: the term is whole with it. */

/** Choices that are offered at once. */
const OFFERED = 20;

/** @type {Record<string, string>} */
const FIELDS = {
  state: 'live, ended, waiting, retrying, …', reason: 'why it does not run', kind: 'what it is', key: 'its idempotency key begins so',
  label: 'name=value', age: 'since it was submitted', since: 'as it is since', attempts: 'failed attempts of its stage', err: 'its cause contains this',
  root: 'the family of this number', rule: 'a verdict tells of it', failure: 'nobody has acknowledged it',
};
/** @type {Record<string, string>} */
const STATES = {
  live: 'not ended', ended: 'ended, however', initializing: 'its first stage has not run', runnable: 'its next stage may run', waiting: 'for children, an event, a time',
  retrying: 'its last attempt failed', rolling_back: 'it is being undone', failed: 'ended, and not undone, or is being undone', rolled_back: 'ended, and undone', success: 'ended well',
};
const TIMES = { '>10m': 'more than ten minutes', '>1h': 'more than an hour', '>1d': 'more than a day', '<10m': 'less than ten minutes' };
const NUMBERS = { '>0': 'it has failed', '>3': 'more than three' };

/** Fields that take several values with commas. */
const SEVERAL = ['state', 'reason', 'kind', 'root', 'rule'];

/** Where the word at the cursor begins: blanks between quotes divide none. @param {string} text */
function wordStart(text) {
  let begin = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '\\' && isQuoted) at += 1;
    else if (text[at] === '"') isQuoted = !isQuoted;
    else if (text[at] === ' ' && !isQuoted) begin = at + 1;
  }
  return begin;
}

/** @param {Record<string, string>} words @returns {[string, string][]} */
const pairs = (words) => Object.entries(words);

/** Names of labels, and their values once a name is written. @param {string} part @param {any[]} rows @returns {[string, string][]} */
function labels(part, rows) {
  const all = rows.flatMap(labelsOf);
  if (part.includes('=')) return all.map(({ text, name }) => [quoted(text), `of ${name}`]);
  return all.map(({ name }) => [`${name}=`, 'a label of rows that are shown']);
}

/** @param {string} field @param {string} part @param {any[]} rows @param {string[]} kinds @returns {[string, string][]} */
function valuesOf(field, part, rows, kinds) {
  switch (field) {
    case 'state': return pairs(STATES);
    case 'reason': return pairs(REASONS);
    case 'kind': return kinds.map((kind) => [quoted(kind), 'a kind']);
    case 'rule': return Object.entries(RULES).map(([name, { code, help }]) => [name, `${code}: ${help}`]);
    case 'label': return labels(part, rows);
    case 'key': return rows.flatMap(({ key }) => (key ? [[`${quoted(key)}`, 'a key of a row that is shown']] : []));
    case 'root': return rows.flatMap(({ root }) => (root ? [[root.split('.')[0], 'a family that is shown']] : []));
    case 'age': case 'since': return pairs(TIMES);
    case 'attempts': return pairs(NUMBERS);
    case 'failure': return [['any', 'whatever it says']];
    default: return [];
  }
}

/**
 * What may take the place of the word before the cursor, and where that begins.
 * @param {string} before @param {any[]} rows @param {string[]} kinds
 * @returns {{begin: number, choices: Choice[]}}
 */
export function complete(before, rows, kinds) {
  const start = wordStart(before);
  const [, field = '', value] = /^([a-z]*):(.*)$/s.exec(before.slice(start)) ?? [];
  if (value === undefined) {
    const word = before.slice(start);
    const fields = pairs(FIELDS).filter(([name]) => name.startsWith(word)).map(([name, says]) => ({ text: `${name}:`, says, ends: false }));
    return { begin: start, choices: fields };
  }
  const part = SEVERAL.includes(field) && !value.includes('"') ? value.slice(value.lastIndexOf(',') + 1) : value;
  const plain = part.replace(/^"/, '').toLowerCase();
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const [text, says] of valuesOf(field, part, rows, kinds)) {
    if (text.replace(/^"/, '').toLowerCase().includes(plain) && text !== part) found.set(text, says);
  }
  const all = [...found].sort(([one], [other]) => Number(other.toLowerCase().startsWith(plain)) - Number(one.toLowerCase().startsWith(plain)));
  return { begin: before.length - part.length, choices: all.slice(0, OFFERED).map(([text, says]) => ({ text, says, ends: !text.endsWith('=') })) };
}

/** What is written, and where the cursor is. @param {HTMLInputElement} field */
const written = (field) => ({ text: field.value, cursor: field.selectionStart ?? 0 });

/**
 * The list below the filter. The field has the focus all the time, so keys are heard there.
 * @param {{field: HTMLInputElement, rows: any[], onTake: (text: string) => void, onState: (state: {isOpen: boolean, active: string}) => void}} props
 */
export function Completions({ field, rows, onTake, onState }) {
  const kinds = useLoad('kinds');
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const [at, setAt] = useState(() => written(field));
  const [active, setActive] = useState(-1);
  /** The same at once: keys may come faster than what is drawn. */
  const chosen = useRef(-1);
  const [isShut, shut] = useState(false);
  const names = /** @type {{kind: string}[]} */ (kinds.data?.items ?? []).map(({ kind }) => kind);
  const { choices } = useMemo(() => complete(at.text.slice(0, at.cursor), rows, names), [at, rows, kinds.data]);
  const isOpen = !isShut && choices.length > 0;

  const choose = (/** @type {number} */ place) => {
    chosen.current = place;
    setActive(place);
  };
  const take = (/** @type {Choice|undefined} */ choice) => {
    if (!choice) return;
    const { text, cursor } = written(field);
    const rest = text.slice(cursor).replace(/^\S+/, '');
    const head = text.slice(0, complete(text.slice(0, cursor), rows, names).begin) + choice.text + (choice.ends && !rest.startsWith(' ') ? ' ' : '');
    // Not once it is drawn: somebody writes on.
    field.value = head + rest;
    field.setSelectionRange(head.length, head.length);
    onTake(head + rest);
    setAt({ text: head + rest, cursor: head.length });
    choose(-1);
    shut(choice.ends);
  };
  // Heard from the moment that it is drawn: what is written before an effect would run is not missed.
  useLayoutEffect(() => {
    const moved = () => {
      setAt((old) => (old.text === field.value && old.cursor === field.selectionStart ? old : written(field)));
    };
    const changed = () => {
      moved();
      shut(false);
      choose(-1);
    };
    field.addEventListener('input', changed);
    field.addEventListener('keyup', moved);
    field.addEventListener('click', changed);
    return () => {
      field.removeEventListener('input', changed);
      field.removeEventListener('keyup', moved);
      field.removeEventListener('click', changed);
    };
  }, [field]);
  useLayoutEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      const { text, cursor } = written(field);
      const { choices: now } = complete(text.slice(0, cursor), rows, names);
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const place = chosen.current;
      if (step && now.length > 0) {
        shut(false);
        choose(place < 0 ? (step > 0 ? 0 : now.length - 1) : (place + step + now.length) % now.length);
      } else if ((event.key === 'Enter' || event.key === 'Tab') && place >= 0) take(now[place]);
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    field.addEventListener('keydown', press);
    return () => field.removeEventListener('keydown', press);
  });
  useEffect(() => onState({ isOpen, active: isOpen && active >= 0 ? `choice-${active}` : '' }), [isOpen, active]);
  useLayoutEffect(() => list.current?.children[active]?.scrollIntoView({ block: 'nearest' }), [active]);
  return html`
    <ul class="choices" id="choices" role="listbox" aria-label="Completions" ref=${list} hidden=${!isOpen} onPointerDown=${(/** @type {Event} */ event) => event.preventDefault()}>
      ${choices.map((choice, place) => html`<li key=${choice.text} id=${`choice-${place}`} role="option" aria-selected=${place === active} onClick=${() => take(choice)}><bdi class="mono">${choice.text}</bdi> <span class="dim">${choice.says}</span></li>`)}
    </ul>`;
}
