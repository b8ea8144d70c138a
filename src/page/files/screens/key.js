/** What was submitted with an idempotency key: its address leads on to that of the procedure. */
import { html, useEffect } from '../dom.js';
import { useLoad } from '../load.js';
import { At, Empty, Shown } from '../parts.js';
import { go, pageOf } from '../router.js';

/** @param {{text: string}} props */
export function ByKey({ text }) {
  const loaded = useLoad('find', { key: text });
  const found = loaded.data;
  useEffect(() => {
    if (found?.procedure) go(pageOf(found.id), true);
  }, [found]);
  return html`
    <div class="screen">
      <${Shown} loaded=${loaded} what=${`the key ${text}`}>${found && !found.procedure && html`
        <${Empty}>The key <bdi class="mono">${text}</bdi> stands for ${found.id}, which has ended, and its result has gone.
          ${found.key_until && html` The key is kept until <${At} time=${found.key_until} />.`}<//>`}<//>
    </div>`;
}
