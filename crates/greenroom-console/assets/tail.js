// Turns as they end: the door tells at most 200 a second, and how many it has not shown.
import { html, useEffect, useState } from "./lib.js";
import { listen } from "./api.js";
import { clock, count, time } from "./format.js";
import { live, nodesOf, seen } from "./live.js";
import { choose, route, to } from "./route.js";
import { Choice, Table, actor, silence } from "./table.js";

/** What the door has told. @typedef {{turns: any[], missed: number, nodes: string[]|null, silent: any[], error?: string}} Told */
/** @type {Told} */
const NOTHING = { turns: [], missed: 0, nodes: null, silent: [] };

/** Follows what stands at `url`, while the page is live. @param {string} url @returns {Told} */
function useTail(url) {
  const [told, set] = useState(NOTHING);
  const going = live.value;
  useEffect(() => {
    if (!going) return () => {};
    const end = new AbortController();
    let kept = NOTHING;
    let drawn = 0;
    const show = () => { if (!drawn) drawn = requestAnimationFrame(() => { drawn = 0; set(kept); }); };
    const follow = async () => {
      for await (const { event, data } of listen(url, end.signal)) {
        if (event === "turn") kept = { ...kept, turns: [data, ...kept.turns.slice(0, KEPT - 1)] };
        else if (event === "missed") kept = { ...kept, missed: kept.missed + data.count };
        else if (event === "following") kept = { ...kept, nodes: data.nodes, silent: data.silent };
        else throw new Error(data.detail);
        show();
      }
      throw new Error("the door has ended it");
    };
    set(kept);
    follow().catch((error) => { if (!end.signal.aborted) { kept = { ...kept, error: `${error.message}; "Live" twice begins anew` }; show(); } });
    return () => { end.abort(); cancelAnimationFrame(drawn); };
  }, [url, going]);
  return told;
}

export function Tail() {
  const { kind = "", method = "", key = "", outcome = "", over = "", node = "" } = route.value.chosen;
  const asked = Object.entries({ kind, method, key, outcome, over, nodes: node }).filter(([, value]) => value !== "");
  const told = useTail(`/-/tail?${asked.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`);
  const kinds = [...new Set([...nodesOf(seen.value).flatMap((one) => Object.keys(one.kinds ?? {})), kind])].filter(Boolean).sort();
  const nodes = [...new Set([...nodesOf(seen.value).filter(({ status }) => status === "active").map(({ name }) => name), node])].filter(Boolean).sort();
  const field = (label, name, value, hint) => html`<label>${label}<input type="search" autocomplete="off" placeholder=${hint} value=${value} onChange=${(event) => choose({ [name]: event.currentTarget.value.trim() })} /></label>`;
  const more = told.missed ? `${count(told.missed)} more ended and are not shown. ` : "";
  return html`<${Table} title="Tail" sub=${told.nodes ? `turns of ${told.nodes.join(", ")} as they end, the last first` : "turns as they end"} heads=${["at", "node", "actor", "method", "went", "ran", "called by", "with"]}
    empty=${told.error ?? (live.value ? "No such turn has ended since the page is open." : "Stopped: \".\" goes on.")} note=${`${told.turns.length && told.error ? `${told.error}. ` : ""}${more}${silence(told.silent) ?? ""}`}
    rows=${told.turns.map((one) => [clock(one.at), one.node, actor(one.actor), html`<a class="mono" href=${to("kinds", one.actor.split("/")[0])}>${one.method}</a>`,
      html`<span class=${one.outcome === "ok" ? "good-text" : "bad-text"}>${one.outcome}</span>`, time(one.ran), actor(one.caller), html`<span class="mono">${one.error ?? ""}</span>`])}>
    <form class="filter" role="search" aria-label="Which turns" onSubmit=${(submit) => submit.preventDefault()}>
      <${Choice} name="Kind" value=${kind} pick=${(kind) => choose({ kind })} all="any" options=${kinds.map((one) => [one, one])} />
      ${field("Method", "method", method, "any")}${field("Key", "key", key, "any")}
      <${Choice} name="Went" value=${outcome} pick=${(outcome) => choose({ outcome })} all="anyhow" options=${OUTCOMES.map((one) => [one, one])} />
      ${field("Ran for", "over", over, "10ms")}
      <${Choice} name="Node" value=${node} pick=${(node) => choose({ node })} all="any node" options=${nodes.map((one) => [one, one])} /></form><//>`;
}

const OUTCOMES = ["ok", "failed", "error", "broken", "refused", "late"];
/** Turns that the page keeps. */
const KEPT = 300;
