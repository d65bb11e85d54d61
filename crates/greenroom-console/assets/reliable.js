// Reliable actors: their partitions, and the messages that wait for an operator.
import { html } from "./lib.js";
import { count, hue, percent, time } from "./format.js";
import { path } from "./api.js";
import { Do, allowed } from "./changes.js";
import { useAnswer } from "./live.js";
import { Table, actor } from "./table.js";

export function Reliable() {
  const { body, error } = useAnswer("/-/reliable", 2);
  const { body: parked } = useAnswer("/-/reliable/parked", 5);
  if (!body) return html`<section class="card"><header><h1>Reliable actors</h1></header><p class="empty">${error ?? "Asking …"}</p></section>`;
  return html`<div class="stack"><${Grid} partitions=${body.partitions} /><${Parked} parked=${parked?.parked ?? []} silent=${parked?.silent_partitions ?? []} /><${Partitions} list=${body.partitions} /></div>`;
}

const waits = (partition) => (partition.waiting ?? 0) + (partition.outgoing ?? 0);

/** A square for each partition: its owner's hue, the stronger the more waits there. The table below says the same. */
function Grid({ partitions }) {
  const most = Math.max(...partitions.map(waits), 1);
  const owners = [...new Set(partitions.map(({ node }) => node))].filter(Boolean).sort();
  const rows = Math.ceil(partitions.length / ROW);
  return html`<section class="card" aria-labelledby="grid"><header><h1 id="grid">Reliable actors</h1><span class="sub">${partitions.length} partitions: a hue for each owner, the stronger the more waits</span></header>
    <div class="plot"><svg class="grid" viewBox=${`0 0 ${ROW} ${rows}`} role="img" aria-label=${`${partitions.length} partitions of ${owners.length} nodes; the table below has them all`}>
      ${partitions.map((partition, index) => html`<rect class=${partition.node ? `hue-${hue(partition.node)}` : "nobody"} x=${(index % ROW) + 0.06} y=${Math.floor(index / ROW) + 0.06} width="0.88" height="0.88" rx="0.15"
        fill-opacity=${partition.node ? 0.35 + (0.65 * waits(partition)) / most : 1}><title>${partition.partition}: ${partition.node ?? "does not answer"}</title></rect>`)}</svg>
    <p class="legend">${owners.map((node) => html`<span class="chip"><span class=${`sw hue-${hue(node)}`} aria-hidden="true"></span>${node}: ${partitions.filter((one) => one.node === node).length}</span>`)}
      ${partitions.some(({ node }) => !node) ? html`<span class="chip bad-text">no answer: ${partitions.filter(({ node }) => !node).length}</span>` : null}</p></div></section>`;
}

/** Messages that were refused for good, in groups of one method and error, and one by one. */
function Parked({ parked, silent }) {
  const groups = new Map();
  for (const one of parked) {
    const name = JSON.stringify([kind(one.to), one.method, one.error]);
    groups.set(name, { ...one, count: (groups.get(name)?.count ?? 0) + 1 });
  }
  const note = silent.length ? `Partitions that gave no answer: ${silent.join(", ")}` : parked.length ? html`<code>greenroom reliable retry PARTITION:SLOT</code> tries one again, <code>drop</code> drops it.` : null;
  return html`<${Table} title="Parked messages" sub=${parked.length ? "in groups; the last error" : ""} heads=${["messages", "to", "method", "error"]} empty="No message is parked." note=${parked.length ? null : note}
      rows=${[...groups.values()].sort((one, other) => other.count - one.count).map((one) => [count(one.count), kind(one.to), html`<span class="mono">${one.method}</span>`, html`<span class="bad-text">${one.error}</span>`])} />
    ${parked.length ? html`<${Table} title="Parked, one by one" sub="" heads=${["where", "from", "to", "method", "what", "error", ...(allowed() ? ["change"] : [])]} empty="" note=${note}
      rows=${parked.map((one) => [html`<span class="mono">${one.partition}:${one.slot}</span>`, one.from ? actor(one.from) : "outside", actor(one.to), html`<span class="mono">${one.method}</span>`, one.what, one.error, ...(allowed() ? [[change(one, "Retry", "retry"), change(one, "Drop", "drop")]] : [])])} />` : null}`;
}

const change = ({ partition, slot }, label, verb) => html`<${Do} label=${label} what=${label} name=${`message ${partition}:${slot}`} url=${path("-", "reliable", String(partition), verb, slot)} />`;
const kind = (name) => String(name).split("/")[0];

function Partitions({ list }) {
  return html`<${Table} title="Partitions" sub="as their owners say" heads=${["partition", "owner", "epoch", "actors", "waiting", "outgoing", "parked", "held", "answers kept", "commits", "turns", "last commit", "trouble"]} empty="There is none."
    rows=${list.map((one) => (one.node ? [`${one.partition}`, one.node, one.epoch || "being recovered", count(one.actors), count(one.waiting), count(one.outgoing), ill(one.parked), ill(one.held), answers(one), count(one.commits), count(one.turns), one.commits ? time(one.commit_ms / 1000) : "–", one.trouble ?? ""]
      : [`${one.partition}`, html`<span class="bad-text">does not answer</span>`]))} />`;
}

const ill = (number) => html`<span class=${number ? "bad-text" : ""}>${count(number)}</span>`;
const answers = ({ answers, answers_bytes: bytes, answers_bytes_max: most }) => (answers ? `${count(answers)}, ${most ? `${percent(bytes / most)} % of the room` : ""}` : "0");

/** Squares in a row. */
const ROW = 32;
