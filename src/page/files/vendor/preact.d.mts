export function h(type: unknown, props: unknown, ...children: unknown[]): unknown;
export function render(node: unknown, parent: Element): void;
export const Fragment: unknown;
export function createContext<T>(value: T): { Provider: unknown; value: T };
