// Changing something: locked at first, for everybody, and asked for once more each time. Whether one may, the door decides.
import { html, effect, signal, useEffect, useRef, useState } from "./lib.js";
import { ask, get, refused } from "./api.js";

/** Who asks, and what they may do, in the door's words. */
export const who = signal(/** @type {any} */ (null));
/** Until when this tab allows changes. */
const until = signal(0);
/** What is about to be changed. */
const wish = signal(/** @type {Wish|null} */ (null));
/** @typedef {{what: string, name: string, url: string, method?: string, body?: string, headers?: Record<string, string>}} Wish */

/** Asks who one is, now and whenever that may have changed. */
export const watchWho = () => effect(() => {
  if (refused.value === null) get("/-/whoami").then((said) => { who.value = said; }, () => { who.value = null; });
  else until.value = 0;
});

function lock() { until.value = 0; }

function unlock() {
  const end = Date.now() + ALLOWED;
  until.value = end;
  setTimeout(() => { if (until.value === end) lock(); }, ALLOWED);
}

/** The switch in the bar; only for who may change something. */
export function Lock() {
  if (!who.value?.may.operate || who.value.console !== "change") return null;
  const open = until.value > 0;
  const text = open ? `Changes allowed until ${new Date(until.value).toLocaleTimeString("en-GB", { timeStyle: "short" })}` : "Allow changes";
  return html`<button class=${open ? "btn open" : "btn"} aria-pressed=${String(open)} onClick=${open ? lock : unlock}>${text}</button>`;
}

/** A button for a change, while changes are allowed; nothing else. @param {Wish & {label: string}} props */
export function Do({ label, what, name, url, method, body, headers }) {
  if (until.value === 0) return null;
  return html`<button type="button" class="btn" aria-label=${`${label} ${name}`} onClick=${() => { wish.value = { what, name, url, method, body, headers }; }}>${label}</button>`;
}

/** Whether buttons for changes are shown. */
export const allowed = () => until.value > 0;

/** Asks once more, with the name of the thing, and what it is for: that is kept as an event. */
export function Asking() {
  const dialog = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const [purpose, set] = useState("");
  const [said, say] = useState("");
  const wanted = wish.value;
  useEffect(() => { if (wanted) { set(""); say(""); dialog.current?.showModal(); } }, [wanted]);
  const close = () => dialog.current?.close();
  const act = async (event) => {
    event.preventDefault();
    // A header holds plain letters only.
    const plain = purpose.normalize("NFKD").replace(/[^ -~]/g, "?").trim();
    try {
      const { status, body } = await ask(wanted.url, { method: wanted.method ?? "POST", headers: { ...wanted.headers, "greenroom-change": plain }, body: wanted.body });
      if (status < 300) close();
      else say(body?.detail ?? `the door answers ${status}`);
    } catch (error) { say(`the door gave no answer: ${error.message}`); }
  };
  return html`<dialog ref=${dialog} aria-labelledby="asking" onClose=${() => { wish.value = null; }}><form class="form" onSubmit=${act}>
    <h2 id="asking">${wanted?.what ?? ""} ${wanted?.name ?? ""}?</h2>
    <label>What for? It is kept as an event, with your name<input autocomplete="off" required maxlength="120" value=${purpose} onInput=${(event) => set(event.currentTarget.value)} /></label>
    ${said ? html`<p class="bad-text" role="alert">${said}</p>` : null}
    <div class="row"><button type="button" class="btn" onClick=${close}>Leave it</button><button class="btn primary" disabled=${purpose.trim() === ""}>${wanted?.what ?? ""}</button></div></form></dialog>`;
}

/** Milliseconds for which a tab allows changes. */
const ALLOWED = 15 * 60 * 1000;
