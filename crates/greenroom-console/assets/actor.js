// One actor: what it does, what waits, whom it talks with, and a form to call it. Looking does not activate it.
import { html, useState } from "./lib.js";
import { Call } from "./call.js";
import { path } from "./api.js";
import { Do, allowed } from "./changes.js";
import { hue, time } from "./format.js";
import { nodesOf, seen, useAnswer } from "./live.js";
import { go, to } from "./route.js";

export function Actor({ rest }) {
  const [kind, ...key] = rest;
  if (!kind || key.length === 0) return html`<${Choose} kind=${kind ?? ""} />`;
  return html`<${One} key=${rest.join("/")} kind=${kind} at=${key.join("/")} />`;
}

function Choose({ kind }) {
  const [text, set] = useState(kind ? `${kind}/` : "");
  const open = (event) => {
    event.preventDefault();
    const cut = text.indexOf("/");
    if (cut > 0 && cut < text.length - 1) go("actor", text.slice(0, cut), text.slice(cut + 1));
  };
  return html`<section class="card"><header><h1>Actor</h1></header>
    <form class="form" onSubmit=${open}><label>Its kind and its key, as chat_room/lobby
      <input value=${text} autocomplete="off" onInput=${(event) => set(event.currentTarget.value)} /></label>
      <div class="row"><button class="btn primary">Look</button></div></form></section>`;
}

function One({ kind, at }) {
  const { body: found, error } = useAnswer(path("-", "inspect", kind, at), 1);
  const { body: said, error: unknown } = useAnswer(path("-", "kinds", kind), 30);
  return html`<div class="head"><h1><a href=${to("kinds", kind)} class=${`hue-${hue(kind)}`}>${kind}</a>/${at}</h1>${found ? html`<${Chips} found=${found} />` : null}${found?.state === "ready" || found?.state === "elsewhere" ? html`<${Move} kind=${kind} at=${at} from=${found.node ?? found.ask} />` : null}</div>
    ${error ? html`<p class="problem" role="alert">${error}</p>` : null}
    <div class="two"><div class="stack"><${Turns} found=${found} kind=${kind} at=${at} /><${Inside} found=${found} /></div>
      <section class="card" aria-labelledby="call"><header><h2 id="call">Call</h2>
        <span class="more">${said ? `from the interface, version ${said.version}` : ""}</span></header>
        ${said ? html`<${Call} kind=${kind} at=${at} interface=${said} />` : html`<p class="empty">${unknown ?? "Asking …"}</p>`}</section></div>`;
}

/** Where to it can be moved. */
function Move({ kind, at, from }) {
  const others = nodesOf(seen.value).filter((node) => node.status === "active" && node.name !== from).map(({ name }) => name);
  const [chosen, set] = useState("");
  if (!allowed() || others.length === 0) return null;
  const target = others.includes(chosen) ? chosen : others[0];
  return html`<label class="move"><span class="vh">Node to move it to</span><select value=${target} onChange=${(event) => set(event.currentTarget.value)}>${others.map((name) => html`<option>${name}</option>`)}</select></label>
    <${Do} label="Move" what="Move" name=${`${kind}/${at} to ${target}`} url=${path("-", "migrate", kind, at, target)} />`;
}

function Chips({ found }) {
  const ready = found.state === "ready";
  const chip = (text) => html`<span class="chip">${text}</span>`;
  return html`<span class="chip"><span class=${ready ? "dot" : "dot off"} aria-hidden="true"></span>${found.stuck_shard !== undefined ? "its thread is stuck" : found.state}</span>
    ${found.node ? chip(`${found.node}, thread ${found.shard ?? found.stuck_shard}`) : null}
    ${found.epoch ? chip(`epoch ${found.epoch}`) : null}
    ${found.age_seconds !== undefined ? chip(`active ${time(found.age_seconds)}`) : null}
    ${found.idle_seconds !== undefined ? chip(`idle ${time(found.idle_seconds)}`) : null}
    ${found.brought ? html`<span class="chip" title=${found.brought.why}>moved from ${found.brought.from} ${time(found.brought.ago_seconds)} ago</span>` : null}`;
}

/** Where else to look, or what there is: turns, hatched while they waited. */
function Turns({ found, kind, at }) {
  const body = () => {
    if (!found) return html`<p class="empty" role="status">Asking …</p>`;
    if (found.state === "elsewhere") return html`<${Elsewhere} ask=${found.ask} kind=${kind} at=${at} />`;
    if (found.node === undefined) return html`<p class="empty">It is not active here; the next call activates it. Looking does not.</p>`;
    const running = (found.turns ?? []).map((turn) => ({ ...turn, running: true }));
    const past = [...(found.history ?? [])].reverse();
    const all = [...running, ...past].slice(0, 64);
    if (all.length === 0) {
      return html`<p class="empty">No turn runs now. Past turns are kept of kinds that the node's configuration names under <code>history</code>.</p>`;
    }
    const longest = Math.max(...all.map((turn) => span(turn)), 1e-6);
    return html`<div class="scroll" tabindex="0" role="group" aria-labelledby="turns"><table><thead><tr><th>method</th><th>waited and ran, ${time(longest)}</th><th class="n">ran</th><th>outcome</th><th>caller</th></tr></thead>
      <tbody>${all.map((turn) => html`<tr class=${bad(turn) ? "bad" : ""}><td class="mono">${turn.method}</td><td><${Bar} turn=${turn} longest=${longest} /></td>
        <td class="n">${time(ran(turn))}</td><td class=${bad(turn) ? "bad-text wrap" : ""}>${turn.running ? "running" : turn.outcome}</td><td class="mono">${turn.caller ?? ""}</td></tr>`)}</tbody></table></div>`;
  };
  return html`<section class="card" aria-labelledby="turns"><header><h2 id="turns">Turns</h2><span class="sub">dashed: waited in the mailbox</span>
    <span class="more">${found?.waiting !== undefined ? `${found.waiting} wait` : ""}</span></header>${body()}</section>`;
}

const waited = (turn) => turn.queued_seconds ?? 0;
const ran = (turn) => turn.took_seconds ?? turn.running_seconds ?? 0;
const span = (turn) => waited(turn) + ran(turn);
const bad = (turn) => !turn.running && turn.outcome !== "ok";

function Bar({ turn, longest }) {
  const scale = 200 / longest;
  const hue = turn.running ? "now" : bad(turn) ? "bad" : "ran";
  return html`<svg class="wf" viewBox="0 0 200 13" width="200" height="13" aria-hidden="true">
    <rect class="queued" x="0" y="2" height="9" width=${waited(turn) * scale} />
    <rect class=${hue} x=${waited(turn) * scale} y="2" height="9" rx="2" width=${Math.max(ran(turn) * scale, 2)} /></svg>`;
}

function Elsewhere({ ask, kind, at }) {
  const node = nodesOf(seen.value).find((one) => one.name === ask);
  const there = node?.http ? `${location.protocol}//${node.http}/-/console/${to("actor", kind, at)}` : null;
  return html`<p class="empty">It is not on this node; ${ask} knows of it. ${there ? html`<a href=${there} rel="noreferrer">Look through ${ask}'s door</a>` : "That node has no door."}</p>`;
}

/** What else stands in the inspection, as it came. */
function Inside({ found }) {
  if (found?.node === undefined) return null;
  const known = new Set(["actor", "node", "shard", "state", "epoch", "age_seconds", "idle_seconds", "brought", "turns", "history", "history_len_max", "waiting"]);
  const other = Object.fromEntries(Object.entries(found).filter(([name]) => !known.has(name)));
  return html`<section class="card" aria-labelledby="inside"><header><h2 id="inside">Mailbox, timers and children</h2></header>
    <div class="form"><pre class="out" tabindex="0">${JSON.stringify(other, null, 2)}</pre></div></section>`;
}
