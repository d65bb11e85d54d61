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
  const looks = (how.method ?? "GET") === "GET";
  if (answer.status === 401 || (answer.status === 403 && looks && url.startsWith("/-/"))) refused.value = body?.detail ?? "";
  return { status: answer.status, body, took: (performance.now() - begun) / 1000 };
}

/** What the door tells on one connection, each with its name. It ends when the door ends it, or by `end`.
 * @param {string} url @param {AbortSignal} end */
export async function* listen(url, end) {
  const headers = new Headers({ accept: "text/event-stream" });
  if (token) headers.set("authorization", `Bearer ${token}`);
  const answer = await fetch(url, { headers, credentials: "same-origin", cache: "no-store", signal: end });
  if (answer.status !== 200) throw new Error(`the door answers ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const one of events) {
      const lines = new Map(one.split("\n").map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]));
      if (lines.has("data")) yield { event: lines.get("event") ?? "", data: JSON.parse(lines.get("data")) };
    }
  }
}

/** Asks for JSON. @param {string} url */
export async function get(url) {
  const { status, body } = await ask(url);
  if (status !== 200) throw new Error(body?.detail ?? `the door answers ${status} to ${url}`);
  return body;
}
