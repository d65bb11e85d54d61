// What is wrong, by what a node's door says: the worst first, each with where to look.

/** Since when each has held, by its name. */
const since = new Map();
const ORDER = { bad: 0, warn: 1, hint: 2 };

/** @param {any} status @param {any[]} shards @param {any} waits @param {number} at
 * @returns {{id: string, level: string, title: string, text: string, since: number, page: string, look: string}[]} */
export function findings(status, shards, waits, at) {
  const found = [];
  const say = (id, level, title, text, page, look) => found.push({ id, level, title, text, page, look, since: at });
  for (const { id, name, status: standing, why } of status.cluster.members) {
    if (standing === "active" || standing === "left") continue;
    const dead = /dead|gone|evict|fail|lost|remov/.test(`${standing} ${why ?? ""}`);
    const text = why ? String(why) : "Its actors answer from the other nodes.";
    say(`member ${id}`, dead ? "bad" : "warn", `${name} is ${standing}`, text, "#/nodes", "Show nodes");
  }
  const here = status.node.name;
  if (!status.node.ready) {
    say("ready", "bad", `${here} is not ready`, "It takes no calls, or is about to leave.", "#/nodes", "Show nodes");
  }
  if (status.table?.failing) {
    say("table", "bad", "The table's store fails", String(status.table.failing), "#/nodes", "Show nodes");
  }
  shards.forEach((shard, index) => {
    if (shard.shedding_per_mille > 0) {
      const share = (shard.shedding_per_mille / 10).toFixed(0);
      say(`shed ${index}`, "bad", `${here} turns away ${share} % of outside calls`,
        `Thread ${index} has more work than it can do.`, "#/kinds", "Which method takes its time");
    } else if (shard.busy > 0.9) {
      say(`busy ${index}`, "warn", `Thread ${index} of ${here} is ${(shard.busy * 100).toFixed(0)} % busy`,
        `${shard.activations} actors are on it.`, "#/kinds", "Which method takes its time");
    }
  });
  for (const shard of waits.stuck_shards ?? []) {
    say(`stuck ${JSON.stringify(shard)}`, "bad", `A thread of ${here} is stuck in a turn without an await`,
      "What blocks or computes for long belongs in spawn_blocking.", "#/waits", "Show waits");
  }
  if (waits.turns?.length) {
    const first = waits.turns[0];
    say("long", "warn", `${waits.turns.length} turns run for over 2 s`, `${first.actor} is one of them.`, "#/waits", "Who waits for whom");
  }
  for (const { id } of found) if (!since.has(id)) since.set(id, at);
  for (const id of since.keys()) if (!found.some((finding) => finding.id === id)) since.delete(id);
  return found
    .map((finding) => ({ ...finding, since: since.get(finding.id) }))
    .sort((a, b) => ORDER[a.level] - ORDER[b.level] || a.since - b.since);
}
