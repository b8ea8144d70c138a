/**
 * What changes, as it changes: one stream for the tab, closed while nobody looks. Where streams
 * fail, screens read again every five seconds. Screens hear `change`, `verdict`, `limits`, `gauges`
 * and `engine` as the API sends them, and `again` when they are to read anew.
 */
import { useEffect, useState } from './dom.js';
import { address, freshKey, get, Problem } from './api.js';
import { now, sync } from './clock.js';
import { parsed } from './json.js';

const POLL = 5_000;
const RETRY = 15_000;
/** Pings come every second: after this long without a word the process is asked whether it lives. */
const SILENT = 1_500;
/** How long it may take to say so. The page tells within three seconds that nothing answers. */
const PATIENCE = 1_000;
const WATCH = 500;
const TOLD = ['change', 'verdict', 'limits', 'gauges', 'engine'];

/** @typedef {'live'|'reconnecting'|'polling'|'stale'} Standing */
/** @typedef {(event: string, body: any) => void} Hears */

/** @type {Set<Hears>} */
const ears = new Set();
/** @type {Set<() => void>} */
const watchers = new Set();

const link = {
  /** @type {EventSource|null} */
  stream: null,
  /** @type {string|null} */
  filter: null,
  isOpen: false,
  isFailing: false,
  heard: 0,
  /** When something was read last, by the server's clock. */
  read: 0,
  polled: 0,
  opened: 0,
  watched: 0,
  isAsking: false,
};

const KEPT = 'procession.stream';
/** By this name the server knows the streams of this page: each takes the place of the one before it. */
const NAME = streamName();

/** A reload keeps the name; a copy of the tab does not, for the name is in the store only between two pages. */
function streamName() {
  try {
    const kept = sessionStorage.getItem(KEPT);
    sessionStorage.removeItem(KEPT);
    return kept ?? freshKey();
  } catch {
    return freshKey();
  }
}

function keepName() {
  try {
    sessionStorage.setItem(KEPT, NAME);
  } catch {
    // The next page has another name, then.
  }
}

/** @param {string} event @param {any} [body] */
function tell(event, body) {
  for (const ear of [...ears]) ear(event, body);
}

function show() {
  for (const watcher of [...watchers]) watcher();
}

/** @returns {Standing} */
function standing() {
  if (link.isFailing) return 'stale';
  if (link.isOpen) return 'live';
  return link.stream && Date.now() - link.opened < POLL ? 'reconnecting' : 'polling';
}

function close() {
  link.stream?.close();
  link.stream = null;
  link.isOpen = false;
}

/** @param {string} filter @param {string|null} from */
function open(filter, from) {
  close();
  const stream = new EventSource(address('events', { from, filter, name: NAME }));
  Object.assign(link, { stream, filter, opened: Date.now(), heard: Date.now() });
  const hear = () => {
    link.heard = Date.now();
    if (link.stream === stream && !link.isOpen) {
      link.isOpen = true;
      show();
    }
  };
  stream.addEventListener('open', hear);
  stream.addEventListener('ping', hear);
  for (const name of TOLD) {
    stream.addEventListener(name, (event) => {
      hear();
      const body = parsed(event.data);
      sync(body.now);
      link.read = now();
      tell(name, body);
    });
  }
  stream.addEventListener('resync', () => {
    hear();
    tell('again');
  });
  stream.addEventListener('bye', () => {
    close();
    show();
  });
  stream.addEventListener('error', () => {
    if (link.stream !== stream) return;
    link.isOpen = false;
    // The browser tries again by itself, unless the answer was a refusal.
    if (stream.readyState === EventSource.CLOSED) close();
    show();
  });
}

/** Follows what a filter admits from where a screen was read. @param {string} filter @param {string} from */
export function follow(filter, from) {
  const isGoing = link.stream && link.filter === filter;
  if (!isGoing && !document.hidden) open(filter, from);
}

/** A screen was read, or could not be. @param {boolean} isGood */
export function noteRead(isGood) {
  if (isGood) link.read = now();
  if (link.isFailing === isGood) {
    link.isFailing = !isGood;
    show();
  }
}

/** @param {Hears} ear */
export function hear(ear) {
  ears.add(ear);
  return () => {
    ears.delete(ear);
  };
}

/** How this page stands to the engine, and of when what it shows is. */
export function useLive() {
  const [, set] = useState(0);
  useEffect(() => {
    const again = () => set((times) => times + 1);
    watchers.add(again);
    return () => {
      watchers.delete(again);
    };
  }, []);
  return { standing: standing(), read: link.read };
}

/** Asks whether the process lives: it may be stopped with all its connections open, and a stream that fell silent does not say so. */
async function probe() {
  if (link.isAsking) return;
  link.isAsking = true;
  const { stream } = link;
  const lives = await get('me', {}, AbortSignal.timeout(PATIENCE)).then(() => true, (error) => error instanceof Problem && error.status > 0);
  link.isAsking = false;
  if (link.stream !== stream || document.hidden) return;
  if (lives) {
    link.heard = Date.now();
  } else {
    close();
    noteRead(false);
  }
}

function watch() {
  const at = Date.now();
  const wasStopped = at - link.watched > 4 * WATCH;
  link.watched = at;
  if (document.hidden) return;
  // What came while this page itself was stopped is heard next.
  if (wasStopped) link.heard = at;
  if (link.stream && at - link.heard > SILENT) probe();
  if (!link.isOpen && at - link.polled >= POLL) {
    link.polled = at;
    tell('again');
    if (!link.stream) probe();
    show();
  }
  if (!link.stream && link.filter !== null && at - link.opened > RETRY) open(link.filter, null);
}

export function startLive() {
  link.polled = Date.now();
  link.watched = Date.now();
  window.setInterval(watch, WATCH);
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      close();
    } else {
      // What is read now says where the stream goes on.
      tell('again');
    }
    show();
  });
  addEventListener('pagehide', () => {
    close();
    keepName();
  });
}
