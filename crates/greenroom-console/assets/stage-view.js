// The Stage's picture: pixels below, rings, names and comets above. Drawn when something has changed; again and again only while something flies.
import { html, useEffect, useRef, useState } from "./lib.js";
import { colour, count, hue, turns } from "./format.js";
import { byPlace, byTalk, groups } from "./stage-scene.js";
import { paint, pixel } from "./stage-paint.js";
import { theme } from "./theme.js";

/** @typedef {import("./stage-scene.js").Scene} Scene */

/** What each hot actor is painted with. @param {any} stage @param {string} by */
function inks(stage, by) {
  const names = ["bg", "ink-3", "line-2", "green", "blue", "violet", "amber", "pink", "teal", "red"];
  const palette = Object.fromEntries(names.map((name) => [name, pixel(colour(name))]));
  const most = Math.max(...stage.hot.map((one) => one.turns), 1);
  const heat = stage.hot.map((one) => Math.log1p(one.turns) / Math.log1p(most));
  const hot = (at) => {
    const one = stage.hot[at];
    const kind = palette[hue(one.actor.slice(0, Math.max(one.actor.indexOf("/"), 0)))];
    if (by === "errors") return one.failed > 0 ? { ink: palette.red, glow: Math.min(1, 0.3 + one.failed / (one.turns || 1)) } : { ink: palette["ink-3"], glow: 0 };
    if (by === "heat") return { ink: heat[at] > 0.8 ? palette.pink : heat[at] > 0.5 ? palette.violet : palette.blue, glow: heat[at] };
    return { ink: kind, glow: heat[at] };
  };
  return (scene, plain) => ({ ground: palette.bg, kinds: scene.kinds.map((kind) => palette[hue(kind)]), hot, dim: by === "kind" ? null : palette["line-2"], plain });
}

/** The groups and their places, once the worker has found them; found anew only when who is in them has changed.
 * @param {any} stage @param {boolean} wanted @param {number} wide */
function usePlaces(stage, wanted, wide) {
  const [found, set] = useState(/** @type {any} */ (null));
  const worker = useRef(/** @type {any} */ (null));
  const grouped = wanted ? groups(stage, GROUPS_MAX) : null;
  const key = grouped ? `${grouped.sizes.join()} ${grouped.links.map(([one, other]) => `${one}-${other}`).join()} ${wide}` : "";
  useEffect(() => {
    if (!grouped) return;
    worker.current ??= new Worker(script(), { type: "module" });
    worker.current.onmessage = ({ data }) => { if (data.number === key) set({ key, grouped, places: data.places }); };
    worker.current.postMessage({ number: key, asked: { sizes: grouped.sizes, links: grouped.links, wide } });
  }, [key]);
  useEffect(() => () => worker.current?.terminate(), []);
  return found;
}

/** The worker's own file: the policy of the pages wants to know that no text of strangers names it. */
function script() {
  const url = new URL("./stage-force.js", import.meta.url).href;
  return globalThis.trustedTypes ? globalThis.trustedTypes.createPolicy("stage", { createScriptURL: () => url }).createScriptURL("") : url;
}

/** Which hot actor is drawn next to a place; none beyond a few pixels. @param {Scene} scene @param {number} x @param {number} y @param {number} scale */
function nearest(scene, x, y, scale) {
  let [best, least] = [-1, (12 * scale) ** 2];
  scene.hot.forEach((spot, at) => {
    const far = (spot.x - x) ** 2 + (spot.y - y) ** 2;
    if (far < least) [best, least] = [at, far];
  });
  return best;
}

/** @param {{stage: any, by: string, view: string, plain: boolean, moves: any[]}} props `moves` fly once, as they are given */
export function Picture({ stage, by, view, plain, moves }) {
  const [frame, canvas] = [useRef(/** @type {any} */ (null)), useRef(/** @type {any} */ (null))];
  const drawn = useRef(/** @type {any} */ ({ flown: new Set(), flying: [] }));
  const [size, resize] = useState({ width: 0, height: 0 });
  const [over, hover] = useState(/** @type {any} */ (null));
  const scale = devicePixelRatio || 1;
  const places = usePlaces(stage, view === "talk", Math.max(size.width, 1) / Math.max(size.height, 1));

  useEffect(() => {
    const watch = new ResizeObserver(([{ contentRect }]) => resize({ width: Math.round(contentRect.width), height: Math.round(contentRect.height) }));
    watch.observe(frame.current);
    return () => { watch.disconnect(); cancelAnimationFrame(drawn.current.frame); };
  }, []);

  useEffect(() => {
    const [width, height] = [Math.round(size.width * scale), Math.round(size.height * scale)];
    if (width < 40 || height < 40) return;
    const scene = view === "talk"
      ? places && places.grouped.of.length === stage.hot.length ? byTalk(stage, places.grouped, places.places, width, height, scale) : null
      : byPlace(stage, width, height, scale);
    if (!scene) return;
    const seen = JSON.stringify([stage.nodes, stage.hot, stage.edges, by, view, plain, size, scale, theme.value]);
    if (view !== "talk") launch(drawn.current, scene, moves, stage.at);
    if (seen === drawn.current.seen && places === drawn.current.places && drawn.current.flying.length === 0) return;
    [drawn.current.seen, drawn.current.places] = [seen, places];
    const image = new ImageData(width, height);
    paint(new Uint32Array(image.data.buffer), scene, inks(stage, by)(scene, plain));
    drawn.current.picture = { image, scene, view };
    canvas.current.dataset.per = String(scene.per);
    canvas.current.dataset.size = String(scene.size);
    fly(canvas.current, drawn.current, scale);
  }, [stage, by, view, plain, size, scale, places, theme.value, moves]);

  const point = (event) => {
    const scene = drawn.current.picture?.scene;
    if (!scene) return;
    const box = canvas.current.getBoundingClientRect();
    const at = nearest(scene, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale, scale);
    hover(at < 0 || !stage.hot[at] ? null : { name: stage.hot[at].actor, x: scene.hot[at].x / scale, y: scene.hot[at].y / scale });
  };
  const shown = over ? stage.hot.find(({ actor }) => actor === over.name) : null;
  const move = shown ? stage.moves.find(({ actor }) => actor === shown.actor) : null;
  return html`<div class="stage-picture" ref=${frame}><canvas ref=${canvas} role="img" aria-label=${`${stage.nodes.length} nodes with their actors; the view Table has the same as text`} onPointerMove=${point} onPointerLeave=${() => hover(null)}></canvas>
    ${shown ? html`<div class=${`tip${over.x > size.width / 2 ? " left" : ""}`} style=${{ left: `${over.x}px`, top: `${over.y}px` }}><b class="mono">${shown.actor}</b>
      <span>${shown.node}, thread ${shown.shard} · ${turns(shown.turns)} turns/s${shown.failed > 0 ? html` · <span class="bad-text">${count(shown.failed)} failed/s</span>` : null}</span>
      ${move ? html`<span class="sub">moved here from ${move.from}: ${move.why}</span>` : null}</div>` : null}</div>`;
}

/** Lets those fly that have not flown yet, if things may move: of what is so now the last ones, of a minute that was chosen all. */
function launch(drawn, scene, moves, at) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const discs = new Map(scene.discs.map((disc) => [disc.name, disc]));
  const now = performance.now();
  for (const one of moves) {
    const name = `${one.at} ${one.actor} ${one.flight ?? ""}`;
    const [from, to] = [discs.get(one.from), discs.get(one.to)];
    if (drawn.flown.has(name) || still || !from || !to || from === to || (!one.flight && at - one.at > RECENT) || drawn.flying.length >= FLYING_MAX) continue;
    drawn.flown.add(name);
    drawn.flying.push({ from, to, begun: now + (drawn.flying.length % 12) * 60 });
  }
  if (drawn.flown.size > 4000) drawn.flown.clear();
}

/** Draws a frame, and the next one while something flies. */
function fly(canvas, drawn, scale) {
  cancelAnimationFrame(drawn.frame);
  const { image, scene } = drawn.picture;
  // As large on the page as it was drawn: while the page takes another size, circles stay circles.
  if (canvas.width !== image.width || canvas.height !== image.height) [canvas.width, canvas.height] = [image.width, image.height];
  [canvas.style.width, canvas.style.height] = [`${image.width / scale}px`, `${image.height / scale}px`];
  const pen = canvas.getContext("2d");
  const frame = (now) => {
    canvas.dataset.frames = String(Number(canvas.dataset.frames ?? 0) + 1);
    pen.putImageData(image, 0, 0);
    above(pen, scene, scale);
    drawn.flying = drawn.flying.filter(({ begun }) => now - begun < FLIGHT);
    for (const one of drawn.flying) comet(pen, one, Math.max(now - one.begun, 0) / FLIGHT, scale);
    if (drawn.flying.length > 0) drawn.frame = requestAnimationFrame(frame);
  };
  drawn.frame = requestAnimationFrame(frame);
}

/** Rings and names. */
function above(pen, scene, scale) {
  pen.textAlign = "center";
  for (const { x, y, radius, name, sub, shards } of scene.discs) {
    pen.lineWidth = 3 * scale;
    const gap = shards.length > 1 ? 0.06 : 0;
    for (const { busy, from, length } of shards) {
      stroke(pen, x, y, radius + 6 * scale, from, length - gap, colour("line-2"));
      if (busy > 0.005) stroke(pen, x, y, radius + 6 * scale, from, (length - gap) * Math.min(busy, 1), colour(busy >= 0.9 ? "red" : busy >= 0.7 ? "amber" : "green"));
    }
    pen.fillStyle = colour("ink");
    pen.font = `600 ${12 * scale}px system-ui, sans-serif`;
    if (name) pen.fillText(name.length > 28 ? `${name.slice(0, 27)}…` : name, x, y + radius + (shards.length ? 24 : 12) * scale);
    pen.fillStyle = colour("ink-3");
    pen.font = `${11 * scale}px system-ui, sans-serif`;
    if (sub) pen.fillText(sub, x, y + radius + 38 * scale);
  }
}

function stroke(pen, x, y, radius, from, length, ink) {
  pen.beginPath();
  pen.strokeStyle = ink;
  pen.arc(x, y, radius, from, from + length);
  pen.stroke();
}

function comet(pen, { from, to }, part, scale) {
  const ease = part * part * (3 - 2 * part);
  const tail = Math.max(ease - 0.12, 0);
  const at = (share) => [from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share];
  pen.strokeStyle = colour("violet");
  pen.lineWidth = 2 * scale;
  pen.beginPath();
  pen.moveTo(...at(tail));
  pen.lineTo(...at(ease));
  pen.stroke();
  pen.fillStyle = colour("ink");
  pen.beginPath();
  pen.arc(...at(ease), 2.5 * scale, 0, 2 * Math.PI);
  pen.fill();
}

const GROUPS_MAX = 500;
const FLYING_MAX = 200;
/** Milliseconds for which a move is one of now. */
const RECENT = 5000;
/** Milliseconds that a comet flies. */
const FLIGHT = 1400;
