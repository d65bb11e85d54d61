// What happened, as the nodes remember it: the page, and what the Overview shows of it.
import { html } from "./lib.js";
import { when } from "./format.js";
import { nodesOf, seen, useAnswer } from "./live.js";
import { choose, route, to } from "./route.js";
import { Choice, Table, actor, silence } from "./table.js";

/** The last ones first; what several nodes say of one thing is one event. @param {any[]} events @returns {any[]} */
export function merged(events) {
  const all = [];
  for (const event of [...events].sort((one, other) => other.at - one.at)) {
    const same = all.findLast((one) => one.at - event.at < SAME && one.event === event.event && one.text === event.text && one.by === event.by);
    if (same && !same.nodes.includes(event.node)) Object.assign(same, { at: event.at, nodes: [...same.nodes, event.node].sort() });
    else all.push({ ...event, nodes: [event.node] });
  }
  return all;
}

/** How much it matters, by a dot and in a word. @param {string} level */
export const grade = (level) => html`<span class=${`dot ${level}`} aria-hidden="true"></span> ${WORDS[level] ?? level}`;

export function Events() {
  const { level = "", node = "", event = "", text = "" } = route.value.chosen;
  const which = [level && `&level=${encodeURIComponent(level)}`, node && `&nodes=${encodeURIComponent(node)}`].join("");
  const { body, error } = useAnswer(`/-/events?limit=${LIMIT}${which}`, 3);
  const all = merged(body?.events ?? []);
  const kinds = [...new Set([...all.map((one) => one.event), event])].filter(Boolean).sort();
  const wanted = text.toLowerCase();
  const shown = all.filter((one) => (!event || one.event === event) && (!wanted || `${one.text} ${one.by ?? ""}`.toLowerCase().includes(wanted)));
  const more = body?.left_out ? `${body.left_out} earlier ones are left out: choose a level or a node. ` : "";
  return html`<${Table} title="Events" sub="what the nodes remember of what happened, the last first" wrap=${4} heads=${["time", "level", "said by", "event", "what", "done by"]}
    empty=${error ?? (body ? (all.length ? "None of these is meant: choose others." : "Nothing of the kind has happened since the nodes started.") : "Asking …")} note=${`${more}${silence(body?.silent) ?? ""}`}
    rows=${shown.map((one) => [when(one.at), grade(one.level), one.nodes.join(", "), html`<span class="mono">${one.event}</span>`, html`${one.text} ${about(one.subject)}`, one.by ?? ""])}>
    <form class="filter" role="search" aria-label="Which events" onSubmit=${(submit) => submit.preventDefault()}>
      <${Choice} name="Level" value=${level} pick=${(level) => choose({ level })} all="any" options=${[["good", "good news and worse"], ["warn", "warnings and worse"], ["bad", "bad alone"]]} />
      <${Choice} name="Said by" value=${node} pick=${(node) => choose({ node })} all="any node" options=${names(node)} />
      <${Choice} name="Event" value=${event} pick=${(event) => choose({ event })} all="any" options=${kinds.map((kind) => [kind, kind])} />
      <label>Text<input type="search" autocomplete="off" value=${text} onInput=${(input) => choose({ text: input.currentTarget.value })} /></label></form><//>`;
}

/** The nodes of the cluster, and one that is no more if it was chosen. */
function names(chosen) {
  const known = nodesOf(seen.value).filter(({ status }) => status !== "left" && status !== "dead").map(({ name }) => name);
  return [...new Set([...known, chosen])].filter(Boolean).sort().map((name) => [name, name]);
}

/** A link to what it is about, if there is a page of that. */
function about({ actor: name, kind }) {
  if (name) return html`<span class="sub">${actor(name)}</span>`;
  return kind ? html`<a class="mono sub" href=${to("kinds", kind)}>${kind}</a>` : null;
}

/** What the Overview lists: what matters, and if that is little what is good to know. @param {any[]} events */
export function chief(events) {
  const grave = events.filter(({ level }) => level !== "hint");
  const others = events.filter(({ level }) => level === "hint");
  return [...grave, ...others].slice(0, CHIEF).sort((one, other) => other.at - one.at);
}

const WORDS = { hint: "hint", good: "good", warn: "warning", bad: "bad" };
/** Events that are asked for at once. */
const LIMIT = 500;
/** Nodes that say the same within so many milliseconds mean the same. */
const SAME = 15_000;
const CHIEF = 6;
