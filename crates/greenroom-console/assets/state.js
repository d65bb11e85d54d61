// What actors have stored: names page by page, and one with its value, which can be changed as it was seen.
import { html, useState } from "./lib.js";
import { path } from "./api.js";
import { Do, allowed, who } from "./changes.js";
import { count } from "./format.js";
import { useAnswer } from "./live.js";
import { choose, route, to } from "./route.js";
import { Choice, Table, actor } from "./table.js";

export function State({ rest }) {
  const [kind, field, ...key] = rest;
  if (key.length === 0) return html`<${List} />`;
  return html`<${One} key=${rest.join("/")} kind=${kind} field=${field} at=${key.join("/")} />`;
}

function List() {
  const { prefix = "", store = "", after = "" } = route.value.chosen;
  const asked = Object.entries({ prefix, store, after }).filter(([, value]) => value !== "");
  const { body, error } = useAnswer(`/-/state?limit=${LIMIT}${asked.map(([name, value]) => `&${name}=${encodeURIComponent(value)}`).join("")}`, 5);
  const key = (one) => one.actor.slice(one.kind.length + 1);
  return html`<${Table} title="State" sub="what actors keep in the node's stores" heads=${["actor", "field", "bytes", "version", "value"]}
    empty=${error ?? (body ? "Nothing is stored under such a name: actors that are persistent, or have Stored fields, store something when they save." : "Asking …")}
    rows=${(body?.keys ?? []).map((one) => [actor(one.actor), html`<span class="mono">${one.field}</span>`, count(one.bytes), html`<span class="mono">${one.version}</span>`,
      html`<a href=${to("state", one.kind, one.field, key(one))} aria-label=${`Show ${one.field} of ${one.actor}`}>Show</a>`])}>
    <form class="filter" role="search" aria-label="Which states" onSubmit=${(submit) => submit.preventDefault()}>
      <label>Name begins with<input type="search" autocomplete="off" placeholder="kind/field/key" value=${prefix} onInput=${(event) => choose({ prefix: event.currentTarget.value, after: "" })} /></label>
      ${body?.stores?.length ? html`<${Choice} name="Store" value=${store} pick=${(store) => choose({ store, after: "" })} all="the one without a name" options=${body.stores.map((one) => [one, one])} />` : null}
      <div class="pages">${after ? html`<button type="button" class="btn" onClick=${() => choose({ after: "" })}>First page</button>` : null}
        ${body?.next ? html`<button type="button" class="btn" onClick=${() => choose({ after: body.next })}>Next page</button>` : null}</div></form><//>`;
}

function One({ kind, field, at }) {
  const url = path("-", "state", kind, field, at);
  const { body, error } = useAnswer(url, 3);
  const shown = error ? html`<p class="empty">${error}</p>` : body ? html`<${Shown} body=${body} />` : html`<p class="empty" role="status">Asking …</p>`;
  return html`<div class="head"><h1>${kind}/${at}</h1><span class="chip">${field === "self" ? "the actor as a whole" : `field ${field}`}</span>
      ${body?.active_on ? html`<span class="chip">active on ${body.active_on}</span>` : null}
      ${body?.active_on ? html`<${Do} label="Deactivate" what="Deactivate" name=${`${kind}/${at}`} url=${path("-", "actors", kind, at, "deactivate")} />` : null}
      <a href=${to("actor", kind, at)}>Actor</a> <a href="#/state">All states</a></div>
    <section class="card" aria-labelledby="stored"><header><h2 id="stored">Stored value</h2><span class="sub">${body ? `version ${body.version}, ${count(body.bytes)} bytes, type version ${body.type_version ?? "not known"}` : ""}</span></header>${shown}</section>
    ${body?.value !== undefined && who.value?.may.change ? html`<${Change} key=${body.version} body=${body} url=${url} name=${`${field} of ${kind}/${at}`} />` : null}`;
}

function Shown({ body }) {
  const { writer } = body;
  return html`<div class="form">${body.value !== undefined ? html`<pre class="out" tabindex="0">${JSON.stringify(body.value, null, 2)}</pre>` : html`<p>${body.unread ? `It cannot be shown as JSON: ${body.unread}` : "Its value is for operators."}</p>`}
    ${writer ? html`<p>Written by the activation of epoch ${writer.epoch}, which has the number <span class="mono">${writer.number}</span>; it was its write ${writer.sequence}.</p>` : null}
    ${body.raw ? html`<details><summary>Raw bytes</summary><pre class="out" tabindex="0">${body.raw}</pre></details>` : null}</div>`;
}

/** Another value in place of the one that was seen. */
function Change({ body, url, name }) {
  const [text, set] = useState(() => JSON.stringify(body.value, null, 2));
  if (!allowed()) return null;
  let wrong = "";
  try { JSON.parse(text); } catch (error) { wrong = error.message; }
  const headers = { "if-match": body.version, "content-type": "application/json" };
  return html`<section class="card" aria-labelledby="change"><header><h2 id="change">Change</h2><span class="sub">an actor that is active ends first</span></header>
    <div class="form"><label>Value as JSON, as the type reads it<textarea rows="8" value=${text} onInput=${(event) => set(event.currentTarget.value)}></textarea></label>${wrong ? html`<p class="bad-text" role="alert">${wrong}</p>` : null}
      <div class="row">${wrong ? null : html`<${Do} label="Write" what="Write" name=${name} url=${`${url}?deactivate=true`} method="PUT" body=${text} headers=${headers} />`}
        <${Do} label="Remove" what="Remove" name=${name} url=${`${url}?deactivate=true`} method="DELETE" headers=${headers} /></div></div></section>`;
}

/** Names of a page. */
const LIMIT = 100;
