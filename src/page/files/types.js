/**
 * What the API replies with, as far as the page reads it.
 *
 * @typedef {any} Node
 * @typedef {'view'|'payload'|'operate'|'abort'|'repair'|'configure'|'submit'} Right
 *
 * @typedef {object} Me
 * @property {string} who
 * @property {Right[]} rights
 * @property {string} engine
 * @property {string|null} trace_url
 * @property {{name: string, url: string}[]} [engines]
 *
 * @typedef {object} Row
 * @property {string} id
 * @property {string} root
 * @property {string|null} parent
 * @property {string} kind
 * @property {number} version
 * @property {string|null} key
 * @property {Record<string, string>} [labels]
 * @property {string} state
 * @property {string|null} reason
 * @property {unknown} [question]
 * @property {string|null} waits
 * @property {string} since
 * @property {string|null} until
 * @property {string} next
 * @property {string} stage
 * @property {number} attempt
 * @property {boolean} going
 * @property {number} priority
 * @property {boolean} paused
 * @property {boolean} holds
 * @property {{path: string, mode: string}[]} locks
 * @property {string} [name]
 * @property {string|null} [node]
 * @property {string[]} [before]
 * @property {string|null} past_no_return
 * @property {boolean} set_aside
 * @property {{kind: string, text: unknown, origin: string}|null} cause
 * @property {number} not_undone
 * @property {string|null} mark
 * @property {string|null} [trace]
 * @property {string} submitted
 * @property {string|null} ended
 * @property {string} revision
 *
 * @typedef {Row & {layer: number, node: string|null, why: string|null, opens: string|null}} GraphRow
 * @typedef {{layer: number, standing: string, count: number, first: string, after: number[]}} GraphGroup
 * @typedef {{items: GraphRow[], total: number, counts: Record<string, number>, groups?: GraphGroup[], truncated: boolean, of_first?: number}} FamilyGraph
 *
 * @typedef {{place: number, name: string|null, kind: string, state: string, reason: string|null, since: string, attempt: number, question: unknown}} Queued
 * @typedef {{place: number, name: string|null, kind: string, state: string, attempts: number, cause: unknown, ended: string, output_bytes: number, note: any}} StreamRecord
 * @typedef {{state: string, in_hand: Queued|null, waiting: number, oldest: string|null, done: number, per_minute: number|null, sealed: boolean, next: Queued[], records: StreamRecord[], before: number|null}} Queue
 *
 * @typedef {{kind: string, fingerprint: string, cause: string, text: unknown, origin_kind: string|null, count: number, first: string, last: string, newest: string, newest_key: string|null, columns: number[]}} FailureGroup
 *
 * @typedef {object} Flow
 * @property {string} id
 * @property {string} sort
 * @property {string|null} name
 * @property {string|null} key
 * @property {Record<string, string>} [labels]
 * @property {string|null} state
 * @property {string} since
 * @property {Record<string, number>|null} counts
 * @property {string[]} pending
 * @property {{in_hand: string|null, waiting: number, oldest: string|null, done: number, sealed: boolean}} [queue]
 * @property {boolean} set_aside
 * @property {string} submitted
 * @property {string|null} ended
 *
 * @typedef {Row & {depth: number, children: number, ended_children: number}} TreeRow
 *
 * @typedef {object} Link
 * @property {string} from
 * @property {string} to
 * @property {string} why
 * @property {string} since
 *
 * @typedef {{cycle: Link[], victim: string}} Cycle
 *
 * @typedef {object} Verdict
 * @property {string} rule
 * @property {string|null} procedure
 * @property {string} since
 * @property {Record<string, string>} facts
 * @property {Cycle|null} deadlock
 * @property {string} text
 *
 * @typedef {object} Bar
 * @property {string} id
 * @property {string} what
 * @property {string|null} stage
 * @property {string|null} ending
 * @property {number|null} attempt
 * @property {string} from
 * @property {string} to
 * @property {number} ms
 * @property {number} count
 *
 * @typedef {object} Entry
 * @property {string} id
 * @property {number} number
 * @property {string} stage
 * @property {number} visit
 * @property {number} attempt
 * @property {string} ending
 * @property {unknown} error
 * @property {unknown} [note]
 * @property {{changed: boolean, size: number|null}} [value]
 * @property {boolean} stands
 * @property {string} queued
 * @property {string|null} admitted
 * @property {string} begun
 * @property {string} ended
 * @property {number} waited_ms
 * @property {number} took_ms
 *
 * @typedef {object} Waits
 * @property {string} id
 * @property {string} reason
 * @property {string} since
 * @property {string} next
 * @property {{place: number, of: number}|null} place
 * @property {{path: string, mode: string, holders: string[]}|null} lock
 * @property {{key: string, limit: number|null, used: number, rate?: LimitRate}|null} permit
 * @property {{done: number, total: number, running: number, held: number, named: string[]}|null} children
 * @property {{width: number, running: number, named: string[]}} [slot]
 * @property {Link[]} links
 * @property {{id: string, until: string, since: string}[]} ends
 * @property {number} behind
 * @property {Cycle[]} deadlocks
 * @property {boolean} truncated
 *
 * @typedef {{submitted: number, retries: number, panics: number, stages: {stage: string, runs: number, mean_ms: number, longest_ms: number}[]}} SinceStart
 *
 * @typedef {{path: string, holders: {id: string, mode: string, since: string|null}[], waiting: string[], waiters: {id: string, mode: string, since: string|null}[]}} LockUse
 * @typedef {{begins: number, per_ms: number, begun: number, free_at: string|null}} LimitRate
 * @typedef {{key: string, limit: number|null, used: number, rate?: LimitRate, waiting: number, had_to_wait: number}} Limit
 * @typedef {{window_ms: number, started: number, ended: number, failed: number}} Rate
 * @typedef {{kind: string, registered: boolean, starts_with?: 'value'|'params'|null, states: Record<string, number>, versions?: Record<string, number>, machine_versions?: {version: string|null, starts: boolean}[]|null, paused?: boolean, since_start?: SinceStart|null, last_minute?: Rate}} KindUse
 *
 * @typedef {object} Act
 * @property {string} number
 * @property {string} at
 * @property {string} who
 * @property {string} why
 * @property {string} verb
 * @property {string|null} target
 * @property {{id: string, before: string, after: string}[]} changes
 * @property {number} changed
 * @property {string|null} submitted
 * @property {string|null} key
 */
export {};
