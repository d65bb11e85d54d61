// Where groups that talk with each other are drawn: they repel each other, links pull, and all are drawn to the middle. A worker of its own.

/** @typedef {{sizes: number[], links: [number, number, number][], wide: number}} Asked groups' actors, what goes between groups, and how much wider than high the picture is */

/** Places from 0 to 1, x and y in turn; the same for the same groups. @param {Asked} asked */
export function settle({ sizes, links, wide }) {
  const count = sizes.length;
  const radius = sizes.map((size) => Math.sqrt(size) + 1.2);
  const unit = Math.sqrt(radius.reduce((sum, one) => sum + one * one, 0) * 5);
  const x = sizes.map((_, n) => wide * unit * Math.sqrt((n + 0.5) / count) * Math.cos(n * 2.399963) * 0.5);
  const y = sizes.map((_, n) => unit * Math.sqrt((n + 0.5) / count) * Math.sin(n * 2.399963) * 0.5);
  const most = links.reduce((all, [, , rate]) => Math.max(all, rate), 1e-9);
  for (let round = 0; round < ROUNDS; round += 1) {
    const heat = 1 - round / ROUNDS;
    const [pushX, pushY] = [new Float64Array(count), new Float64Array(count)];
    for (let a = 0; a < count; a += 1) {
      pushX[a] -= (x[a] / wide) * 0.02;
      pushY[a] -= y[a] * 0.02;
      for (let b = a + 1; b < count; b += 1) {
        const [dx, dy] = [x[a] - x[b] || 0.01, y[a] - y[b]];
        const far = dx * dx + dy * dy + 0.01;
        const touch = radius[a] + radius[b];
        const push = (touch * 0.6) / far + (far < touch * touch ? 0.4 * (touch / Math.sqrt(far) - 1) : 0);
        pushX[a] += dx * push; pushY[a] += dy * push;
        pushX[b] -= dx * push; pushY[b] -= dy * push;
      }
    }
    for (const [a, b, rate] of links) {
      const pull = 0.03 * Math.sqrt(rate / most);
      const [dx, dy] = [(x[b] - x[a]) * pull, (y[b] - y[a]) * pull];
      pushX[a] += dx; pushY[a] += dy;
      pushX[b] -= dx; pushY[b] -= dy;
    }
    for (let n = 0; n < count; n += 1) {
      const step = Math.min(1, (unit * 0.1 * heat) / (Math.hypot(pushX[n], pushY[n]) || 1));
      x[n] += pushX[n] * step;
      y[n] += pushY[n] * step;
    }
  }
  return fitted(x, y, radius);
}

/** All of them within the picture, with room for their discs. */
function fitted(x, y, radius) {
  const [left, right] = [Math.min(...x.map((at, n) => at - radius[n])), Math.max(...x.map((at, n) => at + radius[n]))];
  const [top, bottom] = [Math.min(...y.map((at, n) => at - radius[n])), Math.max(...y.map((at, n) => at + radius[n]))];
  const places = new Float32Array(x.length * 2);
  for (let n = 0; n < x.length; n += 1) {
    places[n * 2] = 0.06 + 0.88 * ((x[n] - left) / (right - left || 1));
    places[n * 2 + 1] = 0.06 + 0.84 * ((y[n] - top) / (bottom - top || 1));
  }
  return places;
}

const ROUNDS = 150;

if (globalThis.WorkerGlobalScope && globalThis instanceof globalThis.WorkerGlobalScope) {
  addEventListener("message", ({ data }) => postMessage({ number: data.number, places: settle(data.asked) }));
}
