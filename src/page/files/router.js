/** The address is the state: screens, filters and selections are in it. */
import { useEffect, useState } from './dom.js';
import { root } from './api.js';

/** @typedef {{path: string, query: URLSearchParams}} Route */

/** @type {Set<() => void>} */
const watchers = new Set();

/** @returns {Route} */
function read() {
  const path = location.pathname.startsWith(root) ? location.pathname.slice(root.length) : '';
  const asked = decodeURIComponent(path);
  // A key may end with a slash.
  const named = /^procedures\/./.test(asked) ? asked : asked.replace(/\/+$/, '');
  return { path: named, query: new URLSearchParams(location.search) };
}

function tell() {
  for (const watcher of [...watchers]) watcher();
}

/** Goes to a path below the mount. @param {string} to @param {boolean} [replace] */
export function go(to, replace = false) {
  const target = root + to;
  if (target === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', target);
  else history.pushState(null, '', target);
  tell();
}

/** Changes some words of the query; an empty one goes. @param {Record<string, string|string[]|null>} words @param {boolean} [replace] */
export function setQuery(words, replace = true) {
  const { path, query } = read();
  for (const [name, value] of Object.entries(words)) {
    query.delete(name);
    for (const each of [value ?? []].flat()) if (each) query.append(name, each);
  }
  go(path + (query.size ? `?${query}` : ''), replace);
}

/** @param {Route} route */
const addressOf = ({ path, query }) => `${path}?${query}`;

export function useRoute() {
  const [route, set] = useState(read);
  useEffect(() => {
    const again = () => set(read());
    watchers.add(again);
    // The address may have changed between the first drawing and now, when nobody heard of it.
    if (addressOf(read()) !== addressOf(route)) again();
    return () => {
      watchers.delete(again);
    };
  }, []);
  return route;
}

/** Where a procedure is shown. @param {string} id @param {string} [tab] */
export const pageOf = (id, tab) => `procedures/${id}${tab ? `?tab=${tab}` : ''}`;

/** Where a filter is shown. @param {string} filter */
export const listOf = (filter) => `procedures?${new URLSearchParams({ filter })}`;

export function startRouter() {
  addEventListener('popstate', tell);
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || link.target || link.origin !== location.origin || !link.pathname.startsWith(root)) return;
    if (link.hasAttribute('download')) return;
    event.preventDefault();
    go(link.pathname.slice(root.length) + link.search);
  });
}
