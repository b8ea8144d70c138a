/** All keys, and the words of filters. */
import { html } from './dom.js';
import { Dialog } from './dialog.js';
import { KEYS } from './keys.js';

const TERMS = [
  ['state:waiting', 'that state; also live, ended, retrying, rolling_back'],
  ['reason:lock,permit', 'why it does not run'],
  ['kind:create_table', 'that type'],
  ['key:req-', 'keys that begin so'],
  ['age:>10m  since:>1h', 'how old; how long as it is'],
  ['attempts:>3', 'failed attempts of the stage'],
  ['err:timeout', 'causes that contain this'],
  ['root:42', 'one family'],
  ['rule:S2', 'those of whom a verdict tells'],
  ['req-4', 'ids and keys that begin so'],
  ['who:ann', 'in the audit; also verb: and target:'],
];

/** @param {{onClose: () => void}} props */
export const Help = ({ onClose }) => html`
  <${Dialog} title="Keys and filters" onClose=${onClose} wide>
    <div class="helps">
      <dl>${KEYS.map(({ keys, does }) => html`<dt>${keys.split(/\s+/).map((key) => html`<kbd>${key}</kbd>`)}</dt><dd>${does}</dd>`)}</dl>
      <dl>${TERMS.map(([term, does]) => html`<dt><code>${term}</code></dt><dd>${does}</dd>`)}</dl>
    </div>
  <//>`;
