/** Labels of a procedure, as rows show them and as a filter asks for them. */

/** Writes a value of a filter so that it is read as one. @param {string} text */
export const quoted = (text) => (/[\s"\\,:]/.test(text) ? `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : text);

/** @param {{labels?: Record<string, string>}} row */
export const labelsOf = (row) => Object.entries(row.labels ?? {}).map(([name, value]) => ({
  name, value, text: `${name}=${value}`, filter: `label:${quoted(`${name}=${value}`)}`,
}));

/**
 * What admits those that wait for a permit of a limit. Its name may be one of its own, by which no filter finds: then all
 * that wait for any permit are listed.
 * @param {string} name @param {{kind: string, registered: boolean}[]} kinds
 */
export const waitersOf = (name, kinds) => (kinds.some(({ kind, registered }) => registered && kind === name) ? `reason:permit kind:${quoted(name)}` : 'reason:permit');
