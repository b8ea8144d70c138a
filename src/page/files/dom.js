/** What builds the page: preact, and htm, which writes its elements as templates. */
import { createContext, h, render, Fragment } from './vendor/preact.mjs';
import htm from './vendor/htm.mjs';

export { createContext, render, Fragment };
export { useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useContext } from './vendor/hooks.mjs';

/** @type {(strings: TemplateStringsArray, ...values: unknown[]) => import('./types.js').Node} */
export const html = htm.bind(/** @type {any} */ (h));
