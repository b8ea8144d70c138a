/** Reads a path for a screen, and again when something that it shows has changed. */
import { useCallback, useEffect, useRef, useState } from './dom.js';
import { get, Problem } from './api.js';
import { follow, hear, noteRead } from './live.js';

/**
 * @typedef {object} Loaded
 * @property {any} data What was read last; null before that.
 * @property {Problem|null} error Why it could not be read the last time.
 * @property {() => void} reload
 * @property {(change: (data: any) => any) => void} patch Changes what is shown without reading.
 */

/**
 * @param {string|null} path Nothing is read without one.
 * @param {Record<string, string|number|null|undefined>} [query]
 * @param {{on?: string[], pause?: number, filter?: string, heard?: (event: string, body: any) => unknown}} [how]
 *   Events after which it is read anew, not more often than every `pause` milliseconds; the
 *   filter of the stream, if this is what the screen is about; what hears events, and returns
 *   `true` for one that cannot be patched in, so that it is read anew.
 * @returns {Loaded}
 */
export function useLoad(path, query = {}, how = {}) {
  const { on = [], pause = 1_000, filter } = how;
  const key = path === null ? '' : `${path}?${JSON.stringify(query)}`;
  const [state, set] = useState(/** @type {{key: string, data: any, error: Problem|null}} */ ({ key: '', data: null, error: null }));
  const latest = useRef({ key, query, heard: how.heard, timer: 0, at: 0, isGoing: false, isStale: false });
  latest.current.key = key;
  latest.current.query = query;
  latest.current.heard = how.heard;

  const load = useCallback(async () => {
    const mine = latest.current;
    if (path === null) return;
    // What is being read may be from before the change that asks for it again.
    if (mine.isGoing) {
      mine.isStale = true;
      return;
    }
    const { key: asked } = mine;
    mine.isGoing = true;
    mine.isStale = false;
    mine.at = Date.now();
    try {
      const data = await get(path, mine.query);
      noteRead(true);
      if (mine.key === asked) {
        set({ key: asked, data, error: null });
        if (filter !== undefined) follow(filter, data.as_of);
      }
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.status === 0 || error.status >= 500) noteRead(false);
      if (mine.key === asked) set((old) => ({ key: asked, data: old.key === asked ? old.data : null, error }));
    } finally {
      mine.isGoing = false;
      if (mine.key !== asked || mine.isStale) soon();
    }
  }, [key, filter]);

  const soon = useCallback(() => {
    const mine = latest.current;
    if (mine.timer) return;
    const wait = Math.max(0, mine.at + pause - Date.now());
    mine.timer = window.setTimeout(() => {
      mine.timer = 0;
      load();
    }, wait);
  }, [load, pause]);

  useEffect(() => {
    load();
    const silence = hear((event, body) => {
      const isPartial = latest.current.heard?.(event, body) === true;
      if (isPartial || event === 'again' || on.includes(event)) soon();
    });
    return () => {
      silence();
      window.clearTimeout(latest.current.timer);
      latest.current.timer = 0;
    };
  }, [load, soon]);

  const patch = useCallback((/** @type {(data: any) => any} */ change) => {
    set((old) => (old.data === null ? old : { ...old, data: change(old.data) }));
  }, []);

  const isMine = state.key === key;
  return { data: isMine ? state.data : null, error: isMine ? state.error : null, reload: load, patch };
}
