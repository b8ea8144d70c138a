/** The server's time: ages count to it, whatever this machine's clock says. */
import { useEffect, useState } from './dom.js';

let offset = 0;

/** Takes the time of an answer. @param {string|undefined} now */
export function sync(now) {
  const time = now ? Date.parse(now) : NaN;
  if (Number.isFinite(time)) offset = time - Date.now();
}

/** Milliseconds since 1970, by the server's clock. */
export const now = () => Date.now() + offset;

/** @type {Set<() => void>} */
const watchers = new Set();
let timer = 0;

function tick() {
  for (const watcher of watchers) watcher();
}

/** Renders once a second while the page is seen; gives the time. */
export function useNow() {
  const [, set] = useState(0);
  useEffect(() => {
    const again = () => {
      if (!document.hidden) set((count) => count + 1);
    };
    watchers.add(again);
    if (!timer) timer = window.setInterval(tick, 1000);
    return () => {
      watchers.delete(again);
      if (watchers.size === 0) {
        window.clearInterval(timer);
        timer = 0;
      }
    };
  }, []);
  return now();
}
