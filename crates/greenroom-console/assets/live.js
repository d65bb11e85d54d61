// What the door says of the cluster, told or asked again each second while somebody looks.
import { signal, useEffect, useState } from "./lib.js";
import { get, refused } from "./api.js";
import { isTold, want } from "./told.js";

export const live = signal(true);
/** The last overview; `null` before the first. */
export const seen = signal(/** @type {any} */ (null));
/** Why the door gives no answer, if so; since when. */
export const lost = signal(/** @type {{why: string, since: number}|null} */ (null));

/** The nodes of all clusters that an overview tells of. @param {any} overview @returns {any[]} */
export const nodesOf = (overview) => overview?.clusters.flatMap((cluster) => cluster.nodes) ?? [];

/** The actors of a node, if it has told them. @param {any} node @returns {number|null} */
export const activeOn = (node) => (node.answers ? node.shards.reduce((all, shard) => all + shard.activations, 0) : null);

function see(overview) {
  if (!live.value) return;
  seen.value = overview;
  lost.value = null;
}

async function look() {
  if (document.hidden || !live.value || refused.value !== null || isTold(OVERVIEW)) return;
  try {
    see(await get(OVERVIEW));
  } catch (error) {
    if (refused.value === null) lost.value = { why: String(error.message), since: lost.value?.since ?? Date.now() };
  }
}

async function watch() {
  await look();
  setTimeout(watch, 1000);
}

/** Looks from now on. */
export function begin() {
  want(OVERVIEW, { took: see, failed: () => {} });
  watch();
}

/** What stands at `url`, asked again every `seconds`, or told by the door if that is often. @param {string} url @param {number} [seconds] */
export function useAnswer(url, seconds = 2) {
  const [state, set] = useState(/** @type {{body?: any, error?: string}} */ ({}));
  useEffect(() => {
    let over = false;
    let timer = 0;
    const often = seconds <= OFTEN;
    const fail = (error) => { if (!over) set((old) => ({ ...old, error })); };
    const end = often ? want(url, { took: (body) => { if (!over && live.value) set({ body }); }, failed: fail }) : () => {};
    const again = async () => {
      if (!document.hidden && live.value && !isTold(url)) {
        try { const body = await get(url); if (!over) set({ body }); }
        catch (error) { fail(String(error.message)); }
      }
      if (!over) timer = setTimeout(again, seconds * 1000);
    };
    set({});
    again();
    return () => { over = true; clearTimeout(timer); end(); };
  }, [url, seconds]);
  return state;
}

/** With as much of the past as nodes keep by the second. */
const OVERVIEW = "/-/overview?seconds=300";
/** What is asked for so often, in seconds, the door tells. */
const OFTEN = 2;
