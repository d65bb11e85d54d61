// What the door says, asked again each second while somebody looks.
import { signal, useEffect, useState } from "./lib.js";
import { get, refused } from "./api.js";
import { overview } from "./overview-model.js";

export const live = signal(true);
/** The last answers, in the shape of an overview; `null` before the first. */
export const seen = signal(/** @type {any} */ (null));
/** Why the door gives no answer, if so; since when. */
export const lost = signal(/** @type {{why: string, since: number}|null} */ (null));

async function look() {
  if (document.hidden || !live.value || refused.value !== null) return;
  try {
    // A node whose optimiser is off has moved nothing.
    const asked = [get("/-/status"), get("/-/methods"), get("/-/waits?over=2s"), get("/-/optimiser/moves").catch(() => [])];
    const [status, methods, waits, moves] = await Promise.all(asked);
    seen.value = overview(status, methods, waits, moves ?? [], Date.now());
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
