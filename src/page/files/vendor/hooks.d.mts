export function useState<T>(start: T | (() => T)): [T, (next: T | ((old: T) => T)) => void];
export function useEffect(effect: () => unknown, inputs?: unknown[]): void;
export function useLayoutEffect(effect: () => unknown, inputs?: unknown[]): void;
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
export function useRef<T>(start: T): { current: T };
export function useCallback<T extends Function>(call: T, inputs: unknown[]): T;
export function useContext<T>(context: { value: T }): T;
