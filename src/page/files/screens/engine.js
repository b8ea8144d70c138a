/** The engine itself: its workers, its journal, and what its last start found. */
import { html, useState } from '../dom.js';
import { Ask } from '../actions.js';
import { useLoad } from '../load.js';
import { useRights } from '../me.js';
import { Empty, Head, Id, Shown } from '../parts.js';
import { Pulse } from '../pulse.js';
import { WIDE } from '../verbs.js';
import { bytes, count, duration, several } from '../words.js';

/** @typedef {{id: string, call: string, stage: string|null, time_ms: number}} Call @typedef {{worker: number, actors: number, waiting: number, extra: boolean, busy: Call|null, blocked: Call|null}} Worker */

/** @param {any} body */
function headline(body) {
  if (body.poisoned) return `The journal has failed: ${body.poisoned}. Nothing more is committed.`;
  if (body.draining) return 'It drains: no new stage starts.';
  if (body.paused.includes('everything')) return 'An operator has paused everything: no further stage starts.';
  const behind = Number(body.decided) - Number(body.durable);
  if (behind > 0) return `It runs; ${several(behind, 'commit')} wait for the disk.`;
  return 'It runs, and all that was decided is on disk.';
}

export function EngineScreen() {
  const loaded = useLoad('engine', {}, { on: ['gauges'], pause: 1_000, filter: 'root:0' });
  const may = useRights();
  const [open, set] = useState(/** @type {string|null} */ (null));
  const body = loaded.data;
  const isPaused = body?.paused.includes('everything') ?? false;
  const offered = Object.keys(WIDE).filter((name) => name !== 'limit' && may(/** @type {any} */ (WIDE[name]).right));
  return html`
    <div class="screen engine">
      <${Head} title="Engine" note=${body && headline(body)}>
        ${body && offered.filter((name) => name === 'drain' ? !body.draining : (name === 'resume') === isPaused).map((name) => html`<button type="button" key=${name} class=${WIDE[name]?.isGrave ? 'grave' : ''} onClick=${() => set(name)}>${WIDE[name]?.name}${name === 'drain' ? '' : ' all'}…</button>`)}
      <//>
      <${Shown} loaded=${loaded}>${body && html`
        <${Pulse} body=${body} />
        <div class="panels">
          <${Facts} title="Commits" facts=${[
            ['decided', body.decided], ['durable', body.durable], ['commits', count(body.commits)],
            ['batches', `${count(body.batches)} (${(body.commits / Math.max(1, body.batches)).toFixed(1)} commits each)`],
            body.last_batch && ['last batch', `${several(body.last_batch.commits, 'commit')}, ${duration(body.last_batch.took_ms)}`],
            ['epoch', body.epoch],
          ]} />
          <${Facts} title="Journal" facts=${[
            ['on disk', bytes(body.size_bytes)], ['appended', bytes(body.appended_bytes)], ['free on its disk', bytes(body.disk_free_bytes)],
            ...['commit_p99', 'sync_p50', 'sync_p99'].map((name) => [name.replace('_', ' '), took(body[`${name}_ms`])]), ['state', body.poisoned ? html`<span class="bad">failed</span>` : 'sound'],
          ]} />
          <${Facts} title="Work" facts=${[
            ['live families', count(body.live_families)], ['stages out', count(body.going)], ['actors', count(body.actors)],
            ['results that came late', count(body.late)], body.panics !== undefined && ['panics', body.panics ? html`<span class="bad">${body.panics}</span>` : '0'], ['lost wake-ups', body.lost_wakes ? html`<span class="bad">${body.lost_wakes}</span>` : '0'],
            ['paused', body.paused.length ? body.paused.join(', ') : 'nothing'], ['streams open', count(body.streams)],
          ]} />
          <${Facts} title="Waiting in mailboxes" facts=${[
            ['supervisor', count(body.mailboxes.supervisor)], ['limiter', count(body.mailboxes.limiter)], ['journal', several(body.mailboxes.journal, 'batch', 'batches')],
            ['reader', several(body.mailboxes.reader, 'read')], ['workers', several(body.mailboxes.workers, 'call')],
          ]} />
          <${Facts} title="Last start" facts=${[
            ['families found', count(body.recovered.families)], ['procedures', count(body.recovered.procedures)],
            ['quarantined', body.recovered.quarantined ? html`<span class="bad">${body.recovered.quarantined}</span>` : '0'],
            ['took', duration(body.recovered.took_ms)], ['of that to read', duration(body.recovered.read_ms)],
          ]} />
        </div>
        <h2>Workers</h2>
        <div class="scrolls"><table class="plain-table">
          <thead><tr><th>Worker</th><th>State</th><th>Procedure</th><th title="for this long at least">Busy for</th><th>Queue</th><th>Actors</th><th>Next</th></tr></thead>
          <tbody>${body.workers.map(worker)}</tbody>
        </table></div>
        <h2>Quarantined families</h2>
        ${body.quarantined.length === 0
          ? html`<${Empty}>No family is set aside.<//>`
          : html`<p class="ids">${body.quarantined.map((/** @type {string} */ id) => html`<${Id} key=${id} id=${id} />`)}</p>`}
      `}<//>
      ${open && html`<${Ask} key=${open} verb=${WIDE[open]} path=${`engine/${open}`} target=${{ id: 'the engine', kind: 'the engine' }} onClose=${() => { set(null); loaded.reload(); }} />`}
    </div>`;
}

/** @param {number|null|undefined} ms */
const took = (ms) => (typeof ms === 'number' ? duration(ms) : '–');

/** @param {Call} of */
const called = ({ call, stage }) => (call === 'stage' ? `stage ${stage}` : `${call}${stage ? ` of stage ${stage}` : ''}`);

/** @param {Worker} each */
function worker(each) {
  const { blocked } = each;
  const call = blocked ?? each.busy;
  return html`
    <tr key=${each.worker}>
      <th scope="row">${each.worker}${each.extra && html` <span class="tag">extra</span>`}</th>
      <td>${call ? html`${blocked ? html`<span class="bad">blocked</span>` : 'busy'} in ${called(call)}` : 'answers'}</td>
      <td>${call ? html`<${Id} id=${call.id} />` : '–'}</td>
      <td>${call ? duration(call.time_ms) : '–'}</td>
      <td>${each.waiting ? several(each.waiting, 'call') : 'nothing'}</td>
      <td>${count(each.actors)}</td>
      <td class="next">${blocked ? 'another worker is added when half of them are blocked' : 'takes the next stage that is ready'}</td>
    </tr>`;
}

/** @param {{title: string, facts: ([string, any]|false|undefined|null)[]}} props */
const Facts = ({ title, facts }) => html`
  <section class="panel"><h2>${title}</h2><dl>${facts.filter((fact) => Array.isArray(fact)).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>`;
