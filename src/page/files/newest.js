/** Requests of a form that changes while they are answered: only the newest one may tell what it found. */

/**
 * Returns two functions. `overtake` makes all requests before it too late, and returns whether none overtook it since.
 * `attempt` does that, too, and runs a request: it tells whether one runs, and the error of the newest.
 * @template E
 * @param {{setBusy: (isBusy: boolean) => void, setError: (error: E|null) => void, worded: (found: unknown) => E}} how
 *   `worded` makes an error that can be shown, or throws what it does not know.
 */
export function newest({ setBusy, setError, worded }) {
  let last = 0;
  const overtake = () => {
    last += 1;
    const mine = last;
    return () => mine === last;
  };
  const attempt = async (/** @type {(isLatest: () => boolean) => Promise<void>} */ work) => {
    const isLatest = overtake();
    setBusy(true);
    setError(null);
    try {
      await work(isLatest);
    } catch (found) {
      const error = worded(found);
      if (isLatest()) setError(error);
    } finally {
      if (isLatest()) setBusy(false);
    }
  };
  return { overtake, attempt };
}
