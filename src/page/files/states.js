/** How a procedure stands: one word, one shape and one colour; and what each means. */

/**
 * @typedef {object} Standing
 * @property {string} word
 * @property {'run'|'queue'|'wait'|'retry'|'undo'|'bad'|'good'|'pause'} tone
 * @property {string} shape
 * @property {string} help
 */

/** @param {string} word @param {Standing['tone']} tone @param {string} shape @param {string} help @returns {Standing} */
const stand = (word, tone, shape, help) => ({ word, tone, shape, help });

/** @type {Record<string, Standing>} */
const BY_REASON = {
  lock: stand('waiting · lock', 'wait', 'lock', 'It waits for a lock that others hold or were promised before it.'),
  permit: stand('waiting · permit', 'wait', 'gate', 'All permits of its limit are out; it goes on when one is free and its turn has come.'),
  children: stand('waiting · children', 'wait', 'tree', 'It continues once its children finish, as its join policy says.'),
  event: stand('waiting · event', 'wait', 'hand', 'It goes on when the event arrives.'),
  timer: stand('waiting · timer', 'wait', 'clock', 'It sleeps until an instant that is on disk.'),
  gate: stand('waiting · gate', 'wait', 'tree', 'It begins when the siblings before its gate let it. An operator may open the gate, or end it.'),
  width: stand('waiting · width', 'queue', 'dots', 'Its parent lets only so many children run at once.'),
  queue: stand('queued', 'queue', 'dots', 'It is ready, and stands in the queue of its worker.'),
  suspect: stand('queued · suspect', 'queue', 'dots', 'The process died when it ran; it runs alone, after the others.'),
  backoff: stand('retrying', 'retry', 'retry', 'Its last attempt failed; the next is due at an instant that is on disk.'),
  paused: stand('paused', 'pause', 'pause', 'An operator has paused it, its kind, or all; it goes on when it is resumed.'),
  poison: stand('poison', 'bad', 'warn', 'The process died again and again with this stage begun. It runs when an operator says so.'),
  repeat_limit: stand('repeat limit', 'bad', 'warn', 'It committed the same stage too often in a row.'),
  rollback_failed: stand('rollback failed', 'bad', 'warn', 'An undo used up its attempts. An operator has it tried again, or skipped.'),
  decision: stand('asks', 'retry', 'hand', 'It asks a person, and goes on when somebody decides.'),
  quarantined: stand('quarantined', 'bad', 'warn', 'Its family is set aside: the code that runs cannot read it, or its journal has a hole.'),
};

/** What each reason means, by its word in a filter. */
export const REASONS = Object.fromEntries(Object.entries(BY_REASON).map(([name, { help }]) => [name, help]));

/** @type {Record<string, Standing>} */
const BY_STATE = {
  Initializing: stand('initializing', 'queue', 'dots', 'It is on disk, and its first stage has not run.'),
  Runnable: stand('runnable', 'queue', 'dots', 'Its next stage may run.'),
  Waiting: stand('waiting', 'wait', 'tree', 'It waits for its children.'),
  WaitingTimeout: stand('waiting', 'wait', 'clock', 'It waits for an event, or for a time.'),
  Failed: stand('rolling back', 'undo', 'undo', 'It has failed, and its executed stages are undone, the newest first.'),
  RolledBack: stand('rolled back', 'undo', 'undo', 'It has ended: it failed, and all that could be undone was.'),
  Success: stand('success', 'good', 'check', 'It has ended well.'),
};

/** The nodes of sets, and sets. @type {Record<string, Standing>} */
const OF_SETS = {
  INIT: stand('INIT', 'queue', 'dots', 'None of its nodes was set going yet.'),
  WAIT: stand('WAIT', 'wait', 'tree', 'It waits for nodes before it, and one of these will move by itself.'),
  READY: stand('READY', 'queue', 'dots', 'It may run, and waits for its turn.'),
  RUNNING: stand('RUNNING', 'run', 'run', 'It runs, or has parked itself until it is notified.'),
  PENDING: stand('PENDING', 'bad', 'hand', 'It waits for a person: it asks, or those before it can no longer let it begin.'),
  SUCCESS: stand('SUCCESS', 'good', 'check', 'It has succeeded.'),
  ERROR: stand('ERROR', 'bad', 'cross', 'It has failed.'),
  CANCELLED: stand('CANCELLED', 'pause', 'cross', 'It has ended with its set, without an end of its own.'),
  FINISH: stand('FINISH', 'good', 'check', 'Its last nodes are final; the counts say how.'),
};

const RUNNING = stand('running', 'run', 'run', 'One of its stages is running.');
const UNDOING = stand('rolling back', 'undo', 'undo', 'One of its undos is running.');
const ENDED_FAILED = stand('failed', 'bad', 'cross', 'It has ended: it failed, and its kind is not rolled back.');

/** @param {import('./types.js').Row} row @returns {Standing} */
export function standing(row) {
  if (row.node) return worded(row.node);
  if (row.reason === 'quarantined') return BY_REASON.quarantined ?? RUNNING;
  if (row.ended) {
    const ended = row.state === 'Failed' ? ENDED_FAILED : (BY_STATE[row.state] ?? RUNNING);
    return row.mark ? { ...ended, word: `${ended.word} · ${row.mark}` } : ended;
  }
  if (row.reason && row.reason in BY_REASON) return /** @type {Standing} */ (BY_REASON[row.reason]);
  if (row.state === 'Failed') return UNDOING;
  if (row.going) return RUNNING;
  return BY_STATE[row.state] ?? stand(row.state, 'queue', 'dots', '');
}

/** How something stands, by its word. @param {string} word @returns {Standing} */
export function worded(word) {
  const known = [...Object.values(OF_SETS), ...Object.values(BY_REASON), ...Object.values(BY_STATE), RUNNING, ENDED_FAILED];
  return known.find((standing) => standing.word === word.split(' · by')[0]) ?? stand(word, 'queue', 'dots', '');
}

/** What it is doing, and why: never a state alone. @param {import('./types.js').Row} row */
export function why(row) {
  if (row.state === 'Failed' && !row.ended) {
    const what = row.cause ? `failed with “${shown(row.cause.text)}”` : 'failed';
    return `${what}, and ${row.reason === 'rollback_failed' ? 'an undo used up its attempts' : row.waits ?? 'is being undone'}`;
  }
  if (row.ended) return row.cause ? `${row.cause.kind.toLowerCase()}: ${shown(row.cause.text)}` : 'ended well';
  if (row.question !== undefined) return `asks: “${shown(row.question)}”`;
  if (row.waits) return row.waits;
  return row.going ? `stage ${row.stage} is running` : `stage ${row.stage} is next`;
}

/** @param {unknown} text */
export const shown = (text) => (typeof text === 'string' ? text : '(redacted)');

/** Rules of verdicts: number, name, and what each says. @type {Record<string, {code: string, name: string, help: string}>} */
export const RULES = {
  overrun: { code: 'S1', name: 'overrun', help: 'A stage runs longer than its kind expects, or than four times what 99 of 100 took.' },
  blocked_worker: { code: 'S1', name: 'worker blocked', help: 'A stage holds its worker thread without giving way.' },
  retry_storm: { code: 'S2', name: 'retry storm', help: 'Repeatedly failing with the same error (ignoring numbers).' },
  no_progress: { code: 'S3', name: 'no progress', help: 'The same stage was committed again and again, or it waits for an event whose last signal was sent.' },
  lost_wake: { code: 'S4', name: 'lost wake-up', help: 'It was parked with nothing behind it; it was queued again at once. This is a defect of the engine.' },
  deadlock: { code: 'S5', name: 'deadlock', help: 'They wait for each other in a circle. The verdict says what resolves it.' },
  starved: { code: 'S6', name: 'starved', help: 'Others who came later went before it too often, or it waits for what is free.' },
  actor_lost: { code: 'S7', name: 'actor lost', help: 'Its thread ended in the middle of a call, which counts as failed.' },
  rollback_failed: { code: 'S8', name: 'rollback failed', help: 'An undo used up its attempts; the family keeps its locks until an operator acts.' },
  poison: { code: 'S9', name: 'poison', help: 'The process died several times with this stage begun.' },
  quarantined: { code: 'S10', name: 'quarantined', help: 'The code that runs cannot read it, or its journal has a hole.' },
  store_slow: { code: 'S11', name: 'store slow', help: 'Commits take longer than they should.' },
  store_unreadable: { code: 'S11', name: 'store unreadable', help: 'The store does not give what the engine has to read. The engine tries again until it does.' },
  disk_nearly_full: { code: 'S11', name: 'disk nearly full', help: 'Little room is left for the journal. Make room before the engine has to stop.' },
  store_failed: { code: 'S11', name: 'store failed', help: 'The journal takes no more commits. Restart with room on a sound disk.' },
  size: { code: 'S12', name: 'size', help: 'A payload, a history, a family or its signals are near what is allowed, or very large.' },
  undecided: { code: 'S14', name: 'undecided', help: 'It waits for a person to decide: it asks a question, or the siblings before its gate can no longer open it.' },
  unacknowledged_failures: { code: 'S15', name: 'failures', help: 'Roots have failed or were rolled back, and nobody has acknowledged that.' },
  clock_ahead: { code: 'S13', name: 'clock ahead', help: 'The wall clock was set forward, or the machine was off. Results that only look due are kept for as long as was promised.' },
};

/** Tells a verdict from others of its rule, as the engine does. @param {import('./types.js').Verdict} verdict */
export const keyOf = ({ rule, procedure, facts }) => [rule, procedure, facts.what ?? facts.worker ?? facts.count ?? facts.stage].join(' ');

/** What is worse than that one waits. */
const HARM = ['rollback_failed', 'deadlock', 'poison', 'quarantined', 'store_failed', 'store_slow', 'store_unreadable', 'disk_nearly_full', 'blocked_worker'];

/** @param {string} rule @returns {'bad'|'retry'} */
export const harm = (rule) => (HARM.includes(rule) ? 'bad' : 'retry');
