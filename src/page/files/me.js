/** Who looks, and what they may do: buttons of all else are not there. */
import { createContext } from './vendor/preact.mjs';
import { useContext } from './vendor/hooks.mjs';

export const Me = createContext(/** @type {import('./types.js').Me|null} */ (null));

export const useMe = () => useContext(Me);

/** Tells which rights there are. */
export function useRights() {
  const me = useMe();
  return (/** @type {import('./types.js').Right} */ right) => me?.rights.includes(right) ?? false;
}
