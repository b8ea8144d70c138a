/** Parts of the page that few look at: each is fetched when it is opened. */
import { root } from './api.js';
import { html, useEffect, useState } from './dom.js';

/** @param {() => Promise<(props: any) => import('./types.js').Node>} fetched @param {string} [meanwhile] What is said until it is there. */
export const late = (fetched, meanwhile) => function Late(/** @type {any} */ props) {
  const [Fetched, set] = useState(/** @type {null|((props: any) => import('./types.js').Node)} */ (null));
  useEffect(() => void fetched().then((part) => set(() => part)), []);
  return Fetched ? html`<${Fetched} ...${props} />` : meanwhile && html`<p class="empty">${meanwhile}</p>`;
};

/** Fetches the styles of such a part. @param {string} name */
export const styles = (name) => new Promise((done) => {
  const link = Object.assign(document.createElement('link'), { rel: 'stylesheet', href: `${root}css/${name}.css`, onload: done, onerror: done });
  document.head.append(link);
});
