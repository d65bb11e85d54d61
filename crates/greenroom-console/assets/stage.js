// Stage: where actors are, which of them are hot, who talks with whom, and who moves.
import { html, useEffect, useState } from "./lib.js";
import { get } from "./api.js";
import { count, hue, turns } from "./format.js";
import { useAnswer } from "./live.js";
import { choose, route } from "./route.js";
import { Picture } from "./stage-view.js";
import { Scrubber, Side } from "./stage-side.js";
import { Table, actor, silence } from "./table.js";

/** Buttons of which one is chosen; what is chosen stands in the URL, and the first is so by default. */
function Choice({ name, label, of }) {
  const now = route.value.chosen[name] ?? Object.keys(of)[0];
  return html`<div class="seg" role="group" aria-label=${label}>${Object.entries(of).map(([value, words]) =>
    html`<button aria-pressed=${String(now === value)} onClick=${() => choose({ [name]: value === Object.keys(of)[0] ? "" : value })}>${words}</button>`)}</div>`;
}

/** The moves of a minute, as nodes keep them; those of now if none is chosen. @param {number|null} at @param {any[]} lately */
function useMoves(at, lately) {
  const [past, set] = useState(/** @type {any[]|null} */ (null));
  useEffect(() => {
    if (at === null) { set(null); return undefined; }
    let over = false;
    get(`/-/events?event=moved&since=${Math.round(at - 30_000)}&until=${Math.round(at + 30_000)}&limit=1000`).then(({ events }) => {
      if (!over) set(events.filter(({ moved }) => moved).map(({ at: when, subject, moved }) => ({ at: when, actor: subject.actor, ...moved, flight: at })));
    }, () => { if (!over) set([]); });
    return () => { over = true; };
  }, [at]);
  return at === null ? lately : past ?? [];
}

function Legend({ stage, colours }) {
  const kinds = [...new Set(stage.nodes.flatMap((node) => node.shards.flatMap((shard) => Object.keys(shard.counts))))].sort();
  if (colours === "heat") return html`<p class="legend"><span class="chip"><span class="sw hue-pink" aria-hidden="true"></span>most turns</span><span class="chip"><span class="sw hue-violet" aria-hidden="true"></span>many</span><span class="chip"><span class="sw hue-blue" aria-hidden="true"></span>some</span></p>`;
  if (colours === "errors") return html`<p class="legend"><span class="chip"><span class="sw bad-text" aria-hidden="true"></span>messages failed of late</span></p>`;
  return html`<p class="legend">${kinds.slice(0, 12).map((kind) => html`<span class="chip"><span class=${`sw hue-${hue(kind)}`} aria-hidden="true"></span>${kind}</span>`)}${kinds.length > 12 ? html`<span class="sub">and ${kinds.length - 12} more</span>` : null}</p>`;
}

/** What the picture shows, as text. */
function Lists({ stage }) {
  const moved = new Map(stage.moves.map((one) => [one.actor, one]).reverse());
  const apart = ["one thread", "one node", "two nodes"];
  return html`<div class="stack"><${Table} title="Threads" sub="and their actors" heads=${["node", "thread", "busy", "actors"]} empty="No node answers."
      rows=${stage.nodes.flatMap((node) => node.shards.map((shard, number) => [node.node, `${number}`, `${Math.round(shard.busy * 100)} %`, Object.entries(shard.counts).map(([kind, n]) => `${count(n)} ${kind}`).join(", ") || "none"]))} />
    <${Table} title="Hot actors" sub="and those that talk most, the hottest first" heads=${["actor", "node", "thread", "turns/s", "failed/s", "why it moved"]} empty="No actor has had turns of late." wrap=${5}
      rows=${stage.hot.map((one) => [actor(one.actor), one.node, `${one.shard}`, turns(one.turns), count(one.failed), moved.get(one.actor)?.why ?? ""])} />
    <${Table} title="Who talks with whom" sub="messages a second, answers among them" heads=${["actor", "and", "messages/s", "on"]} empty="Nobody talks with anybody, as far as messages are sampled."
      rows=${stage.edges.map(([from, to, rate, distance]) => [actor(stage.hot[from].actor), actor(stage.hot[to].actor), count(rate), apart[distance]])} /></div>`;
}

/** What is not shown, in words. */
function leftOut(stage) {
  const deaf = stage.nodes.filter((node) => node.shards.every((shard) => !shard.samples)).map(({ node }) => node);
  const stuck = stage.nodes.flatMap((node) => node.shards.map((shard, number) => (shard.answers ? null : `thread ${number} of ${node.node}`))).filter(Boolean);
  return [
    silence(stage.silent),
    stage.left_out ? `${stage.left_out} more nodes were not asked.` : null,
    stuck.length ? `A turn keeps ${stuck.join(", ")}.` : null,
    deaf.length ? `No messages are sampled on ${deaf.join(", ")}: the optimiser is off there, or has nowhere to move an actor to.` : null,
    stage.hot_left_out ? `${count(stage.hot_left_out)} more hot actors are known.` : null,
    stage.edges_left_out ? `${stage.edges.length} of ${count(stage.edges.length + stage.edges_left_out)} known pairs that talk.` : null,
  ].filter(Boolean).join(" ");
}

export function Stage() {
  const { body: stage, error } = useAnswer(ASKED, 1);
  const { by: view = "place", colour = "kind", dots, at: chosen } = route.value.chosen;
  const at = /^\d+$/.test(chosen ?? "") ? Number(chosen) : null;
  const moves = useMoves(at, stage?.moves ?? NONE);
  if (!stage) return html`<h1 class="vh">Stage</h1><p class="empty" role="status">${error ?? "Asking the door …"}</p>`;
  const actors = stage.nodes.flatMap(({ shards }) => shards).flatMap(({ counts }) => Object.values(counts)).reduce((one, other) => one + other, 0);
  const note = leftOut(stage);
  return html`<div class="stage"><div class="head"><h1>Stage</h1>
      <${Choice} name="by" label="View" of=${{ place: "By place", talk: "By talk", table: "Table" }} />
      ${view === "table" ? null : html`<${Choice} name="colour" label="Colour" of=${{ kind: "Kind", heat: "Heat", errors: "Errors" }} /><${Choice} name="dots" label="Drawn" of=${{ talk: "Who talks", plain: "Dots alone" }} />`}
      <span class="sub">${count(actors)} actors on ${stage.nodes.length} nodes</span></div>
    <div class="stage-main">${view === "table" ? html`<${Lists} stage=${stage} />` : html`<section class="card show" aria-label="Picture">
        <${Picture} stage=${stage} by=${colour} view=${view} plain=${dots === "plain"} moves=${moves} /><${Legend} stage=${stage} colours=${colour} />
        ${view === "talk" ? html`<p class="note">Hot actors that talk mostly among themselves stand together; the others are not shown.</p>` : null}${note ? html`<p class="note">${note}</p>` : null}</section>
      <${Scrubber} moved=${stage.moved} at=${at} choose=${(when) => choose({ at: when === null ? "" : String(Math.round(when)) })} />`}</div>
    <${Side} stage=${stage} moves=${moves} chosen=${at !== null} /></div>`;
}

const ASKED = "/-/stage?top=300";
/** @type {any[]} */
const NONE = [];
