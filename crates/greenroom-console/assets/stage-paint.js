// The Stage as pixels: dots, and over them arcs and what glows. 100,000 dots and 4,000 arcs are a few milliseconds without a GPU, where paths take hundreds.

/** @param {string} text a colour as #rrggbb @returns {number} a pixel */
export function pixel(text) {
  const value = parseInt(text.slice(1), 16);
  return (0xff000000 | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/** @param {Uint32Array} pixels @param {number} at @param {number} ink a pixel @param {number} share how much of it, of 256 */
function blend(pixels, at, ink, share) {
  const under = pixels[at];
  const rest = 256 - share;
  const ends = (((under & 0xff00ff) * rest + (ink & 0xff00ff) * share) >>> 8) & 0xff00ff;
  const middle = (((under & 0xff00) * rest + (ink & 0xff00) * share) >>> 8) & 0xff00;
  pixels[at] = (0xff000000 | ends | middle) >>> 0;
}

/** @typedef {{ground: number, kinds: number[], hot: (at: number) => {ink: number, glow: number}, dim: number|null, plain: boolean}} Inks
 *  `kinds` by their numbers in the scene; `dim` in place of them where only hot actors have a colour; `glow` from 0 to 1; `plain` dots have neither arcs nor glow */

/** Paints `scene` over all of `pixels`. @param {Uint32Array} pixels @param {import("./stage-scene.js").Scene} scene @param {Inks} inks */
export function paint(pixels, scene, inks) {
  pixels.fill(inks.ground);
  const { x, y, kind, length } = scene.dots;
  for (let n = 0; n < length; n += 1) dot(pixels, scene, x[n], y[n], inks.dim ?? inks.kinds[kind[n]]);
  if (!inks.plain) {
    const most = scene.links.reduce((all, [, , rate]) => Math.max(all, rate), 1e-9);
    for (const [from, to, rate] of scene.links) {
      const [one, other] = [scene.hot[from], scene.hot[to]];
      if (one && other && one.disc >= 0 && other.disc >= 0) arc(pixels, scene, one, other, inks.hot(from).ink, 24 + Math.round(88 * Math.sqrt(rate / most)));
    }
    scene.hot.forEach((spot, at) => { if (spot.disc >= 0) glow(pixels, scene, spot, inks.hot(at)); });
  }
  scene.hot.forEach((spot, at) => { if (spot.index >= 0) dot(pixels, scene, spot.x, spot.y, inks.hot(at).ink); });
}

function dot(pixels, { width, height, size }, x, y, ink) {
  const [left, top] = [Math.round(x - size / 2), Math.round(y - size / 2)];
  if (left < 0 || top < 0 || left + size > width || top + size > height) return;
  for (let row = top; row < top + size; row += 1) {
    const at = row * width + left;
    for (let n = at; n < at + size; n += 1) pixels[n] = ink;
  }
}

/** A curve that bends to the side, point by point, each found from the one before by sums alone. */
function arc(pixels, scene, one, other, ink, share) {
  const [width, height] = [scene.width, scene.height];
  const [wide, high] = [other.x - one.x, other.y - one.y];
  const steps = Math.ceil(Math.hypot(wide, high)) || 1;
  const [bendX, bendY] = [one.x + other.x - high * 0.32 - 2 * one.x, one.y + other.y + wide * 0.32 - 2 * one.y];
  const [turnX, turnY] = [wide - bendX, high - bendY];
  let [x, y] = [one.x + 0.5, one.y + 0.5];
  let [dx, dy] = [(bendX + turnX / steps) / steps, (bendY + turnY / steps) / steps];
  const [ddx, ddy] = [(2 * turnX) / (steps * steps), (2 * turnY) / (steps * steps)];
  const rest = 256 - share;
  const [inkEnds, inkMiddle] = [(ink & 0xff00ff) * share, (ink & 0xff00) * share];
  for (let n = 0; n <= steps; n += 1) {
    if (x >= 0 && y >= 0 && x < width && y < height) {
      const at = (y | 0) * width + (x | 0);
      const under = pixels[at];
      pixels[at] = 0xff000000 | ((((under & 0xff00ff) * rest + inkEnds) >>> 8) & 0xff00ff) | ((((under & 0xff00) * rest + inkMiddle) >>> 8) & 0xff00);
    }
    x += dx; y += dy; dx += ddx; dy += ddy;
  }
}

/** Light around a dot, the wider the hotter. */
function glow(pixels, { width, height, size }, spot, { ink, glow: heat }) {
  const reach = Math.round(Math.max(size, 2) * (1.2 + 2.8 * heat));
  const [middleX, middleY] = [Math.round(spot.x), Math.round(spot.y)];
  for (let y = Math.max(middleY - reach, 0); y <= Math.min(middleY + reach, height - 1); y += 1) {
    for (let x = Math.max(middleX - reach, 0); x <= Math.min(middleX + reach, width - 1); x += 1) {
      const far = ((x - middleX) ** 2 + (y - middleY) ** 2) / (reach * reach);
      if (far < 1) blend(pixels, y * width + x, ink, Math.round((40 + 130 * heat) * (1 - far) ** 2));
    }
  }
}
