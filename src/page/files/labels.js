/** Labels of a procedure, as rows show them and as a filter asks for them. */

/** Writes a value of a filter so that it is read as one. U+0085 is a blank to the server, and to `\s` it is not. @param {string} text */
export const quoted = (text) => (/[\s\u0085"\\,:]/.test(text) ? `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : text);

/** Returns `true` if a filter says anything of states; what stands between quotes says nothing. @param {string} filter */
export const namesStates = (filter) => /(^|\s)(state|failure):/.test(filter.replace(/"(?:[^"\\]|\\.)*"/gs, '""'));

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
