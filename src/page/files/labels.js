/** Labels of a procedure, as rows show them and as a filter asks for them. */

/** Writes a value of a filter so that it is read as one. @param {string} text */
export const quoted = (text) => (/[\s"\\,:]/.test(text) ? `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : text);

/** @param {{labels?: Record<string, string>}} row */
export const labelsOf = (row) => Object.entries(row.labels ?? {}).map(([name, value]) => ({
  name, value, text: `${name}=${value}`, filter: `label:${quoted(`${name}=${value}`)}`,
}));
