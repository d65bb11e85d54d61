// What the door says of the cluster, asked again each second while somebody looks.
import { signal, useEffect, useState } from "./lib.js";
import { get, refused } from "./api.js";

export const live = signal(true);
/** The last overview; `null` before the first. */
export const seen = signal(/** @type {any} */ (null));
/** Why the door gives no answer, if so; since when. */
export const lost = signal(/** @type {{why: string, since: number}|null} */ (null));

/** The nodes of all clusters that an overview tells of. @param {any} overview @returns {any[]} */
export const nodesOf = (overview) => overview?.clusters.flatMap((cluster) => cluster.nodes) ?? [];

/** The actors of a node, if it has told them. @param {any} node @returns {number|null} */
export const activeOn = (node) => (node.answers ? node.shards.reduce((all, shard) => all + shard.activations, 0) : null);

async function look() {
  if (document.hidden || !live.value || refused.value !== null) return;
  try {
    seen.value = await get(`/-/overview?seconds=${SECONDS}`);
    lost.value = null;
  } catch (error) {
    if (refused.value === null) lost.value = { why: String(error.message), since: lost.value?.since ?? Date.now() };
  }
}

export async function begin() {
  await look();
  setTimeout(begin, 1000);
}

/** What stands at `url`, asked again every `seconds`. @param {string} url @param {number} [seconds] */
export function useAnswer(url, seconds = 2) {
  const [state, set] = useState(/** @type {{body?: any, error?: string}} */ ({}));
  useEffect(() => {
    let over = false;
    let timer = 0;
    const again = async () => {
      if (!document.hidden && live.value) {
        try { const body = await get(url); if (!over) set({ body }); }
        catch (error) { if (!over) set((old) => ({ ...old, error: String(error.message) })); }
      }
      if (!over) timer = setTimeout(again, seconds * 1000);
    };
    set({});
    again();
    return () => { over = true; clearTimeout(timer); };
  }, [url, seconds]);
  return state;
}

/** How much of the past is shown: what nodes keep by the second. */
const SECONDS = 300;
