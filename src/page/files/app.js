/** The page: its frame, and which screen the address names. */
import { Asks } from './actions.js';
import { html, render, useEffect, useState } from './dom.js';
import { Banner, Rail, toggleTheme } from './frame.js';
import { Help } from './help.js';
import { SCREENS as KNOWN, startKeys } from './keys.js';
import { late } from './late.js';
import { startLive } from './live.js';
import { useLoad } from './load.js';
import { startRouter, useRoute } from './router.js';
import { Attention } from './screens/attention.js';
import { Audit } from './screens/audit.js';
import { ByKey } from './screens/key.js';
import { List } from './screens/list.js';
import { Procedure } from './screens/procedure.js';
import { Waits } from './screens/waits.js';
import { Me } from './me.js';

// Screens that few look at.
const Charts = late(() => import('./screens/charts.js').then((script) => script.Charts));
const Failures = late(() => import('./screens/failures.js').then((script) => script.Failures));
const Flows = late(() => import('./screens/flows.js').then((script) => script.Flows));
const Kinds = late(() => import('./screens/kinds.js').then((script) => script.Kinds));
const Limits = late(() => import('./screens/limits.js').then((script) => script.Limits));
const EngineScreen = late(() => import('./screens/engine.js').then((script) => script.EngineScreen));

/** @type {Record<string, (props: any) => import('./types.js').Node>} */
const SCREENS = { '': Attention, failures: Failures, procedures: List, waits: Waits, limits: Limits, flows: Flows, kinds: Kinds, 'kinds/charts': Charts, engine: EngineScreen, audit: Audit };


/** @param {{path: string, query: URLSearchParams}} props */
function Screen({ path, query }) {
  const [first = '', ...rest] = path.split('/');
  const id = rest.join('/');
  if (first === 'procedures' && id) {
    const numbers = /^(\d+)(\.\d+)?(?:\/)*$/.exec(id);
    if (!numbers) return html`<${ByKey} key=${id} text=${id.replace(/^key:/, '')} />`;
    const [, family, member = '.0'] = numbers;
    return html`<${Procedure} key=${family + member} id=${family + member} query=${query} />`;
  }
  const Shown = SCREENS[path] ?? SCREENS[first];
  if (!Shown) {
    return html`<div class="screen"><p class="empty">There is no screen of this name. <a href="./">See what needs you.</a></p></div>`;
  }
  return html`<${Shown} key=${first} query=${query} />`;
}

function App() {
  const route = useRoute();
  const [help, setHelp] = useState(false);
  const [said, say] = useState('');
  const me = useLoad('me', {}, { heard: (event, body) => event === 'engine' && me.patch((data) => ({ ...data, engine: body.engine })) });
  useEffect(() => {
    startKeys({
      help: () => setHelp((open) => !open),
      theme: toggleTheme,
      say: (text) => {
        say(text);
        window.setTimeout(() => say(''), 1_800);
      },
    });
  }, []);
  useEffect(() => {
    const [first = '', id] = route.path.split('/');
    const name = id ?? KNOWN.find((screen) => screen.path === first)?.name ?? 'Nothing here';
    document.title = `${name} · Procession`;
  }, [route.path]);
  return html`
    <${Me.Provider} value=${me.data}>
      <${Rail} path=${route.path} me=${me.data} onHelp=${() => setHelp(true)} />
      <${Asks} path=${route.path}><main id="main"><${Banner} me=${me} /><${Screen} ...${route} /></main><//>
      ${help && html`<${Help} onClose=${() => setHelp(false)} />`}
      <div class="toast" role="status" aria-live="polite">${said}</div>
    <//>`;
}

startRouter();
startLive();
const page = /** @type {HTMLElement} */ (document.getElementById('page'));
page.textContent = '';
render(html`<${App} />`, page);
