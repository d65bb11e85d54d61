// The door. A token is kept in memory alone, and travels as a header.
import { signal } from "./lib.js";

/** Whether the door wants to know who asks; why, in its words. */
export const refused = signal(/** @type {string|null} */ (null));
let token = "";

/** Takes a token out of the URL, as `greenroom console` puts it there, before anybody sees it. */
export function takeToken() {
  const given = /^#token=(.+)$/.exec(location.hash);
  if (!given) return;
  token = decodeURIComponent(given[1]);
  history.replaceState(null, "", location.pathname);
}

/** @param {string} text */
export function useToken(text) { token = text.trim(); refused.value = null; }

/** @param {string[]} parts a path's, not yet encoded */
export const path = (...parts) => `/${parts.map(encodeURIComponent).join("/")}`;

/** Asks the door. Resolves also where it refuses: `status` says so.
 * @param {string} url @param {RequestInit} [how]
 * @returns {Promise<{status: number, body: any, took: number}>} */
export async function ask(url, how = {}) {
  const headers = new Headers(how.headers);
  if (token) headers.set("authorization", `Bearer ${token}`);
  const begun = performance.now();
  const answer = await fetch(url, { ...how, headers, credentials: "same-origin", cache: "no-store" });
  const text = await answer.text();
  let body = null;
  try { body = text === "" ? null : JSON.parse(text); } catch { body = text; }
  if (answer.status === 401 || (answer.status === 403 && url.startsWith("/-/"))) refused.value = body?.detail ?? "";
  return { status: answer.status, body, took: (performance.now() - begun) / 1000 };
}

/** Asks for JSON. @param {string} url */
export async function get(url) {
  const { status, body } = await ask(url);
  if (status !== 200) throw new Error(body?.detail ?? `the door answers ${status} to ${url}`);
  return body;
}
