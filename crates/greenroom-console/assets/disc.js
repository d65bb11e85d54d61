// A node as a disc: a dot for one, ten or a hundred actors, written into pixels; a ring that says how busy its threads are.
import { colour } from "./format.js";

const GOLDEN = Math.PI * (3 - Math.sqrt(5));

/** How many actors a dot stands for, so that no disc holds more than two thousand. @param {number} most */
export const perDot = (most) => (most <= 2000 ? 1 : most <= 20000 ? 10 : most <= 200000 ? 100 : 1000);

/** @param {string} text a colour as #rrggbb @returns {number} a pixel */
function pixel(text) {
  const value = parseInt(text.slice(1), 16);
  return (0xff000000 | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/** Draws `dots` in sunflower order, the first in the middle: places mean nothing but stay where they are.
 * @param {HTMLCanvasElement} canvas @param {number} dots @param {{busy: number}[]} shards @param {boolean} well */
export function draw(canvas, dots, shards, well) {
  const scale = devicePixelRatio || 1;
  const side = Math.round(canvas.clientWidth * scale);
  if (side === 0) return;
  if (canvas.width !== side) { canvas.width = side; canvas.height = side; }
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const image = pen.createImageData(side, side);
  const pixels = new Uint32Array(image.data.buffer);
  const [middle, ring] = [side / 2, side / 2 - 4 * scale];
  const reach = ring - 8 * scale;
  const size = Math.max(2, Math.min(Math.round(4 * scale), Math.floor((reach * 1.5) / Math.sqrt(dots + 1))));
  const ink = pixel(colour(well ? "green" : "ink-3"));
  const spread = Math.min(reach / Math.sqrt(dots + 1), 7 * scale);
  for (let n = 0; n < dots; n += 1) {
    const far = spread * Math.sqrt(n + 0.5);
    const left = Math.round(middle + far * Math.cos(n * GOLDEN) - size / 2);
    const top = Math.round(middle + far * Math.sin(n * GOLDEN) - size / 2);
    for (let y = top; y < top + size; y += 1) pixels.fill(ink, y * side + left, y * side + left + size);
  }
  pen.putImageData(image, 0, 0);
  pen.lineWidth = 3 * scale;
  const parts = shards.length || 1;
  for (let n = 0; n < parts; n += 1) {
    const [from, gap] = [(n / parts) * 2 * Math.PI - Math.PI / 2, parts > 1 ? 0.08 : 0];
    const whole = (2 * Math.PI) / parts - gap;
    arc(pen, middle, ring, from, whole, colour("line-2"), well ? [] : [4 * scale, 4 * scale]);
    const busy = shards[n]?.busy ?? 0;
    const hue = busy >= 0.9 ? "red" : busy >= 0.7 ? "amber" : "green";
    if (busy > 0.005) arc(pen, middle, ring, from, whole * busy, colour(hue), []);
  }
}

function arc(pen, middle, radius, from, length, ink, dash) {
  pen.beginPath();
  pen.setLineDash(dash);
  pen.strokeStyle = ink;
  pen.arc(middle, middle, radius, from, from + length);
  pen.stroke();
}
