/**
 * What operators may do, as a table: from where, with which right, and what it asks for. The
 * server checks all of it again.
 *
 * @typedef {import('./types.js').Row} Row
 * @typedef {{name: string, label: string, type: 'number'|'text'|'json'|'flag', help: string, without?: string, from?: (row: Row|undefined) => string}} Field
 *   A field with `without` has no value of its own: it is filled in, or left out by a choice that says so.
 *
 * @typedef {object} Verb
 * @property {string} name What its button says.
 * @property {import('./types.js').Right} right
 * @property {(row: Row) => boolean} from Where it makes sense.
 * @property {string} says What it does, in a sentence.
 * @property {boolean} [plans] Its plan's revision is sent along: what it does cannot be taken back.
 * @property {boolean} [types] The id is typed by hand.
 * @property {boolean} [needsNoReason]
 * @property {boolean} [isGrave]
 * @property {Field[]} [fields]
 * @property {string} [path] The verb of the API that it asks for, if that has another name.
 * @property {Record<string, unknown>} [fixed] What goes with every request.
 * @property {(output: unknown, place: number|null) => unknown} [answers] Its answer about the node in hand of a stream.
 */

/** @param {Row} row */
const live = (row) => !row.ended && !row.set_aside;
const WITH_THOSE_BELOW = /** @type {Field} */ ({ name: 'recursive', label: 'with all below it', type: 'flag', help: 'Those below it end the same way.' });

export const STREAM = 'procession.stream';

/** A schedule, which submits another procedure at each of its times. @param {Row} row */
export const isSchedule = (row) => row.kind === 'procession.schedule';

/** @type {Record<string, Verb>} */
export const VERBS = {
  'run-now': { name: 'Run now', right: 'submit', needsNoReason: true, from: (row) => live(row) && isSchedule(row), path: 'signal', fixed: { name: 'request', payload: null }, says: 'It submits a run now, beside its times. One that may not overlap with the run that goes on waits for its end.' },
  decide: {
    name: 'Answer', right: 'operate', plans: true, needsNoReason: true, from: (row) => live(row) && row.reason === 'decision', says: 'The stage behind its question runs, and reads the answer.',
    fields: [{ name: 'answer', label: 'Answer', type: 'json', help: 'JSON, as its code expects it: true, false, a number, or a text in quotes.', from: () => 'true' }],
  },
  pause: { name: 'Pause', right: 'operate', from: (row) => live(row) && !row.paused, says: 'No further stage of it or of those below it starts. The one that runs ends.' },
  resume: { name: 'Resume', right: 'operate', from: (row) => live(row) && (row.paused || ['poison', 'repeat_limit'].includes(row.reason ?? '')), says: 'It goes on where it was.' },
  retry: { name: 'Retry now', right: 'operate', plans: true, from: (row) => live(row) && ['backoff', 'poison', 'gate', 'decision'].includes(row.reason ?? ''), says: 'Its next attempt is made now, whatever it waits for. Attempts are counted on; of one that asks, which goes on without an answer, they begin anew.' },
  'retry-undo': { name: 'Retry undo', right: 'operate', plans: true, from: (row) => live(row) && row.reason === 'rollback_failed', says: 'The undo that failed is tried again, with all its attempts.' },
  'skip-undo': { name: 'Skip undo', right: 'repair', plans: true, isGrave: true, from: (row) => live(row) && row.reason === 'rollback_failed', says: 'The undo that failed is left out: what its stage did stays as it is. The rollback goes on behind it.' },
  abort: { name: 'Abort', right: 'abort', plans: true, isGrave: true, from: (row) => live(row) && row.state !== 'Failed' && !row.past_no_return, says: 'It stops between stages, and its executed stages are undone, the newest first.' },
  priority: {
    name: 'Priority', right: 'configure', from: live, says: 'Higher goes first where it waits for a permit.',
    fields: [{ name: 'priority', label: 'New priority', type: 'number', help: 'From −32,768 to 32,767; 0 is usual.', from: (row) => String(row?.priority ?? 0) }],
  },
  signal: {
    name: 'Signal', right: 'submit', needsNoReason: true, from: live, says: 'The event is delivered to it as a sender would.',
    fields: [
      { name: 'name', label: 'Event', type: 'text', help: 'Its name.', from: (row) => /event (.+)$/.exec(row?.waits ?? '')?.[1] ?? '' },
      { name: 'payload', label: 'Payload', type: 'json', help: 'JSON, as its code expects it.', without: 'without a payload' },
    ],
  },
  succeed: {
    name: 'Succeed', right: 'repair', plans: true, types: true, isGrave: true, path: 'override-result', from: (row) => live(row) && ['gate', 'decision'].includes(row.reason ?? ''), says: 'It ends as a success with the output below, without a call. What runs after it sees the output.',
    fields: [{ name: 'output', label: 'Output', type: 'json', help: 'JSON that its kind can read as its output.', from: () => 'null' }],
  },
  fail: { name: 'Fail', right: 'repair', plans: true, types: true, isGrave: true, path: 'bypass', fixed: { as: 'failed' }, from: (row) => live(row) && ['gate', 'decision'].includes(row.reason ?? ''), says: 'It ends as failed, without a call. What runs after it goes by its own gate.' },
  bypass: { name: 'Bypass', right: 'repair', plans: true, types: true, isGrave: true, from: live, says: 'It ends as a success without output, and nothing is undone. Results that come later are ignored.', fields: [WITH_THOSE_BELOW] },
  'override-result': {
    name: 'Override result', right: 'repair', plans: true, types: true, isGrave: true, from: (row) => !row.set_aside && (!row.ended || row.state === 'Success'), says: 'The output below stands as its result.',
    fields: [{ name: 'output', label: 'Output', type: 'json', help: 'JSON that its kind can read as its output.', from: () => 'null' }, WITH_THOSE_BELOW],
  },
  discharge: { name: 'Discharge', right: 'repair', plans: true, types: true, isGrave: true, from: (row) => row.reason === 'quarantined', says: 'The family gives up its locks, and goes into the archive.' },
  'run-again': { name: 'Run again', right: 'operate', from: (row) => Boolean(row.ended) && row.parent === null && (row.state === 'Failed' || row.state === 'RolledBack'), says: 'A new procedure runs with the value that this one was submitted with. The failure counts as acknowledged.' },
  acknowledge: { name: 'Acknowledge', right: 'operate', needsNoReason: true, from: (row) => Boolean(row.ended) && row.parent === null, says: 'Its result was taken note of. A failure is not listed any more; the result of a success may go sooner.' },
};

/** The same about the node in hand of a stream: an answer, for the root is all of them. @type {Record<string, Verb>} */
const OF_STREAM = {
  decide: { ...need('decide'), fields: [{ name: 'answer', label: 'Answer', type: 'json', help: '{"act": "retry"}, {"act": "fail"}, or {"act": {"succeed": 7}} with an output.', from: () => '{"act": "retry"}' }] },
  succeed: { ...need('succeed'), right: 'operate', types: false, path: 'decide', from: need('decide').from, answers: (output, place) => ({ place, act: { succeed: output } }), says: 'The node in hand ends as a success with the output below, without a call. The stream goes on.' },
  fail: { ...need('fail'), right: 'operate', types: false, path: 'decide', fixed: {}, from: need('decide').from, answers: (_, place) => ({ place, act: 'fail' }), says: 'The node in hand ends as failed, without a call. The stream goes on, unless the node was to stop it.' },
};

/** @param {string} name */
function need(name) {
  return /** @type {Verb} */ (VERBS[name]);
}

/** A verb as it is for one procedure. Of a saga none answers: its tab has what may be decided. @param {string} name @param {string} [kind] */
export const verbOf = (name, kind) => (!OF_STREAM[name] ? VERBS[name] : kind === STREAM ? OF_STREAM[name] : kind?.startsWith('saga.') ? undefined : VERBS[name]);

/** The names of the verbs that fit a procedure, the one that it waits for first. @param {Row} row */
export function fitting(row) {
  const names = Object.keys(VERBS).filter((name) => verbOf(name, row.kind)?.from(row));
  return row.reason === 'event' && names.includes('signal') ? ['signal', ...names.filter((name) => name !== 'signal')] : names;
}

/** Verbs that can be asked of all that a filter admits. */
export const OF_MANY = ['pause', 'resume', 'retry', 'abort', 'retry-undo', 'skip-undo', 'priority', 'acknowledge', 'run-again'];

/** Verbs of kinds and of the engine, which have no row. @type {Record<string, Verb>} */
export const WIDE = {
  pause: { name: 'Pause', right: 'operate', from: () => true, says: 'No further stage of them starts. Those that run end.' },
  resume: { name: 'Resume', right: 'operate', from: () => true, says: 'They go on where they were.' },
  drain: {
    name: 'Drain', right: 'configure', plans: true, isGrave: true, from: () => true, says: 'No new stage starts until the engine is started again. Stages that run have until the deadline.',
    fields: [{ name: 'deadline_ms', label: 'Deadline', type: 'number', help: 'Milliseconds; an hour at most.', from: () => '30000' }],
  },
  limit: {
    name: 'Set', right: 'configure', from: () => true, says: 'So many permits are given out at once, or in a time. Lowering it takes none back.',
    fields: [{ name: 'limit', label: 'Limit', type: 'number', help: 'Permits in all.' }, { name: 'unlimited', label: 'without a limit', type: 'flag', help: 'Any number.' }, { name: 'begins', label: 'Begins', type: 'number', help: 'The number that may begin in the time below.' }, { name: 'per_ms', label: 'In', type: 'number', help: 'Milliseconds.' }],
  },
};
