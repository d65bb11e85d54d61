/** Against the real program: a node in its own process. Skipped where there is none, unless `GREENROOM_LANGUAGES=all`. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import typescript from "typescript";

import { ActorError, NotLetIn, Refused, Unknown, actor, type Host, type Timer } from "../src/index.js";
import { Program } from "../src/testing.js";
import { door, Problem } from "../src/http.js";

const skip = !process.env.GREENROOM_BIN && process.env.GREENROOM_LANGUAGES !== "all" && "no program: set GREENROOM_BIN";

const member = actor("ts_member", {
  state: () => ({ seen: 0 }),
  methods: {
    async see(c) {
      return (c.state.seen += 1);
    },
    async call_back(c, { key }: { key: string }): Promise<number> {
      return (await c.ref("ts_hall", key, { timeout: 5000 }).enter!({ name: "x" })) as number;
    },
    async panic() {
      throw new TypeError("no");
    },
    async big(_, { number }: { number: bigint | number }) {
      return { number, is: typeof number };
    },
  },
});

const hall = actor("ts_hall", {
  state: () => ({ entered: [] as string[] }),
  methods: {
    async enter(c, { name, times = 1 }: { name: string; times?: number }) {
      for (let at = 0; at < times; at++) {
        await c.ref(member, name, { timeout: 5000 }).see();
        c.state.entered.push(name);
      }
      return c.state.entered.length;
    },
    async circle(c, { name }: { name: string }) {
      return c.ref(member, name, { timeout: 5000 }).call_back({ key: c.key });
    },
    async tick(c, { text }: { text: string }) {
      c.state.entered.push(text);
    },
    later(c) {
      c.after(20, "tick", { text: "later" });
    },
  },
  reads: {
    async last(c) {
      return c.state.entered.at(-1) ?? "";
    },
    async *names(c, { start = 0 }: { start?: number }) {
      yield* c.state.entered.slice(start);
    },
  },
});

const purse = actor("ts_purse", {
  state: () => ({ balance: 0 }),
  persistent: true,
  save: "turn",
  methods: {
    async deposit(c, { amount }: { amount: number }) {
      return (c.state.balance += amount);
    },
    async pay(c, { amount }: { amount: number }) {
      if (amount > c.state.balance) throw new ActorError("Empty", { balance: c.state.balance });
      return (c.state.balance -= amount);
    },
  },
  reads: { get: async (c) => c.state.balance },
});

const counter = actor("ts_counter", {
  state: () => ({ words: [] as string[] }),
  reliable: true,
  start: "Init",
  on: {
    begin: { run: ["Init"] },
    word: { run: ["Counting"], defer: ["Init"], ignore: ["Done"] },
    close: { run: ["Counting"] },
  },
  methods: {
    begin: async (c) => c.jump("Counting"),
    async word(c, { word }: { word: string }) {
      c.state.words.push(word);
    },
    async close(c, { state }: { state: string }) {
      c.state.words.push("close");
      c.jump(state || "Done");
      if (!state) throw new Error("in the middle");
    },
  },
  reads: { look: async (c) => [c.machineState, ...c.state.words] },
});

const urn = actor("ts_urn", {
  state: () => ({ drawn: [] as number[] }),
  reliable: true,
  methods: {
    choose: async (c) => c.state.drawn.push(await c.choose(Math.random)),
    draw: async (c) => c.state.drawn.push(Math.random()),
    async later(c) {
      c.after(10, "choose");
    },
    async ask(c, { other }: { other: string }) {
      c.state.drawn.push(...((await c.ref("ts_urn", other).look!()) as number[]));
    },
  },
  reads: { look: async (c) => c.state.drawn },
});

const pouch = actor("ts_pouch", {
  state: () => ({ coins: 0, taken: [] as number[] }),
  reliable: true,
  methods: {
    async pay(c, { to, coins }: { to: string; coins: number }): Promise<number> {
      c.state.coins -= coins;
      c.ref("ts_pouch", to).$send.take!({ coins });
      if (coins === 13) throw new Error("thirteen");
      return c.state.coins;
    },
    async take(c, { coins }: { coins: number }) {
      c.state.coins += coins;
      c.state.taken.push(coins);
    },
    async later(c, { to, coins }: { to: string; coins: number }) {
      c.after(20, "pay", { to, coins });
    },
    async ask(c, { to }: { to: string }): Promise<void> {
      await c.ref("ts_pouch", to).take!({ coins: 1 });
    },
    async close(c) {
      c.halt();
    },
  },
  reads: { look: async (c) => [c.state.coins, c.state.taken] },
});

const listener = actor("ts_listener", {
  state: () => ({ heard: [] as unknown[] }),
  activated: (c) => c.subscribe("news/ts", "hear", "text"),
  methods: {
    async hear(c, { text }: { text: string }) {
      c.state.heard.push(text);
    },
    leave: (c) => c.unsubscribe("news/ts"),
    async dun(c) {
      await c.remind("hear", { args: { text: "reminded" }, after: 1000 });
      c.deactivate();
    },
    async later(c) {
      await c.remind("hear", { after: 3_600_000, every: 60_000, name: "later" });
      const [reminder] = await c.reminders();
      await c.forget("later");
      return [reminder?.name, reminder?.method, reminder?.every_ms, await c.reminders()];
    },
  },
  reads: { all: async (c) => c.state.heard },
});

const guest = actor("ts_guest", {
  async activated(c) {
    const said = await c.ref("ts_foyer", c.key).enter!();
    if (said) throw new Error(String(said));
  },
  methods: { async hello() {} },
});

const foyer = actor("ts_foyer", {
  methods: {
    async enter(c): Promise<string> {
      return c.ref("ts_guest", c.key).hello!().then(() => "", String);
    },
  },
});

const BY = { timeout: 10_000 };

function at(name: string, run: (node: Program, host: Host) => Promise<void>): void {
  test(name, { skip }, async () => {
    const node = await Program.start();
    try {
      const host = await node.host([hall, member, purse, listener, guest, foyer]);
      await run(node, host).finally(() => host.close());
    } finally {
      await node.stop();
    }
  });
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

at("a kind is there for all as soon as it is served", async (node, host) => {
  assert.equal(await host.ref(hall, "great", BY).enter({ name: "ada", times: 2 }), 2);
  const client = await node.client();
  assert.equal(await client.ref(hall, "great", BY).enter({ name: "bob" }), 3);
  assert.equal(await door(node.http).ref<typeof hall>("ts_hall", "great").enter({ name: "cy" }), 4);
  await client.close();
});

at("a cycle through the hook of an activation is named at once", async (_, host) => {
  for (const key of ["a", "b", "c", "d"]) {
    await assert.rejects(host.ref(guest, key, BY).hello(), new RegExp(`ts_guest/${key} -> ts_foyer/${key} -> ts_guest/${key}`));
  }
});

at("a stream of a host is consumed by clients", async (node, host) => {
  await host.ref(hall, "h", BY).enter({ name: "ada", times: 200 });
  const client = await node.client();
  assert.deepEqual(await all(client.ref(hall, "h", BY).names({ start: 1 })), Array<string>(199).fill("ada"));
  await client.close();
});

at("an actor hears a topic and its reminders", async (_, host) => {
  const one = host.ref(listener, "l", BY);
  while ((await one.all()).length === 0) await host.topic<string>("news/ts").publish("news");
  await one.leave();
  await one.dun();
  while (!(await one.all()).includes("reminded")) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(await one.later(), ["later", "hear", 60_000, []]);
});

at("errors have their classes, and the door its problems", async (node, host) => {
  await assert.rejects(host.ref(purse, "ada", BY).pay({ amount: 3 }), (error) => error instanceof ActorError && error.name === "Empty" && error.fields?.balance === 0);
  await assert.rejects(host.ref(member, "ada", BY).panic(), (error) => error instanceof Unknown && error.reason === "Panicked" && /TypeError: no/.test(error.message));
  await assert.rejects(host.ref(hall, "h", BY).circle({ name: "m" }), (error) => error instanceof Unknown && /Cycle/.test(error.message));
  await assert.rejects(host.ref("no_such_kind", "h", BY).enter!(), (error) => error instanceof Refused && error.reason === "UnknownKind");
  await assert.rejects(door(node.http).ref<typeof purse>("ts_purse", "ada").pay({ amount: 3 }), (error) => error instanceof Problem && JSON.stringify(error.error) === '{"Empty":{"balance":0}}');
});

test("a reliable turn is one commit with what it sends", { skip }, async () => {
  const node = await Program.start("--journal", "memory:");
  try {
    const host = await node.host([pouch]);
    const [ada, bob] = [host.ref(pouch, "ada", BY), host.ref(pouch, "bob", BY)];
    assert.equal(await ada.pay({ to: "bob", coins: 5 }), -5);
    await assert.rejects(ada.pay({ to: "bob", coins: 13 }), /thirteen/);
    assert.equal(await ada.pay({ to: "bob", coins: 2 }), -7);
    await ada.later({ to: "bob", coins: 1 });
    while ((await bob.look() as [number, number[]])[1].length < 3) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(await bob.look(), [8, [5, 2, 1]]);
    await assert.rejects(ada.ask({ to: "bob" }), /send it one-way/);
    await host.close();
    // What is kept is there again at the next host, and goes with who halts.
    const next = await node.host([pouch]);
    const again = next.ref(pouch, "bob", BY);
    assert.deepEqual([await next.ref(pouch, "ada", BY).look(), await again.look()], [[-8, []], [8, [5, 2, 1]]]);
    await again.close();
    assert.deepEqual(await again.look(), [0, []]);
    await next.close();
  } finally {
    await node.stop();
  }
});

test("a browser's calls under one idempotency key run once, and carry a context", { skip }, async () => {
  const node = await Program.start("--journal", "memory:");
  const context = { tenant: "größe, a=b" };
  const echo = actor("ts_echo", { state: () => ({}), methods: { told: async (c) => c.context } });
  try {
    const host = await node.host([pouch, echo]);
    const ada = door(node.http).ref<typeof pouch>("ts_pouch", "ada");
    const once = { idempotencyKey: "17", timeout: 60_000 };
    assert.deepEqual([await ada.pay({ to: "bob", coins: 5 }, once), await ada.pay({ to: "bob", coins: 5 }, once)], [-5, -5]);
    await assert.rejects(ada.pay({ to: "bob", coins: 6 }, once), /used for another request/);
    assert.deepEqual(await door(node.http).ref<typeof echo>("ts_echo", "e").told({}, { context }), context);
    await assert.rejects(ada.look({}, { signal: AbortSignal.abort(new Error("gone")) }), /gone/);
    await host.close();
  } finally {
    await node.stop();
  }
});

test("a reliable turn that would be another one after a failover is found", { skip }, async () => {
  const node = await Program.start("--journal", "memory:", "--rerun");
  try {
    const host = await node.host([urn]);
    const [one, other] = [host.ref(urn, "one", BY), host.ref(urn, "other", BY)];
    assert.deepEqual([await one.choose(), await one.choose(), await other.choose()], [1, 2, 1]);
    await one.later();
    await one.ask({ other: "other" });
    while ((await one.look()).length < 4) await new Promise((resolve) => setTimeout(resolve, 20));
    await assert.rejects(other.draw(), (error) => error instanceof Refused && /ts_urn\/other\.draw would commit.*field `drawn` differs.*cx\.choose/s.test(error.message));
    assert.equal((await other.look()).length, 1);
    await host.close();
  } finally {
    await node.stop();
  }
});

test("a state machine defers, ignores and jumps", { skip }, async () => {
  const node = await Program.start("--journal", "memory:");
  try {
    const host = await node.host([counter]);
    const words = host.ref(counter, "c", BY);
    let isEarly = true;
    const early = words.word({ word: "early" }).then(() => (isEarly = false));
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.deepEqual([isEarly, await words.look()], [true, ["Init"]]);
    await words.begin();
    // What had waited has run by now, and is answered.
    await early;
    await assert.rejects(words.begin(), /does not know "begin" in the state "Counting"/);
    // A turn that fails has not jumped.
    await assert.rejects(words.close({ state: "Nowhere" }), /no state "Nowhere"/);
    await assert.rejects(words.close({ state: "" }), /in the middle/);
    assert.deepEqual(await words.look(), ["Counting", "early"]);
    await host.close();
    // The state is there again at the next host.
    const next = await node.host([counter]);
    const again = next.ref(counter, "c", BY);
    assert.deepEqual(await again.look(), ["Counting", "early"]);
    await again.close({ state: "Done" });
    await assert.rejects(again.word({ word: "never" }), /ignores "word" in the state "Done"/);
    assert.deepEqual(await again.look(), ["Done", "early", "close"]);
    await next.close();
  } finally {
    await node.stop();
  }
});

at("state is saved before the caller is answered", async (node, host) => {
  assert.equal(await host.ref(purse, "ada", BY).deposit({ amount: 5 }), 5);
  await host.close();
  const again = await node.host([purse]);
  assert.equal(await again.ref(purse, "ada", BY).get(), 5);
  await again.close();
});

at("many calls at once are answered each", async (_, host) => {
  const found = await Promise.all(Array.from({ length: 2000 }, (_, at) => host.ref(member, `m${at % 50}`, BY).see()));
  assert.equal(found.reduce((one, other) => one + other), 50 * 820);
});

at("a timer that an earlier turn has set is cancelled, and a turn hears that its time is over", async (node, _) => {
  let timer: Timer | undefined;
  let heard = false;
  const ticker = actor("ts_ticker", {
    state: () => ({ ticks: 0 }),
    methods: {
      start: async (c) => void (timer = c.every(5, "tick")),
      tick: async (c) => void (c.state.ticks += 1),
      stop: async () => timer!.cancel(),
      work: (c) => new Promise<void>((resolve) => c.signal.addEventListener("abort", () => ((heard = true), resolve()))),
    },
    reads: { ticks: async (c) => c.state.ticks },
  });
  const host = await node.host([ticker]);
  try {
    const one = host.ref(ticker, "t", BY);
    await one.start();
    while ((await one.ticks()) < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    await one.stop();
    // A tick that was waiting already is behind it.
    const stopped = await one.ticks();
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(await one.ticks(), stopped);
    // It ends as its time does, so its caller may hear of either.
    await one.work({}, { timeout: 200 }).catch(() => {});
    while (!heard) await new Promise((resolve) => setTimeout(resolve, 5));
  } finally {
    await host.close();
  }
});

at("a host of which nothing is taken says why and ends", async (node) => {
  const topics = actor("topics", { reads: { look: async () => 1 } });
  const alone = async () => (await node.host([topics])).run();
  await assert.rejects(alone(), (error) => error instanceof NotLetIn && /topics is refused/.test(error.message));
});

at("what is generated of a kind calls it", async (node, host) => {
  const folder = mkdtempSync(join(tmpdir(), "generated-"));
  try {
    execFileSync(process.env.GREENROOM_BIN ?? "greenroom", ["generate", "--lang", "ts", "--node", node.http, "--out", folder]);
    const source = readFileSync(join(folder, "ts_purse.ts"), "utf8");
    writeFileSync(join(folder, "ts_purse.mjs"), typescript.transpileModule(source, { compilerOptions: { module: typescript.ModuleKind.ES2022 } }).outputText);
    const { tsPurse } = (await import(join(folder, "ts_purse.mjs"))) as { tsPurse: typeof purse };
    assert.equal(await host.ref(tsPurse, "g", BY).deposit({ amount: 3 }), 3);
    assert.equal(await host.ref(tsPurse, "g", BY).get(), 3);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

at("a timer ticks", async (_, host) => {
  await host.ref(hall, "h", BY).later();
  let last = "";
  while (last === "") last = await host.ref(hall, "h", BY).last();
  assert.equal(last, "later");
});

at("large integers come as BigInt, through the door's JSON too", async (node, host) => {
  const large = 2n ** 53n + 1n;
  assert.deepEqual(await host.ref(member, "m", BY).big({ number: large }), { number: large, is: "bigint" });
  const answer = await fetch(`${node.http}/ts_member/m/big`, { method: "POST", body: `{"number": ${large}}` });
  assert.equal(await answer.text(), `{"number":${large},"is":"bigint"}`);
});

at("a host that drains fails no call", async (node, first) => {
  const client = await node.client();
  let done = false;
  const failed: unknown[] = [];
  const paying = Array.from({ length: 8 }, async (_, number) => {
    let count = 0;
    while (!done) await client.ref(purse, `p${number}`, BY).deposit({ amount: 1 }).then(() => count++, (error: unknown) => failed.push(error));
    return count;
  });
  const second = await node.host([hall, member, purse]);
  await first.drain();
  await first.close();
  done = true;
  const counts = await Promise.all(paying);
  assert.deepEqual(failed, []);
  assert.deepEqual(await Promise.all(counts.map((_, number) => client.ref(purse, `p${number}`, BY).get())), counts);
  await client.close();
  await second.close();
});

at("a node that starts again is dialled again", async (node, host) => {
  assert.equal(await host.ref(member, "m", BY).see(), 1);
  await node.restart();
  for (;;) {
    const found = await host.ref(member, "m", BY).see().catch((error: unknown) => {
      assert.ok(error instanceof Refused || error instanceof Unknown);
    });
    if (found === 1) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});
