// The call form: a plain call of the door, by the caller's own rules.
import { html, useState } from "./lib.js";
import { ask, path } from "./api.js";
import { fields, read, signature } from "./fields.js";
import { time } from "./format.js";

/** A word that no shell takes apart. @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function Field({ field, value, set }) {
  const { name, type, rust, required, choices } = field;
  const given = (event) => set(event.currentTarget.value);
  const input = type === "boolean"
    ? html`<input type="checkbox" checked=${value === "true"} onChange=${(event) => set(String(event.currentTarget.checked))} />`
    : type === "choice"
      ? html`<select value=${value ?? ""} onChange=${given}><option value="">choose</option>${choices.map((one) => html`<option>${one}</option>`)}</select>`
      : type === "json"
        ? html`<textarea rows="3" spellcheck=${false} value=${value ?? ""} onInput=${given}></textarea>`
        : html`<input inputmode=${type === "string" ? "text" : "numeric"} autocomplete="off" value=${value ?? ""} onInput=${given} />`;
  return html`<label><span>${name} <span class="sub">${rust || type}${required ? "" : ", may be left out"}</span></span>${input}</label>`;
}

/** @param {{kind: string, at: string, interface: any}} props */
export function Call({ kind, at, interface: said }) {
  const [name, pick] = useState("");
  const [typed, type] = useState(/** @type {Record<string, string>} */ ({}));
  const [deadline, within] = useState("2");
  const [answer, show] = useState(/** @type {any} */ (null));
  const method = said.methods.find((one) => one.name === name) ?? said.methods[0];
  if (!method) return html`<p class="empty">This kind has no methods.</p>`;
  const wanted = fields(method, said.$defs);
  const asked = read(wanted, typed);
  const url = path(kind, at, method.name);
  const seconds = Math.min(Math.max(Number(deadline) || 2, 0.1), 60);
  const call = async (event) => {
    event.preventDefault();
    if (asked.json === undefined) return;
    show({ text: "running" });
    try {
      const told = await ask(url, {
        method: "POST", body: asked.json, signal: AbortSignal.timeout(seconds * 1000), headers: { "content-type": "application/json" },
      });
      const body = typeof told.body === "string" ? told.body : JSON.stringify(told.body, null, 2);
      show({ status: told.status, took: told.took, text: told.status < 400 ? body : `${told.body?.detail ?? ""}\n${body}` });
    } catch (error) {
      const late = error.name === "TimeoutError";
      show({ text: late ? `no reply within ${seconds} s; the call may have run` : `the door gave no answer: ${error.message}` });
    }
  };
  const copy = () => navigator.clipboard.writeText(`curl -d ${quoted(asked.json ?? "{}")} ${quoted(location.origin + url)}`);
  return html`<form class="form" onSubmit=${call}>
    <label>Method<select value=${method.name} onChange=${(event) => { pick(event.currentTarget.value); type({}); show(null); }}>
      ${said.methods.map((one) => html`<option value=${one.name}>${signature(one, said.$defs)}</option>`)}</select></label>
    <p>${method.doc ?? ""} <span class="sub">${method.read ? "A read: it runs beside others." : "An exclusive turn."}</span></p>
    ${wanted.map((field) => html`<${Field} key=${`${method.name} ${field.name}`} field=${field} value=${typed[field.name]}
      set=${(value) => type({ ...typed, [field.name]: value })} />`)}
    <div class="row"><button class="btn primary" disabled=${asked.json === undefined}>Call</button>
      <label for="deadline">give up after, in seconds</label><input id="deadline" inputmode="decimal" value=${deadline} onInput=${(event) => within(event.currentTarget.value)} />
      <button type="button" class="btn" onClick=${copy}>Copy as curl</button></div>
    ${asked.wrong && Object.keys(typed).length ? html`<p class="warn-text" role="status">${asked.wrong}</p>` : null}
    ${answer ? html`<pre class="out" role="status" tabindex="0"><b class=${answer.status < 400 ? "good-text" : "bad-text"}>${answer.status ?? ""}</b> ${answer.took === undefined ? "" : `${time(answer.took)}\n`}${answer.text}</pre>` : null}
  </form>`;
}
