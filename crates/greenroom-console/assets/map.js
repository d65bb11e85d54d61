// The cluster: a room with a disc for each node, and the same as text beside each.
import { html, useEffect, useRef } from "./lib.js";
import { draw, perDot } from "./disc.js";
import { count, percent } from "./format.js";
import { activeOn, nodesOf } from "./live.js";
import { theme } from "./theme.js";

/** Nodes that are drawn; the rest is said. */
const SHOWN_MAX = 32;

function Node({ node, per, here }) {
  const canvas = useRef(null);
  const well = node.status === "active" && node.answers;
  const shards = node.shards ?? [];
  const dots = well ? Math.ceil(activeOn(node) / per) : 0;
  const rings = shards.map((shard) => Math.round(shard.busy * 100));
  useEffect(() => { draw(canvas.current, dots, shards, well); }, [dots, rings.join(), well, theme.value]);
  const standing = node.status === "active" ? "does not answer" : node.status;
  const busy = shards.length ? `${percent(Math.max(...shards.map((shard) => shard.busy)))} % busy` : null;
  return html`<li class=${well ? "node" : "node ill"}>
    <canvas ref=${canvas} aria-hidden="true"></canvas>
    <b>${node.name}</b>
    <span class="sub">${well ? `${count(activeOn(node))} actors` : standing}${busy ? ` · ${busy}` : ""}</span>
    ${node.name === here ? html`<span class="badge">this door</span>` : null}
  </li>`;
}

export function ClusterMap({ overview }) {
  const nodes = nodesOf(overview).filter((node) => node.status !== "left");
  const per = perDot(Math.max(...nodes.map((node) => activeOn(node) ?? 0), 1));
  const more = nodes.length - SHOWN_MAX;
  return html`<section class="card map" aria-labelledby="map">
    <header><h2 id="map">Cluster map</h2>
      <span class="sub">one dot, ${per === 1 ? "one actor" : `${per} actors`}; ring: how busy each thread is</span></header>
    <div class="room"><h3>${overview.system} <span class="sub">${nodes.length} nodes</span></h3>
      <ul>${nodes.slice(0, SHOWN_MAX).map((node) => html`<${Node} key=${node.id} node=${node} per=${per} here=${overview.here} />`)}</ul>
    </div>
    ${more > 0 ? html`<p class="note">${SHOWN_MAX} of ${nodes.length} nodes; the others are on the page Nodes.</p>` : null}
  </section>`;
}
