/** Parts of the page that few look at: each is fetched when it is opened. */
import { root } from './api.js';
import { html, useEffect, useState } from './dom.js';

/** @param {() => Promise<(props: any) => import('./types.js').Node>} fetched @param {string} [meanwhile] What is said until it is there. */
export const late = (fetched, meanwhile) => function Late(/** @type {any} */ props) {
  const [Fetched, set] = useState(/** @type {null|((props: any) => import('./types.js').Node)} */ (null));
  useEffect(() => void fetched().then((part) => set(() => part)), []);
  return Fetched ? html`<${Fetched} ...${props} />` : meanwhile && html`<p class="empty">${meanwhile}</p>`;
};

/** Style sheets that were asked for, by path. @type {Map<string, Promise<unknown>>} */
const sheets = new Map();

/** Fetches the styles of such a part, once. @param {string} path */
export function styles(path) {
  const sheet = sheets.get(path) ?? new Promise((done) => {
    document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href: root + path, onload: done, onerror: done }));
  });
  sheets.set(path, sheet);
  return sheet;
}
