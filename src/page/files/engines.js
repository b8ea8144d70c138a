/** The engines of the host, as a menu: each leads to the same screen of its own page. */
import { html } from './dom.js';
import { root } from './api.js';

/** @typedef {{name: string, url: string}} Engine */

/** The mount of an engine. @param {Engine} engine */
const mountOf = ({ url }) => {
  const mount = new URL(url, location.origin);
  if (!mount.pathname.endsWith('/')) mount.pathname += '/';
  return mount;
};

/** The same screen of another mount: ids are those of this engine, so one procedure leads to the list. @param {URL} mount */
function sameScreen(mount) {
  const [screen = '', id] = location.pathname.slice(root.length).split('/');
  return mount.href + screen + (id ? '' : location.search);
}

/** @param {{engines: Engine[]}} props */
export function Engines({ engines }) {
  const mounts = engines.map(mountOf);
  const here = mounts.findIndex((mount) => mount.origin === location.origin && mount.pathname === root);
  return html`
    <label class="engines"><span class="dim">Engine</span>
      <select value=${String(here)} title="The same screen of another engine" onChange=${(/** @type {any} */ event) => {
        const mount = mounts[Number(event.target.value)];
        // A page that the browser shows again later is of this engine still.
        event.target.value = String(here);
        if (mount) location.assign(sameScreen(mount));
      }}>
        ${here < 0 && html`<option value="-1">this one</option>`}
        ${engines.map(({ name }, at) => html`<option key=${name} value=${String(at)} selected=${at === here}>${name}</option>`)}
      </select></label>`;
}
