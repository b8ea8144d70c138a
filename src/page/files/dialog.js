/** A dialog: the browser's own, so that focus stays within. Esc closes it. */
import { html, useEffect, useRef } from './dom.js';

/** The heading of the dialog that is open names it; there is one at a time. */
const NAME = 'dialog-name';

/** @param {{title: import('./types.js').Node, onClose: () => void, wide?: boolean, children?: import('./types.js').Node}} props */
export function Dialog({ title, onClose, wide, children }) {
  const box = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const onClick = (/** @type {MouseEvent} */ event) => {
    if (event.target === box.current) onClose();
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Escape') return;
    // The browser would hide it first and say so later: a key between the two, for the same dialog again, was lost.
    event.preventDefault();
    onClose();
  };
  return html`
    <dialog ref=${box} class=${wide ? 'wide' : ''} aria-labelledby=${NAME} onClose=${onClose} onKeyDown=${onKeyDown} onMouseDown=${onClick}>
      <div class="sheet">
        <header><h2 id=${NAME}>${title}</h2><button type="button" class="plain" aria-label="Close" onClick=${onClose}>Esc</button></header>
        ${children}
      </div>
    </dialog>`;
}
