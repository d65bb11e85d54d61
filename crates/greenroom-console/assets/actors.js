// Actors that are active, page by page, and never all at once.
import { html } from "./lib.js";
import { count, time, turns } from "./format.js";
import { nodesOf, seen, useAnswer } from "./live.js";
import { choose, route } from "./route.js";
import { Choice, Table, actor, silence } from "./table.js";

export function Actors() {
  const { kind = "", node = "", order = "", prefix = "", after = "" } = route.value.chosen;
  const asked = Object.entries({ kind, node, order, prefix, after }).filter(([, value]) => value !== "");
  const { body, error } = useAnswer(`/-/actors?limit=${LIMIT}${asked.map(([name, value]) => `&${name}=${encodeURIComponent(value)}`).join("")}`, 3);
  const all = nodesOf(seen.value);
  const kinds = [...new Set([...all.flatMap((one) => Object.keys(one.kinds ?? {})), kind])].filter(Boolean).sort();
  const nodes = [...new Set([...all.filter(({ status }) => status === "active").map(({ name }) => name), node])].filter(Boolean).sort();
  const late = (body?.unseen ?? []).map((one) => `thread ${one.shard} of ${one.node} was not looked through in time`);
  /** Chooses anew, from the first page on. @param {Record<string, string>} more */
  const pick = (more) => choose({ ...more, after: "" });
  return html`<${Table} title="Actors" sub=${body ? `${count(body.actors.length)} of ${count(body.matched)} that are active` : "those that are active"} heads=${["actor", "node", "thread", "state", "waiting", "turns/s", "active for", "idle for"]}
    empty=${error ?? (body ? "No such actor is active: an actor is while it is called." : "Asking …")} note=${[...late, silence(body?.silent)].filter(Boolean).join("; ")}
    rows=${(body?.actors ?? []).map((one) => [actor(one.actor), one.node, `${one.shard}`, one.state, count(one.mailbox), turns(one.turns), time(one.age), time(one.idle)])}>
    <form class="filter" role="search" aria-label="Which actors" onSubmit=${(submit) => submit.preventDefault()}>
      <${Choice} name="Kind" value=${kind} pick=${(kind) => pick({ kind })} all="any" options=${kinds.map((one) => [one, one])} />
      <label>Key begins with<input type="search" autocomplete="off" value=${prefix} onInput=${(event) => pick({ prefix: event.currentTarget.value })} /></label>
      <${Choice} name="Node" value=${node} pick=${(node) => pick({ node })} all="any node" options=${nodes.map((one) => [one, one])} />
      <${Choice} name="First" value=${order} pick=${(order) => pick({ order })} all="most waiting" options=${ORDERS} />
      <div class="pages">${after ? html`<button type="button" class="btn" onClick=${() => pick({})}>First page</button>` : null}
        ${body?.next ? html`<button type="button" class="btn" onClick=${() => choose({ after: body.next })}>Next page</button>` : null}</div></form><//>`;
}

const ORDERS = [["heat", "most turns"], ["age", "oldest"], ["idle", "idle for longest"], ["key", "by key"]];
/** Actors of a page. */
const LIMIT = 100;
