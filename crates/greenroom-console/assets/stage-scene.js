// Where everything on the Stage is drawn: a disc for each node, a sector for each of its threads, a dot for each so many actors, and the
// places of the hot ones among them. Places are computed from counts alone, so that they stay while nothing changes.

const GOLDEN = Math.PI * (3 - Math.sqrt(5));
/** Dots that are drawn at most, and how wide they are where there are many, and where there are few. */
const DOTS_MAX = 120_000;
const SIZE_MANY = 4;
const SIZE_FEW = 9;
/** How far apart dots are at most: half of it, as places go. */
const SPREAD_MAX = 22;
/** Room for a name below a disc, and around it. */
const LABEL = 34;
const RIM = 12;

/** @typedef {{x: number, y: number, radius: number, name: string, sub: string, shards: {busy: number, from: number, length: number}[]}} Disc */
/** @typedef {{x: number, y: number, disc: number, index: number, kind: string}} Spot a hot actor's place; its dot's index, if it has one */
/** @typedef {{width: number, height: number, size: number, per: number, discs: Disc[], dots: {x: Float32Array, y: Float32Array, kind: Uint16Array, length: number},
 *   kinds: string[], hot: Spot[], links: [number, number, number][]}} Scene */

/** A number that a text always has. @param {string} text */
export function hashed(text) {
  let hash = 2166136261;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 16777619) >>> 0;
  return hash;
}

export const kindOf = (/** @type {string} */ actor) => actor.slice(0, Math.max(actor.indexOf("/"), 0));

/** How many columns give the largest discs, and their radius. @param {number} count @param {number} width @param {number} height @param {number} scale */
function grid(count, width, height, scale) {
  let best = { columns: 1, radius: 0 };
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const radius = Math.min(width / columns, height / rows - LABEL * scale) / 2 - RIM * scale;
    if (radius > best.radius) best = { columns, radius };
  }
  return best;
}

/** How many actors a dot stands for, how wide it is, and how far from the next. @param {number[]} fullest for each node, the actors of its fullest thread times its threads
 * @param {number} all @param {number} radius @param {number} scale */
function grain(fullest, all, radius, scale) {
  const most = Math.max(...fullest, 1);
  const area = Math.PI * radius * radius * 0.6;
  let per = 1;
  while (all / per > DOTS_MAX || most / per > area) per *= 10;
  // The corners of the outermost dots are within the disc.
  const spread = Math.min((radius - SIZE_FEW * scale * 0.75) / Math.sqrt(most / per + 1), SPREAD_MAX * scale);
  const many = Math.min(SIZE_MANY * scale, Math.sqrt(area / (most / per)) * 0.9);
  const size = Math.max(1, Math.floor(Math.max(many, Math.min(SIZE_FEW * scale, spread * 0.4))));
  return { per, size, spread };
}

/** A scene of nodes as they are. @param {any} stage what the door says @param {number} width @param {number} height @param {number} scale pixels of the canvas for each of the page
 * @returns {Scene} */
export function byPlace(stage, width, height, scale) {
  const nodes = stage.nodes;
  const { columns, radius } = grid(nodes.length, width, height, scale);
  const rows = Math.ceil(nodes.length / columns);
  const sums = nodes.map((node) => node.shards.map((shard) => total(shard.counts)));
  const fullest = sums.map((shards) => Math.max(...shards, 0) * shards.length);
  const all = sums.flat().reduce((one, other) => one + other, 0);
  const { per, size, spread } = grain(fullest, all, radius, scale);
  const room = nodes.flatMap((node) => node.shards).reduce((sum, shard) => sum + dotsOf(shard.counts, per), 0);
  const dots = { x: new Float32Array(room), y: new Float32Array(room), kind: new Uint16Array(room), length: 0 };
  const kinds = [...new Set(nodes.flatMap((node) => node.shards.flatMap((shard) => Object.keys(shard.counts))))].sort();
  /** Where the dots of a kind on a thread begin, and how many there are. @type {Map<string, {from: number, count: number}>} */
  const ranges = new Map();
  const discs = nodes.map((node, index) => {
    const inRow = Math.min(columns, nodes.length - Math.floor(index / columns) * columns);
    const x = (width / inRow) * ((index % columns) + 0.5);
    const y = (height / rows) * (Math.floor(index / columns) + 0.5) - (LABEL * scale) / 2;
    const whole = (2 * Math.PI) / Math.max(node.shards.length, 1);
    const places = sectors(node.shards.map((shard) => dotsOf(shard.counts, per)), x, y, spread);
    node.shards.forEach((shard, number) => {
      let at = 0;
      for (const [kind, count] of ordered(shard.counts)) {
        const many = Math.ceil(count / per);
        ranges.set(`${node.node} ${number} ${kind}`, { from: dots.length, count: many });
        for (let n = 0; n < many; n += 1, at += 1) {
          dots.x[dots.length] = places[number][at * 2];
          dots.y[dots.length] = places[number][at * 2 + 1];
          dots.kind[dots.length] = kinds.indexOf(kind);
          dots.length += 1;
        }
      }
    });
    const actors = sums[index].reduce((one, other) => one + other, 0);
    const shards = node.shards.map((shard, number) => ({ busy: shard.busy, from: number * whole - Math.PI / 2, length: whole }));
    return { x, y, radius, name: node.node, sub: `${actors.toLocaleString("en")} actors`, shards };
  });
  const numbers = new Map(nodes.map((node, index) => [node.node, index]));
  const taken = new Set();
  const hot = stage.hot.map((one) => {
    const kind = kindOf(one.actor);
    const disc = numbers.get(one.node) ?? 0;
    const range = ranges.get(`${one.node} ${one.shard} ${kind}`);
    if (!range) return { x: discs[disc]?.x ?? 0, y: discs[disc]?.y ?? 0, disc, index: -1, kind };
    let index = range.from + (hashed(one.actor) % range.count);
    for (let n = 0; taken.has(index) && n < Math.min(range.count, 64); n += 1) index = range.from + ((index - range.from + 1) % range.count);
    taken.add(index);
    return { x: dots.x[index], y: dots.y[index], disc, index, kind };
  });
  return { width, height, size, per, discs, dots, kinds, hot, links: stage.edges.map(([from, to, rate]) => [from, to, rate]) };
}

const total = (counts) => Object.values(counts).reduce((one, other) => one + other, 0);
const dotsOf = (counts, per) => Object.values(counts).reduce((sum, count) => sum + Math.ceil(count / per), 0);
const ordered = (counts) => Object.entries(counts).sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1));

/** Places in sunflower order, each given to the thread in whose sector it is, until all have enough: x and y in turn.
 * @param {number[]} wanted @param {number} x @param {number} y @param {number} spread */
function sectors(wanted, x, y, spread) {
  const places = wanted.map((count) => new Float32Array(count * 2));
  const has = wanted.map(() => 0);
  let left = wanted.reduce((one, other) => one + other, 0);
  for (let n = 0; left > 0; n += 1) {
    const turn = (n * GOLDEN) % (2 * Math.PI);
    const sector = Math.floor((turn / (2 * Math.PI)) * wanted.length);
    if (has[sector] >= wanted[sector]) continue;
    const far = spread * Math.sqrt(n + 0.5);
    // Sectors begin at the top, as rings do.
    places[sector][has[sector] * 2] = x + far * Math.sin(turn);
    places[sector][has[sector] * 2 + 1] = y - far * Math.cos(turn);
    has[sector] += 1;
    left -= 1;
  }
  return places;
}

/** Which hot actors talk mostly among themselves: for each, the number of its group; at most so many groups, the hottest first.
 * @param {any} stage @param {number} most */
export function groups(stage, most) {
  const heard = stage.hot.map(() => /** @type {[number, number][]} */ ([]));
  for (const [from, to, rate] of stage.edges) { heard[from].push([to, rate]); heard[to].push([from, rate]); }
  const label = stage.hot.map((_, index) => index);
  for (let round = 0; round < 8; round += 1) {
    for (let at = 0; at < label.length; at += 1) {
      const votes = new Map();
      for (const [other, rate] of heard[at]) votes.set(label[other], (votes.get(label[other]) ?? 0) + rate);
      let [best, weight] = [label[at], votes.get(label[at]) ?? 0];
      for (const [name, votesOf] of votes) if (votesOf > weight) [best, weight] = [name, votesOf];
      label[at] = best;
    }
  }
  const numbers = new Map();
  for (const name of label) if (!numbers.has(name) && numbers.size < most) numbers.set(name, numbers.size);
  const of = label.map((name) => numbers.get(name) ?? -1);
  const sizes = new Array(numbers.size).fill(0);
  for (const group of of) if (group >= 0) sizes[group] += 1;
  const links = new Map();
  for (const [from, to, rate] of stage.edges) {
    const [one, other] = [of[from], of[to]].sort((a, b) => a - b);
    if (one >= 0 && one !== other) links.set(`${one} ${other}`, (links.get(`${one} ${other}`) ?? 0) + rate);
  }
  return { of, sizes, links: [...links].map(([ends, rate]) => [...ends.split(" ").map(Number), rate]) };
}

/** A scene of groups, at the places that the worker has found for them, which are from 0 to 1.
 * @param {any} stage @param {ReturnType<typeof groups>} grouped @param {Float32Array} places @param {number} width @param {number} height @param {number} scale @returns {Scene} */
export function byTalk(stage, grouped, places, width, height, scale) {
  const spread = 6 * scale;
  const discs = grouped.sizes.map((size, group) => ({
    x: places[group * 2] * width, y: places[group * 2 + 1] * height, radius: spread * (Math.sqrt(size) + 0.8), name: "", sub: "", shards: [],
  }));
  const has = grouped.sizes.map(() => 0);
  const kinds = [...new Set(stage.hot.map((one) => kindOf(one.actor)))].sort();
  const dots = { x: new Float32Array(stage.hot.length), y: new Float32Array(stage.hot.length), kind: new Uint16Array(stage.hot.length), length: 0 };
  const hot = stage.hot.map((one, at) => {
    const [disc, kind] = [grouped.of[at], kindOf(one.actor)];
    if (disc < 0) return { x: -1, y: -1, disc, index: -1, kind };
    const n = has[disc];
    has[disc] += 1;
    if (n === 0 && disc < 8) discs[disc].name = one.actor;
    const far = spread * Math.sqrt(n + 0.5) * 0.95;
    const index = dots.length;
    dots.x[index] = discs[disc].x + far * Math.sin(n * GOLDEN);
    dots.y[index] = discs[disc].y - far * Math.cos(n * GOLDEN);
    dots.kind[index] = kinds.indexOf(kind);
    dots.length += 1;
    return { x: dots.x[index], y: dots.y[index], disc, index, kind };
  });
  return { width, height, size: Math.round(SIZE_MANY * scale), per: 1, discs, dots, kinds, hot, links: stage.edges.map(([from, to, rate]) => [from, to, rate]) };
}
