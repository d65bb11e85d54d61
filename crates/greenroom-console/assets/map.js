// The cluster: a room with a disc for each node, and the same as text beside each.
import { html, useEffect, useRef } from "./lib.js";
import { draw, perDot } from "./disc.js";
import { count, percent } from "./format.js";
import { theme } from "./theme.js";

/** Nodes that are drawn; the rest is said. */
const SHOWN_MAX = 32;

function Node({ node, per, here }) {
  const canvas = useRef(null);
  const well = node.status === "active";
  const dots = well ? Math.ceil((node.activations ?? 0) / per) : 0;
  const rings = node.shards.map((shard) => Math.round(shard.busy * 100));
  useEffect(() => { draw(canvas.current, dots, node.shards, well); }, [dots, rings.join(), well, theme.value]);
  const busy = node.shards.length ? `${percent(Math.max(...node.shards.map((shard) => shard.busy)))} % busy` : null;
  return html`<li class=${well ? "node" : "node ill"}>
    <canvas ref=${canvas} aria-hidden="true"></canvas>
    <b>${node.name}</b>
    <span class="sub">${well ? `${count(node.activations)} actors` : node.status}${busy ? ` · ${busy}` : ""}</span>
    ${node.name === here ? html`<span class="badge">this door</span>` : null}
  </li>`;
}

export function ClusterMap({ overview }) {
  const nodes = overview.nodes.filter((node) => node.status !== "left");
  const per = perDot(Math.max(...nodes.map((node) => node.activations ?? 0), 1));
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
