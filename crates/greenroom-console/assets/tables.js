// Nodes, turns that failed or were slow, waits, spawned actors and reminders: tables of what the door says.
import { html } from "./lib.js";
import { bytes, clock, count, percent, time } from "./format.js";
import { activeOn, nodesOf, seen, useAnswer } from "./live.js";
import { Do, allowed } from "./changes.js";
import { path } from "./api.js";
import { to } from "./route.js";
import { Table, actor } from "./table.js";

export function Nodes() {
  const overview = seen.value;
  if (!overview) return html`<p class="empty" role="status">Asking the door …</p>`;
  const nodes = nodesOf(overview);
  const why = new Map(overview.silent.map((silent) => [silent.node, silent.why]));
  const kinds = (node) => Object.entries(node.kinds ?? {}).map(([kind, active]) => `${count(active)} ${kind}`).join(", ");
  const memory = (node) => (node.resident ? `${bytes(node.resident)}${node.limit ? ` of ${bytes(node.limit)}` : ""}` : "–");
  const standing = (node) => (node.status === "active" && !node.answers ? "silent" : node.status);
  return html`<div class="stack"><${Table} title="Nodes" sub=${`of ${overview.system}, as each says of itself`} heads=${["node", "status", "actors", "up", "memory", "lease left", "version", "node address", "door", "kinds", ...(allowed() ? ["change"] : [])]} empty="There is none."
    rows=${nodes.map((node) => [html`<b>${node.name}</b>${node.name === overview.here ? html` <span class="badge">this door</span>` : null}`,
      html`<span class=${node.status === "active" && node.answers ? "good-text" : "bad-text"}>${standing(node)}</span> ${node.why ?? (node.answers ? "" : why.get(node.name)) ?? ""}`,
      count(activeOn(node)), time(node.uptime), memory(node), time(node.lease_left), node.version ?? "–", html`<span class="mono">${node.address}</span>`, html`<span class="mono">${node.http ?? "none"}</span>`, kinds(node), ...(allowed() ? [node.status === "active" ? html`<${Do} label="Drain" what="Drain" name=${node.name} url=${path("-", "drain", node.name)} />` : ""] : [])])} />
    <${Table} title="Threads" sub="of all nodes that answer" heads=${["node", "thread", "busy", "actors", "waiting", "turned away"]} empty="No node answers."
    rows=${nodes.flatMap((node) => (node.shards ?? []).map((shard, index) => [node.name, `${index}`, `${percent(shard.busy)} %`, count(shard.activations), count(shard.inbox), `${percent(shard.shed / 1000)} %`]))} /></div>`;
}

export function Waits() {
  const { body, error } = useAnswer("/-/waits?over=500ms", 1);
  return html`<${Table} title="Waits" sub=${`turns that have run for over 500 ms${body ? ` on ${body.node}` : ""}, and who waits for them`} heads=${["actor", "method", "runs for", "waiting for it"]}
    empty=${error ?? "No turn has run for so long."}
    rows=${(body?.turns ?? []).map((turn) => [actor(turn.actor), html`<span class="mono">${turn.turn}</span>`, time(turn.running_seconds),
      (turn.waiters ?? []).map((waiter, index) => [index ? ", " : "", actor(waiter)])])} />`;
}

/** Turns in groups of one kind, method and error, and then one by one. */
function Outcome({ outcome, title, sub, empty }) {
  const { body, error } = useAnswer(`/-/turns?outcome=${outcome}`, 2);
  const groups = outcome === "failed" ? html`<${Table} title=${title} sub=${sub} heads=${["turns", "method", "how", "with", "last"]} empty=${error ?? empty}
    rows=${(body?.groups ?? []).map((one) => [count(one.count), html`<a class="mono" href=${to("kinds", one.kind)}>${one.kind}.${one.method}</a>`, one.class, html`<span class="mono">${one.error ?? ""}</span>`, clock(one.last)])} />` : null;
  if (groups && !body?.turns.length) return groups;
  return html`${groups}<${Table} title=${groups ? "One by one" : title} sub=${groups ? "the last first" : sub} heads=${["at", "node", "actor", "method", "ran", "waited", "called by", "how", "with"]} empty=${error ?? empty}
    rows=${(body?.turns ?? []).map((one) => [clock(one.at), one.node, actor(one.actor), html`<span class="mono">${one.method}</span>`, time(one.ran), time(one.queued), actor(one.caller), one.outcome, html`<span class="mono">${one.error ?? ""}</span>`])} />`;
}

export function Turns() {
  return html`<div class="stack"><${Outcome} outcome="failed" title="Failed turns" sub="the last 64 of each thread" empty="No turn has failed of late." />
    <${Outcome} outcome="slow" title="Slow turns" sub="the 32 slowest of the last minute, from a millisecond on" empty="No turn took a millisecond in the last minute." /></div>`;
}

export function Moves() {
  const { body, error } = useAnswer("/-/optimiser/moves", 2);
  return html`<${Table} title="Moves" sub="what the optimiser moved of late, and why" heads=${["number", "actor", "from", "to", "why"]} empty=${error ?? "No actor was moved."}
    rows=${[...(body ?? [])].reverse().map((move) => [`${move.number}`, actor(move.actor), move.from, move.to, move.why])} />`;
}

export function Spawned() {
  const { body, error } = useAnswer("/-/pids", 2);
  return html`<${Table} title="Spawned actors" sub="actors without a key, of this node" heads=${["actor", "all that is known"]} empty=${error ?? "No actor was spawned here."}
    rows=${(body?.spawned ?? []).map((one) => [actor(one.actor), html`<span class="mono">${JSON.stringify(one)}</span>`])} />`;
}

function cancel({ actor, name }) {
  const cut = actor.indexOf("/");
  const url = path("-", "reminders", actor.slice(0, cut), actor.slice(cut + 1), name);
  return html`<${Do} label="Cancel" what="Cancel" name=${`reminder ${name} of ${actor}`} url=${url} method="DELETE" />`;
}

/** By how many seconds a reminder is late, by the clock of the door. @param {{due_unix_seconds: number}} one */
const late = (one) => (seen.value ? seen.value.at / 1000 - one.due_unix_seconds : 0);

export function Reminders() {
  const { body, error } = useAnswer("/-/reminders", 5);
  const all = [...(body?.reminders ?? [])].sort((one, other) => one.due_unix_seconds - other.due_unix_seconds);
  const many = all.filter((one) => late(one) > LATE).length;
  return html`<${Table} title="Reminders" sub=${body ? `at most ${body.listed_at_most}; ${many ? `${many} late by over ${LATE} s` : "none is late"}` : ""} heads=${["actor", "name", "method", "schedule", "due", "late", ...(allowed() ? ["change"] : [])]} empty=${error ?? "No actor wants to be reminded."}
    rows=${all.map((one) => [actor(one.actor), one.name, one.method, one.schedule, new Date(one.due_unix_seconds * 1000).toLocaleString("en-GB"), late(one) > LATE ? html`<span class="bad-text">by ${time(late(one))}</span>` : "", ...(allowed() ? [cancel(one)] : [])])} />`;
}

/** Seconds by which a tick may be late before it is said. */
const LATE = 10;
