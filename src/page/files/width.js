/** How wide the window is, for what a style sheet cannot change by itself. */
import { useEffect, useState } from './dom.js';

/** Whether the window is of this width at most. @param {number} most In pixels. */
export function useWidth(most) {
  const [is, set] = useState(() => matchMedia(`(max-width: ${most}px)`).matches);
  useEffect(() => {
    const query = matchMedia(`(max-width: ${most}px)`);
    const turn = () => set(query.matches);
    turn();
    query.addEventListener('change', turn);
    return () => query.removeEventListener('change', turn);
  }, [most]);
  return is;
}
