// An overview out of what one node's door says: its own figures, and of the others what they report to it.
import { findings } from "./findings.js";

/** Seconds that are kept while the page is open. */
const KEPT = 600;
/** @type {{at: number, calls: number, failed: number, p99: number|null, active: number, away: number|null}[]} */
let points = [];
/** @type {any} */
let last = null;

const sum = (list, of) => list.reduce((all, one) => all + (of(one) ?? 0), 0);

/** The p99 of what was counted since `before`, over all methods: classes are added, percentiles never.
 * @param {any[]} methods @param {Map<string, number>} before @param {Map<string, number>} now */
function p99(methods, before, now) {
  const classes = new Map();
  for (const { kind, method, run } of methods) {
    for (const [end, seen] of run?.buckets ?? []) {
      const name = `${kind}\n${method}\n${end}`;
      now.set(name, seen);
      const grown = seen - (before.get(name) ?? 0);
      if (grown > 0) classes.set(end, (classes.get(end) ?? 0) + grown);
    }
  }
  let left = sum([...classes.values()], (n) => n) * 0.99;
  for (const [end, seen] of [...classes].sort(([a], [b]) => a - b)) {
    left -= seen;
    if (left <= 0) return end / 1e6;
  }
  return null;
}

/** @param {any} status @param {any} methods @param {any} waits @param {any} moves @param {number} at */
export function overview(status, methods, waits, moves, at) {
  const figures = status.figures ?? {};
  const far = (figures.greenroom_messages_away_total ?? 0) + (figures.greenroom_messages_abroad_total ?? 0);
  const all = far + (figures.greenroom_messages_near_total ?? 0) + (figures.greenroom_messages_beside_total ?? 0);
  const buckets = new Map();
  const now = {
    at, far, all, buckets, node: status.node.id, turns: status.turns,
    failed: sum(methods.methods, (m) => sum(Object.values(m.failed), (n) => n)),
    busy: status.shards.map((shard) => shard.busy_seconds),
    run: p99(methods.methods, last?.buckets ?? new Map(), buckets),
  };
  // A node that was started again counts from nothing.
  const before = last && last.node === now.node && last.turns <= now.turns ? last : null;
  const seconds = before ? Math.max((at - before.at) / 1000, 0.1) : 1;
  if (!before) points = [];
  const active = status.cluster.members.filter((member) => member.status === "active");
  if (before) {
    const turns = now.turns - before.turns;
    const failed = now.failed - before.failed;
    points.push({
      at, calls: turns / seconds, failed: failed / seconds, p99: now.run,
      active: sum(active, (member) => member.activations),
      away: now.all > before.all ? (far - before.far) / (now.all - before.all) : points.at(-1)?.away ?? null,
    });
  }
  points = points.filter((point) => point.at > at - KEPT * 1000);
  const shards = status.shards.map((shard, index) => ({
    ...shard, busy: before ? Math.min((now.busy[index] - before.busy[index]) / seconds, 1) : 0,
  }));
  last = now;
  return {
    at, status, points, shards, moves, waits,
    methods: methods.methods,
    here: status.node.name,
    system: status.cluster.name,
    nodes: status.cluster.members.map((member) => ({
      ...member, shards: member.id === status.node.id ? shards : [],
      kinds: member.kinds.filter((kind) => kind !== "topics" && !kind.startsWith("greenroom.")),
    })),
    findings: findings(status, shards, waits, at),
  };
}
