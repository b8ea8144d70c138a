/**
 * JSON whose numbers keep their own digits. `JSON.parse` makes a whole number beyond 2^53 another one, and so does a value
 * that is read, changed by hand and sent back. Browsers tell a number's own text only since 2023 to 2025 (the third argument
 * of a reviver), so the text is marked before it is parsed.
 */

/** A number that is not read as a `number`, because that would have other digits. */
export class Digits {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }

  valueOf() {
    return Number(this.text);
  }

  /** Marked as what `written` puts in place of a text. */
  toJSON() {
    return MARK + this.text;
  }
}

/** What begins no text of anybody else: nobody can know it before the page is loaded. */
const MARK = `${Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16)).join('-')} `;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** A whole number that would have other digits as a `number`. @param {string} text */
const isRounded = (text) => /^-?\d{16,}$/.test(text) && String(Number(text)) !== text;

/**
 * Reads JSON. Numbers that `keeps` names by their text become `Digits`: of what the API sends, whole numbers that would be
 * rounded.
 * @param {string} text @param {(number: string) => boolean} [keeps]
 * @returns {any}
 */
export function parsed(text, keeps = isRounded) {
  // What is no JSON is none for this, too, and the place of the error is that in the text as it stands.
  const plain = JSON.parse(text);
  let isMarked = false;
  const marked = text.replace(TOKENS, (token) => {
    if (token.startsWith('"') || !keeps(token)) return token;
    isMarked = true;
    return `"${MARK}${token}"`;
  });
  if (!isMarked) return plain;
  return JSON.parse(marked, (_, value) => (typeof value === 'string' && value.startsWith(MARK) ? new Digits(value.slice(MARK.length)) : value));
}

/** Writes JSON, each number with its own digits. @param {unknown} value @param {number} [indent] @returns {string} */
export const written = (value, indent) => (JSON.stringify(value, null, indent) ?? '').replace(MARKED, '$1');
