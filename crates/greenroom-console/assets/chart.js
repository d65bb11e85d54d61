// Lines over time, as SVG: sharp at any size, and drawn only when a figure changes.
import { html } from "./lib.js";

/** @param {(number|null)[]} values @param {number} width @param {number} height @param {number} top */
function line(values, width, height, top) {
  const step = width / Math.max(values.length - 1, 1);
  let path = "";
  let pen = "M";
  values.forEach((value, index) => {
    if (value === null || value === undefined) { pen = "M"; return; }
    path += `${pen}${(index * step).toFixed(1)} ${(height - (value / top) * height).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

/** A figure's last minutes, under the figure. */
export function Spark({ values, hue }) {
  const top = Math.max(...values.map((value) => value ?? 0), 1e-9) * 1.15;
  if (values.length < 2) return null;
  const path = line(values, 200, 34, top);
  return html`<svg class="spark" viewBox="0 0 200 34" preserveAspectRatio="none" aria-hidden="true">
    <path class=${`line-${hue}`} d=${path} vector-effect="non-scaling-stroke" /></svg>`;
}

/** Calls, failures and what happened, on one axis.
 * @param {{points: any[], marks: {at: number, text: string}[]}} props */
export function Strip({ points, marks }) {
  if (points.length < 2) return html`<p class="empty">The line begins with the second answer.</p>`;
  const [from, until] = [points[0].at, points.at(-1).at];
  const top = Math.max(...points.map((point) => point.calls), 1) * 1.15;
  const x = (at) => ((at - from) / (until - from)) * 1000;
  const shown = marks.filter(({ at }) => at >= from && at <= until);
  return html`<svg class="strip" viewBox="0 0 1000 90" preserveAspectRatio="none" role="img" aria-label="Calls and failures a second">
    <path class="axis" d="M0 90H1000M0 45H1000" vector-effect="non-scaling-stroke" />
    ${shown.map(({ at }) => html`<path class="mark" d=${`M${x(at).toFixed(1)} 0V90`} vector-effect="non-scaling-stroke" />`)}
    <path class="line-green" d=${line(points.map((p) => p.calls), 1000, 90, top)} vector-effect="non-scaling-stroke" />
    <path class="line-red" d=${line(points.map((p) => p.failed), 1000, 90, top)} vector-effect="non-scaling-stroke" />
  </svg>`;
}
