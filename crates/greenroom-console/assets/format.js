// Figures and times in the words of the pages.

/** @param {number|null|undefined} n a count, as 84.1k */
export function count(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) return "–";
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)}M`;
  if (n >= 1e4) return `${(n / 1e3).toFixed(1)}k`;
  return n >= 100 || Number.isInteger(n) ? Math.round(n).toLocaleString("en") : n.toFixed(1);
}

/** Turns a second, which are 0 of who has too few to be counted. @param {number} n */
export const turns = (n) => (n > 0 ? count(n) : "few");

/** @param {number|null|undefined} s seconds, as 12.4 ms */
export function time(s) {
  if (s === null || s === undefined) return "–";
  if (s < 1e-3) return `${Math.round(s * 1e6)} µs`;
  if (s < 1) return `${(s * 1e3).toFixed(s < 0.1 ? 1 : 0)} ms`;
  if (s < 120) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  return s < 7200 ? `${Math.round(s / 60)} min` : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
}

/** @param {number|null|undefined} share of one, as 0.31 */
export const percent = (share) =>
  share === null || share === undefined ? "–" : (share * 100).toFixed(share < 0.0995 && share > 0 ? 2 : 0);

/** @param {number} at Unix milliseconds, as 14:02:17 */
export const clock = (at) => new Date(at).toLocaleTimeString("en-GB");

/** @param {number} at Unix milliseconds; with the day, if it is long ago */
export const when = (at) => (Date.now() - at < 72e6 ? clock(at) : new Date(at).toLocaleString("en-GB"));

/** @param {number} bytes */
export const bytes = (bytes) => `${(bytes / 1048576).toFixed(0)} MB`;

const HUES = ["green", "blue", "violet", "amber", "pink", "teal"];

/** The hue of a kind: the same on all pages, by its name alone.
 * @param {string} kind */
export function hue(kind) {
  let hash = 2166136261;
  for (const letter of kind) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619) >>> 0;
  return HUES[(hash >>> 8) % HUES.length];
}

/** What a hue is in the theme that is shown.
 * @param {string} name */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
