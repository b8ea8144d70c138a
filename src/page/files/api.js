/** Requests to the API, and what they are refused with. Every path is relative to the mount. */
import { sync } from './clock.js';
import { parsed, written } from './json.js';

/** The mount's address, with a slash at its end. */
export const root = new URL(document.baseURI).pathname;

/** A refusal, in the API's own words. */
export class Problem extends Error {
  /** @param {number} status @param {Record<string, any>} body */
  constructor(status, body) {
    super(String(body.detail ?? 'The dashboard does not answer.'));
    this.status = status;
    /** @type {string} */
    this.kind = String(body.kind ?? 'silent');
    /** @type {string} */
    this.remedy = String(body.remedy ?? 'See whether the process runs, and whether the network is there.');
    /** @type {number|null} */
    this.position = body.position ?? null;
    this.body = body;
  }
}

/** @param {string} path @param {Record<string, string|number|null|undefined>} [query] */
export function address(path, query = {}) {
  const words = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const tail = new URLSearchParams(words.map(([name, value]) => [name, String(value)])).toString();
  return `${root}api/v1/${path}${tail ? `?${tail}` : ''}`;
}

/** @param {Response} response @returns {Promise<any>} */
async function read(response) {
  const type = response.headers.get('content-type') ?? '';
  const body = type.includes('json') ? parsed(await response.text()) : { detail: `The answer was ${response.status}, and no JSON.` };
  if (!response.ok) throw new Problem(response.status, body);
  sync(body.now);
  return body;
}

/**
 * Reads one path.
 * @param {string} path
 * @param {Record<string, string|number|null|undefined>} [query]
 * @param {AbortSignal} [signal]
 */
export async function get(path, query, signal) {
  let response;
  try {
    response = await fetch(address(path, query), { signal, headers: { accept: 'application/json' } });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, {});
  }
  return read(response);
}

/**
 * Changes something, or says what that would do.
 * @param {string} path @param {Record<string, unknown>} body @param {boolean} [dry]
 */
export async function post(path, body, dry = false) {
  let response;
  try {
    response = await fetch(address(path, { dry_run: dry ? 'true' : null }), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-procession': '1' },
      body: written(body),
    });
  } catch {
    throw new Problem(0, {});
  }
  return read(response);
}

const LEAST = -(2n ** 63n);
const MOST = 2n ** 64n - 1n;

/** A number as it is sent: with the digits that were written, if the server reads them as they are. @param {string} text */
function keeps(text) {
  if (!Number.isFinite(Number(text))) throw new Problem(400, { detail: 'A number beyond 1.8 × 10^308 is too large to be sent.', remedy: 'Write a smaller number, or a text in quotes.' });
  if (/^-?\d+$/.test(text) && (BigInt(text) < LEAST || BigInt(text) > MOST)) throw new Problem(400, { detail: 'A whole number of more than 64 bits would be rounded.', remedy: 'Write a smaller number, or a text in quotes.' });
  return String(Number(text)) !== text;
}

/** Reads JSON that somebody wrote, to be sent with the same digits. @param {string} text @returns {unknown} */
export const exact = (text) => parsed(text, keeps);

/** Makes a key by which a repeat is known. */
export function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
