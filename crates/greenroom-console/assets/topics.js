// Topics that are active: who subscribes, what waits, and what was missed.
import { html } from "./lib.js";
import { count } from "./format.js";
import { useAnswer } from "./live.js";
import { choose, route } from "./route.js";
import { Table, silence } from "./table.js";

export function Topics() {
  const { prefix = "", after = "" } = route.value.chosen;
  const { body, error } = useAnswer(`/-/topics?limit=100&prefix=${encodeURIComponent(prefix)}${after ? `&after=${encodeURIComponent(after)}` : ""}`, 3);
  const held = (one) => (one.holding ? html`<span class="warn-text">${count(one.holding)}</span>` : "none");
  return html`<${Table} title="Topics" sub="those that are active, of all nodes" heads=${["topic", "node", "subscribers", "events waiting", "missed", "published", "publishers wait for"]}
    empty=${error ?? (body ? "No such topic is active: one is while somebody publishes or subscribes." : "Asking …")} note=${silence(body?.silent)}
    rows=${(body?.topics ?? []).map((one) => [html`<span class="mono">${one.topic}</span>`, one.node, count(one.subscribers), count(one.waiting),
      one.missed ? html`<span class="warn-text">${count(one.missed)}</span>` : "0", count(one.published), held(one)])}>
    <form class="filter" role="search" aria-label="Which topics" onSubmit=${(submit) => submit.preventDefault()}>
      <label>Name begins with<input type="search" autocomplete="off" value=${prefix} onInput=${(event) => choose({ prefix: event.currentTarget.value, after: "" })} /></label>
      <div class="pages">${after ? html`<button type="button" class="btn" onClick=${() => choose({ after: "" })}>First page</button>` : null}
        ${body?.next ? html`<button type="button" class="btn" onClick=${() => choose({ after: body.next })}>Next page</button>` : null}</div></form><//>`;
}
