/** Parts of the page that few look at: each is fetched when it is opened. */
import { html, useEffect, useState } from './dom.js';

/** @param {() => Promise<(props: any) => import('./types.js').Node>} fetched */
export const late = (fetched) => function Late(/** @type {any} */ props) {
  const [Fetched, set] = useState(/** @type {null|((props: any) => import('./types.js').Node)} */ (null));
  useEffect(() => void fetched().then((part) => set(() => part)), []);
  return Fetched && html`<${Fetched} ...${props} />`;
};
