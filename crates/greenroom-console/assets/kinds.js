// Kinds, and the methods of one.
import { html } from "./lib.js";
import { signature } from "./fields.js";
import { count, hue, time } from "./format.js";
import { useAnswer } from "./live.js";
import { to } from "./route.js";

const failed = (method) => Object.values(method.failed).reduce((a, b) => a + b, 0);

export function Kinds({ rest }) {
  return rest[0] ? html`<${Kind} key=${rest[0]} kind=${rest[0]} />` : html`<${All} />`;
}

function All() {
  const { body, error } = useAnswer("/-/kinds", 10);
  const methods = useAnswer("/-/methods", 2).body?.methods ?? [];
  if (!body) return html`<p class="empty" role="status">${error ?? "Asking …"}</p>`;
  const rows = body.kinds.map((kind) => {
    const mine = methods.filter((method) => method.kind === kind.kind);
    const worst = Math.max(...mine.map((method) => method.run.p99 ?? 0));
    return { ...kind, turns: mine.reduce((all, one) => all + one.turns, 0), failed: mine.reduce((all, one) => all + failed(one), 0), worst };
  });
  return html`<section class="card" aria-labelledby="kinds"><header><h1 id="kinds">Kinds</h1><span class="sub">turns are those of all nodes since they started</span></header>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="kinds"><table><thead><tr><th>kind</th><th>what it is</th><th class="n">turns</th><th class="n">failed</th><th class="n">slowest method's p99</th><th>nodes</th><th class="n">version</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.kind}><td class="mono"><a href=${to("kinds", row.kind)} class=${`hue-${hue(row.kind)}`}>${row.kind}</a></td><td class="wrap">${row.doc ?? ""}</td>
      <td class="n">${count(row.turns)}</td><td class=${row.failed ? "n bad-text" : "n"}>${count(row.failed)}</td><td class="n">${row.worst > 0 ? time(row.worst) : "–"}</td>
      <td>${row.nodes.length}</td><td class="n">${row.version}</td></tr>`)}</tbody></table></div></section>`;
}

function Kind({ kind }) {
  const { body, error } = useAnswer(`/-/kinds/${encodeURIComponent(kind)}`, 30);
  const { body: figures } = useAnswer(`/-/methods?kind=${encodeURIComponent(kind)}`, 2);
  if (!body) return html`<p class="empty" role="status">${error ?? "Asking …"}</p>`;
  const of = (name) => figures?.methods.find((method) => method.method === name);
  return html`<div class="head"><h1 class=${`hue-${hue(kind)}`}>${kind}</h1><span class="chip">version ${body.version}</span>
      ${body.states.map((state) => html`<span class="chip">state ${state.field ?? state.name ?? JSON.stringify(state)}</span>`)}
      <a class="btn" href=${to("actor", kind)}>Look at one actor</a></div>
    <p class="sub2">${body.doc ?? ""}</p>
    <section class="card" aria-labelledby="methods"><header><h2 id="methods">Methods</h2><span class="sub">of all nodes since they started</span></header>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="methods"><table><thead><tr><th>method</th><th>what it does</th><th class="n">turns</th><th class="n">failed</th><th class="n">p50</th><th class="n">p99</th><th class="n">longest</th><th class="n">mailbox p99</th></tr></thead>
    <tbody>${body.methods.map((method) => { const seen = of(method.name); return html`<tr key=${method.name}><td class="mono">${signature(method, body.$defs)}</td><td class="wrap">${method.doc ?? ""}</td>
      <td class="n">${count(seen?.turns ?? 0)}</td><td class="n">${count(seen ? failed(seen) : 0)}</td><td class="n">${time(seen?.run.p50)}</td><td class="n">${time(seen?.run.p99)}</td><td class="n">${time(seen?.run.max)}</td><td class="n">${time(seen?.mailbox.p99)}</td></tr>`; })}</tbody></table></div></section>`;
}
