/** Times, durations and numbers as people read them. */

/** @param {number} ms */
export function duration(ms) {
  const time = Math.max(0, ms);
  if (time < 1000) return `${time < 10 ? Math.round(time * 10) / 10 : Math.round(time)} ms`;
  if (time < 10_000) return `${(time / 1000).toFixed(1)} s`;
  const seconds = Math.floor(time / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return pair(minutes, 'm', seconds % 60, 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return pair(hours, 'h', minutes % 60, 'm');
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

/** An age: whole seconds, so that it is calm. @param {number} ms */
export function age(ms) {
  return ms < 1000 ? 'now' : duration(Math.floor(ms / 1000) * 1000).replace('.0 s', ' s');
}

/** @param {number} great @param {string} greatUnit @param {number} small @param {string} smallUnit */
function pair(great, greatUnit, small, smallUnit) {
  return small ? `${great} ${greatUnit} ${small} ${smallUnit}` : `${great} ${greatUnit}`;
}

const full = new Intl.DateTimeFormat(undefined, {
  year: 'numeric', month: 'short', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit',
  fractionalSecondDigits: 3, hourCycle: 'h23', timeZoneName: 'short',
});
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });

/** Date, time and zone. @param {string|number} time */
export const absolute = (time) => full.format(new Date(time));

/** The time of day; the day, too, if it is another one. @param {string|number} time @param {number} at */
export function hour(time, at) {
  const date = new Date(time);
  const text = clock.format(date);
  return new Date(at).toDateString() === date.toDateString() ? text : `${day.format(date)}, ${text}`;
}

/** @param {number} number */
export const count = (number) => number.toLocaleString('en-US');

/** @param {number} number @param {string} one @param {string} [many] */
export const several = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** @param {number | null} size nothing where it is not known */
export function bytes(size) {
  if (size === null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let rest = size;
  let at = 0;
  while (rest >= 1024 && at < units.length - 1) {
    rest /= 1024;
    at += 1;
  }
  return `${at === 0 || rest >= 100 ? Math.round(rest) : rest.toFixed(1)} ${units[at]}`;
}

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** Puts the reader's clock in place of instants in the engine's sentences. @param {string} text @param {number} at */
export const local = (text, at) => text.replace(INSTANT, (time) => hour(time, at));

/** Begins with a capital. @param {string} text */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Ids in order: by family, then member. @param {string} one @param {string} other */
export function byId(one, other) {
  const [a = 0, b = 0] = one.split('.').map(Number);
  const [c = 0, d = 0] = other.split('.').map(Number);
  return a - c || b - d;
}

/** Newest families first, the members of each in their order. @param {string} one @param {string} other */
export const newestFirst = (one, other) => parseInt(other, 10) - parseInt(one, 10) || byId(one, other);
