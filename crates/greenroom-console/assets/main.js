// The frame of the pages: the rail, the verdict, the find box, and the keys.
import { html, render, useEffect, useRef, useState } from "./lib.js";
import { refused, takeToken, useToken } from "./api.js";
import { Actor } from "./actor.js";
import { Actors } from "./actors.js";
import { Asking, Lock, watchWho, who } from "./changes.js";
import { Clusters } from "./clusters.js";
import { Events } from "./events.js";
import { Kinds } from "./kinds.js";
import { begin, live, lost, nodesOf, seen } from "./live.js";
import { Overview } from "./overview.js";
import { Reliable } from "./reliable.js";
import { Moves, Nodes, Reminders, Spawned, Turns, Waits } from "./tables.js";
import { State } from "./state.js";
import { Tail } from "./tail.js";
import { Topics } from "./topics.js";
import { time } from "./format.js";
import { go, route } from "./route.js";
import { theme, turn } from "./theme.js";

/** A page that is loaded when it is first wanted. @param {() => Promise<any>} load */
function later(load) {
  let page = /** @type {any} */ (null);
  return function Later(props) {
    const [, loaded] = useState(page !== null);
    useEffect(() => { if (!page) load().then((found) => { page = found; loaded(true); }); }, []);
    return page ? html`<${page} ...${props} />` : html`<p class="empty" role="status">Asking for the page …</p>`;
  };
}

const Stage = later(() => import("./stage.js").then(({ Stage }) => Stage));

/** Each page: its name, icon, key after `g`, and what draws it. */
const PAGES = {
  overview: { name: "Overview", icon: "M2 7l6-5 6 5v7H2z", key: "o", draw: Overview },
  stage: { name: "Stage", icon: "M5 5a3 3 0 1 0 .1 0M12 9a2 2 0 1 0 .1 0M8 8l2 2", key: "s", draw: Stage },
  kinds: { name: "Kinds", icon: "M2 4h12M2 8h12M2 12h8", key: "k", draw: Kinds, group: "Actors" },
  actors: { name: "Actors", icon: "M5 5a2 2 0 1 0 .1 0M11 5a2 2 0 1 0 .1 0M8 10a2 2 0 1 0 .1 0", key: "i", draw: Actors },
  actor: { name: "Actor", icon: "M8 2a3 3 0 1 0 .1 0M2 14c1-4 11-4 12 0", key: "a", draw: Actor },
  turns: { name: "Slow and failed", icon: "M8 2l6 11H2zM8 6v3M8 11v.5", key: "f", draw: Turns },
  tail: { name: "Tail", icon: "M2 3h12M2 6.5h12M2 10h8M8 12l3 2 3-5", key: "t", draw: Tail },
  waits: { name: "Waits", icon: "M4 2h8M4 14h8M5 2c0 5 6 7 6 12M11 2c0 5-6 7-6 12", key: "w", draw: Waits },
  state: { name: "State", icon: "M3 3h10v3H3zM3 8h10v5H3zM6 10.5h4", key: "v", draw: State },
  spawned: { name: "Spawned", icon: "M8 2v12M2 8h12", key: "p", draw: Spawned },
  nodes: { name: "Nodes", icon: "M2 3h12v4H2zM2 9h12v4H2z", key: "n", draw: Nodes, group: "System" },
  clusters: { name: "Clusters", icon: "M2 4h5v5H2zM9 7h5v5H9zM7 6l2 3", key: "c", draw: Clusters },
  events: { name: "Events", icon: "M3 2v12M3 4h10M3 8h7M3 12h9", key: "e", draw: Events },
  moves: { name: "Moves", icon: "M2 5h10l-3-3M14 11H4l3 3", key: "m", draw: Moves },
  reliable: { name: "Reliable", icon: "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z", key: "l", draw: Reliable },
  topics: { name: "Topics", icon: "M3 8a5 5 0 0 1 10 0M5.5 8a2.5 2.5 0 0 1 5 0M8 8v6", key: "b", draw: Topics },
  reminders: { name: "Reminders", icon: "M8 2a6 6 0 1 0 .1 0M8 4v4l3 2", key: "r", draw: Reminders },
};

function Rail({ at }) {
  const found = wrong();
  const badges = { overview: found.length ? html`<span class=${`badge ${found[0].level}`}>${found.length}</span>` : null, nodes: seen.value ? html`<span class="badge">${nodesOf(seen.value).length}</span>` : null };
  return html`<aside class="rail" aria-label="Greenroom"><div class="brand"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M2 4h20v3c-4 0-5 4-5 9v4h-2c0-8-1-12-3-12s-3 4-3 12H7v-4c0-5-1-9-5-9z" /></svg><b>Greenroom</b></div>
    <nav aria-label="Pages">${Object.entries(PAGES).map(([id, page]) => html`${page.group ? html`<div class="group">${page.group}</div>` : null}
      <a href=${`#/${id}`} aria-current=${at === id ? "page" : null}><svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${page.icon} /></svg>${page.name}${badges[id]}</a>`)}</nav>
    <div class="foot"><span>Looking changes nothing.<br /></span><button class="link" onClick=${() => showKeys()}>Keys: ?</button></div></aside>`;
}

/** Findings of what is wrong, or will be. */
const wrong = () => seen.value?.findings.filter(({ level }) => level === "bad" || level === "warn") ?? [];

function verdict() {
  if (lost.value) return ["bad", "The door does not answer", `for ${time((Date.now() - lost.value.since) / 1000)}: ${lost.value.why}`];
  if (!seen.value) return ["off", "Asking the door", ""];
  const [first, ...more] = wrong();
  const silent = seen.value.silent.length;
  if (!first && silent) return ["warn", `${seen.value.silent[0].node} does not answer`, seen.value.silent[0].why];
  if (!first) return ["", "All is well", `${nodesOf(seen.value).filter((node) => node.answers).length} nodes answer`];
  return [first.level, first.title, more.length ? `and ${more.length} more` : `for ${time(Math.max(seen.value.at - first.since, 0) / 1000)}`];
}

function Bar() {
  const [text, set] = useState("");
  const find = (event) => {
    event.preventDefault();
    const cut = text.indexOf("/");
    const page = Object.entries(PAGES).find(([, { name }]) => name.toLowerCase() === text.trim().toLowerCase());
    if (page) go(page[0]);
    else if (cut > 0) go("actor", text.slice(0, cut), text.slice(cut + 1));
    else if (nodesOf(seen.value).some(({ name }) => name === text)) go("nodes");
    else if (text) go("kinds", text);
  };
  const [level, what, rest] = verdict();
  return html`<header class="bar"><span class="system">${seen.value?.system ?? ""}</span>
    <div class="verdict" role="status"><span class=${`dot ${level}`} aria-hidden="true"></span><span>${what}</span><span class="sub">${rest}</span></div>
    <form class="find" role="search" onSubmit=${find}><input id="find" aria-label="Find an actor as kind/key, a kind, a node or a page" placeholder="Find an actor: kind/key" autocomplete="off" value=${text} onInput=${(event) => set(event.currentTarget.value)} /><kbd aria-hidden="true">/</kbd></form>
    <div class="seg" role="group" aria-label="Time"><button aria-pressed=${String(live.value)} onClick=${() => { live.value = !live.value; }}><span class=${live.value ? "dot" : "dot off"} aria-hidden="true"></span>${live.value ? "Live" : "Stopped"}</button></div>
    <${Lock} />${who.value?.name ? html`<span class="sub name">${who.value.name}</span>` : null}
    <button class="btn" aria-label=${theme.value === "dark" ? "Light colours" : "Dark colours"} onClick=${turn}>◐</button></header>`;
}

function Credentials() {
  const [text, set] = useState("");
  const enter = (event) => { event.preventDefault(); useToken(text); };
  return html`<section class="card"><header><h1>Who asks?</h1></header><form class="form" onSubmit=${enter}>
    <p>${refused.value || "The door wants to know who asks."}</p>
    <label>A bearer token; it stays in this tab, until it is closed or loaded again<input type="password" autocomplete="off" value=${text} onInput=${(event) => set(event.currentTarget.value)} /></label>
    <div class="row"><button class="btn primary">Look</button></div></form></section>`;
}

function Keys() {
  return html`<dialog id="keys" aria-labelledby="keys-title"><h2 id="keys-title">Keys</h2><dl>
    <dt><kbd>/</kbd></dt><dd>find an actor, kind, node or page</dd><dt><kbd>.</kbd></dt><dd>live, or stopped</dd>
    ${Object.values(PAGES).map(({ key, name }) => html`<dt><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>${name}</dd>`)}</dl>
    <form method="dialog" class="row"><button class="btn">Close</button></form></dialog>`;
}

const showKeys = () => /** @type {HTMLDialogElement} */ (document.getElementById("keys")).showModal();

function pressed(event, before) {
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); document.getElementById("find").focus(); return ""; }
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return "";
  if (before === "g") {
    const page = Object.entries(PAGES).find(([, { key }]) => key === event.key);
    if (page) go(page[0]);
    return "";
  }
  if (event.key === "/") { event.preventDefault(); document.getElementById("find").focus(); }
  if (event.key === ".") live.value = !live.value;
  if (event.key === "?") showKeys();
  return event.key;
}

function App() {
  const before = useRef("");
  useEffect(() => {
    const listen = (event) => { before.current = pressed(event, before.current); };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
  const { page, rest } = route.value;
  const shown = PAGES[page];
  useEffect(() => { document.title = `${shown?.name ?? "No such page"} · Greenroom`; }, [page]);
  const content = refused.value !== null ? html`<${Credentials} />` : shown ? html`<${shown.draw} rest=${rest} />`
    : html`<p class="empty">There is no page "${page}"; the rail has all of them.</p>`;
  return html`<div class="app"><a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("main").focus(); }}>Skip to content</a>
    <${Rail} at=${page} /><${Bar} /><main id="main" tabindex="0">${content}</main><${Keys} /><${Asking} /></div>`;
}

takeToken();
watchWho();
begin();
const root = document.querySelector("#app");
root.replaceChildren();
render(html`<${App} />`, root);
