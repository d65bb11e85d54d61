// Where the page is: all of it stands in the URL behind `#`.
import { signal } from "./lib.js";

/** @param {string} hash */
function read(hash) {
  const parts = hash.replace(/^#\/?/, "").split("?")[0].split("/");
  const decoded = parts.map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { page: decoded[0] || "overview", rest: decoded.slice(1) };
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
