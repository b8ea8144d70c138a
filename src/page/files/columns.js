/** The menu of a table's columns: which are shown, and by which its rows are sorted. It is fetched when it is opened. */
import { html, useEffect, useRef } from './dom.js';

/**
 * @param {{all: import('./table.js').Column<any>[], chosen: string[], usual: string[], onChoose: (names: string[]) => void,
 *   sorted: import('./sort.js').Sorted, onClose: () => void}} props
 */
export function Columns({ all, chosen, usual, onChoose, sorted, onClose }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => {
    box.current?.querySelector('input')?.focus();
    const away = (/** @type {PointerEvent} */ event) => {
      if (event.target instanceof Node && !box.current?.parentElement?.contains(event.target)) onClose();
    };
    document.addEventListener('pointerdown', away);
    return () => document.removeEventListener('pointerdown', away);
  }, []);
  const isLast = chosen.length === 1;
  const turn = (/** @type {string} */ name) => onChoose(all.map((column) => column.name).filter((each) => (each === name ? !chosen.includes(each) : chosen.includes(each))));
  const close = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    onClose();
  };
  return html`
    <div class="drop columns" role="group" aria-label="Columns" ref=${box} onKeyDown=${close}>
      ${all.map(({ name }) => html`<label class="flag" key=${name}><input type="checkbox" checked=${chosen.includes(name)} disabled=${isLast && chosen.includes(name)} onChange=${() => turn(name)} /> ${name}</label>`)}
      <button type="button" onClick=${() => onChoose(usual)}>The usual ones</button>
      <label class="flag"><span class="dim">Sorted by</span>
        <select aria-label="Sorted by" value=${sorted.by ?? ''} onChange=${(/** @type {any} */ event) => sorted.set(event.target.value, sorted.isDown)}>
          <option value="">the newest first</option>
          ${all.filter(({ name, sort }) => sort && chosen.includes(name)).map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select></label>
      <label class="flag"><input type="checkbox" checked=${sorted.isDown} disabled=${!sorted.by} onChange=${() => sorted.set(sorted.by ?? '', !sorted.isDown)} /> the greatest first</label>
    </div>`;
}
