// Where the page is: all of it stands in the URL behind `#`.
import { signal } from "./lib.js";

/** @param {string} hash */
function read(hash) {
  const [place, chosen] = hash.replace(/^#\/?/, "").split("?");
  const parts = place.split("/");
  const decoded = parts.map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { page: decoded[0] || "overview", rest: decoded.slice(1), chosen: Object.fromEntries(new URLSearchParams(chosen)) };
}

export const route = signal(read(location.hash));
addEventListener("hashchange", () => {
  route.value = read(location.hash);
  document.querySelector("main")?.focus();
});

/** A link into the page. @param {...string} parts */
export const to = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

/** @param {...string} parts */
export function go(...parts) { location.hash = to(...parts); }

/** Chooses by these what the page shows; an empty text chooses nothing. @param {Record<string, string>} more */
export function choose(more) {
  const { page, rest, chosen } = route.value;
  const left = Object.entries({ ...chosen, ...more }).filter(([, value]) => value !== "");
  const query = left.length ? `?${new URLSearchParams(left)}` : "";
  history.replaceState(null, "", `${to(page, ...rest)}${query}`);
  route.value = read(location.hash);
}
