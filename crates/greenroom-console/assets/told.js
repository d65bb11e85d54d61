// Pages that the door tells again each second, over one connection. Where it does not, they are asked for instead.
import { listen, refused } from "./api.js";
import { effect } from "./lib.js";

/** @typedef {{took: (body: any) => void, failed: (why: string) => void}} Taker */
/** Who wants which page, by its URL. @type {Map<string, Set<Taker>>} */
const wanted = new Map();
/** What the door tells now. @type {Set<string>} */
let telling = new Set();
let ending = new AbortController();
let soon = 0;
/** When the door has told something last. */
let heard = 0;

/** Whether the door tells what stands at `url`, so that nobody need ask. @param {string} url */
export const isTold = (url) => telling.has(url) && Date.now() - heard < SILENCE;

/** Tells `taker` what stands at `url` whenever the door tells it. Returns what ends that. @param {string} url @param {Taker} taker */
export function want(url, taker) {
  if (!PAGES.test(url)) return () => {};
  const takers = wanted.get(url) ?? new Set();
  wanted.set(url, takers.add(taker));
  again();
  return () => {
    takers.delete(taker);
    if (takers.size === 0) wanted.delete(url);
    again();
  };
}

/** Begins anew, once all that a page wants is known. */
function again(after = 0) {
  clearTimeout(soon);
  soon = setTimeout(() => {
    ending.abort();
    telling = new Set();
    ending = new AbortController();
    follow(ending.signal);
  }, after);
}

/** @param {AbortSignal} end */
async function follow(end) {
  const urls = [...wanted.keys()].slice(0, VIEWS);
  if (urls.length === 0 || document.hidden || refused.value !== null) return;
  try {
    const views = urls.map((url) => encodeURIComponent(url.slice("/-/".length)));
    for await (const { event, data } of listen(`/-/live?views=${views.join(",")}`, end)) {
      telling = new Set(urls);
      heard = Date.now();
      if (event === "problem") wanted.get(`/-/${data.view}`)?.forEach((taker) => taker.failed(data.problem.detail));
      else wanted.get(`/-/${event}`)?.forEach((taker) => taker.took(data));
    }
  } catch { /* What follows says the same, whatever has ended it. */ }
  if (end.aborted) return;
  telling = new Set();
  again(RETRY);
}

document.addEventListener("visibilitychange", () => again());
effect(() => { if (refused.value === null) again(); });

/** Pages that can be told. */
const PAGES = /^\/-\/(overview|stage|findings|events|methods|turns|actors|topics|kinds|waits|status|pids|optimiser|inspect)\b/;
/** How many the door tells one client. */
const VIEWS = 8;
/** Milliseconds of silence after which the door is asked all the same. */
const SILENCE = 3000;
/** Milliseconds after which the door is asked again to tell. */
const RETRY = 10_000;
