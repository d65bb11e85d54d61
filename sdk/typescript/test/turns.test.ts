/** Turns, sessions and leases, against a scripted node. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { T, frame, payload } from "../src/frames.js";
import { ActorError, Cycle, Fenced, Refused, Unknown, actor, type AnyKind, type Context, type Host, type Schema } from "../src/index.js";
import { Lease, now, type Now } from "../src/lease.js";
import { Peer } from "./peer.js";

const users = actor("user", { reads: { may_post: async () => true } });

const seen: string[] = [];
const room = actor("chat_room", {
  state: () => ({ messages: [] as string[] }),
  methods: {
    async post(c, { user, text = "hello" }: { user: string; text?: string }) {
      c.state.messages.push(`${user}: ${text}`);
      return c.state.messages.length;
    },
    async ask(c, { user }: { user: string }): Promise<boolean> {
      try {
        return await c.ref(users, user, { timeout: 2000 }).may_post();
      } catch (error) {
        if (error instanceof Fenced) {
          seen.push("fenced");
          await c.ref(users, user).may_post().catch((again: unknown) => seen.push(again instanceof Fenced ? "again" : "not"));
        }
        throw error;
      }
    },
    async fail(_, { user }: { user: string }) {
      throw new ActorError("NotMember", { user });
    },
    async panic() {
      throw new TypeError("no");
    },
    async slow(c) {
      c.state.messages.push("1");
      await new Promise((resolve) => setTimeout(resolve, 50));
      c.state.messages.push("2");
      return c.signal.aborted;
    },
    async big(_, { number }: { number: bigint }) {
      return number + 1n;
    },
    compute(_, { ms }: { ms: number }) {
      for (const until = performance.now() + ms; performance.now() < until; );
    },
  },
  reads: {
    async *history(c, { start = 0 }: { start?: number }) {
      yield* c.state.messages.slice(start);
    },
    async count(c) {
      return c.state.messages.length;
    },
  },
});
const [POST, ASK, FAIL, PANIC, SLOW, BIG, COMPUTE, HISTORY] = [0, 1, 2, 3, 4, 5, 6, 7];

const counter = actor("counter", {
  state: () => ({ count: 0 }),
  persistent: true,
  save: "turn",
  methods: {
    async add(c, { by }: { by: number }) {
      return (c.state.count += by);
    },
    async break_off(c) {
      c.state.count += 1000;
      throw new Error("in the middle");
    },
  },
});

/** Opens once for each time that it is told to. */
class Gate {
  #opens = 0;
  #waits: (() => void)[] = [];

  open(): void {
    this.#opens += 1;
    this.#waits.shift()?.();
  }

  async pass(): Promise<void> {
    while (this.#opens === 0) await new Promise<void>((wake) => this.#waits.push(wake));
    this.#opens -= 1;
  }

  get isOpen(): boolean {
    return this.#opens > 0;
  }
}

/** What an actor does that says when it begins, and goes on when its test says so. */
let [began, goes] = [new Gate(), new Gate()];
async function act(c: Context<{ steps: number }>, what: string): Promise<void> {
  c.state.steps += 1;
  try {
    await reached();
    if (what === "call") await c.ref("users", "ada").may_post!();
    if (what === "send") await c.ref("users", "ada").$send.may_post!();
    if (what === "timer") c.after(1000, "act", { what });
    if (what === "move") await c.migrate("other");
    if (what === "consume") for await (const _ of (await c.ref("room", "lobby").history!()) as AsyncIterable<unknown>) await reached();
  } catch (error) {
    seen.push(error instanceof Fenced ? "fenced" : String(error));
    throw error;
  } finally {
    if (c.signal.reason instanceof Fenced) seen.push("aborted");
  }
  c.state.steps += 1;
}

async function reached(): Promise<void> {
  began.open();
  await goes.pass();
}

const acting = actor("acting", {
  state: () => ({ steps: 0 }),
  activated: async (c) => (c.key === "waits" ? act(c, "call") : undefined),
  deactivating: async (c) => (c.key === "lingers" ? reached() : undefined),
  methods: { act: (c, { what }: { what: string }) => act(c, what) },
  reads: {
    async *watch() {
      try {
        for (let at = 0; ; at++) {
          await reached();
          yield at;
        }
      } finally {
        seen.push("closed");
      }
    },
    async *count(c) {
      for (;;) yield c.state.steps;
    },
  },
});
const [ACT, WATCH, COUNT] = [0, 1, 2];

const ledger = actor("ledger", {
  state: () => ({ count: 0 }),
  reliable: true,
  methods: {
    async add(c, { by }: { by: number }) {
      return (c.state.count += by);
    },
    async break_off(c) {
      c.state.count += 1000;
      throw new Error("in the middle");
    },
  },
  reads: { get: async (c) => c.state.count },
});

/** No answer to an Alive makes a lease longer that a test has ended. */
function silent(peer: Peer): void {
  peer.answers = false;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}

function at(name: string, kinds: AnyKind[], run: (peer: Peer, host: Host) => Promise<void>, set: (peer: Peer) => void = () => {}): void {
  test(name, async () => {
    seen.length = 0;
    [began, goes] = [new Gate(), new Gate()];
    const peer = new Peer();
    set(peer);
    const host = await peer.host(...kinds);
    try {
      await run(peer, host);
    } finally {
      await host.close();
      peer.stop();
    }
  });
}

at("a turn runs at its seat, and each activation has its own memory", [room], async (peer) => {
  await peer.seat(1);
  await peer.seat(2, { key: "attic" });
  assert.deepEqual(await peer.call(POST, { user: "ada" }), [0, 1, undefined]);
  assert.deepEqual(await peer.call(POST, { user: "bob" }), [0, 2, undefined]);
  assert.deepEqual(await peer.call(POST, { user: "ada" }, 2), [0, 1, undefined]);
});

at("errors of its own travel by name, others are panics", [room], async (peer) => {
  await peer.seat();
  assert.deepEqual(await peer.call(FAIL, { user: "ada" }), [1, { NotMember: { user: "ada" } }, undefined]);
  assert.deepEqual(await peer.call(PANIC), [5, { Unknown: { Panicked: { message: "TypeError: no" } } }, undefined]);
});

at("a call names the turn that makes it", [room], async (peer) => {
  await peer.seat();
  const turn = peer.turn(ASK, { user: "ada" });
  const call = await peer.called();
  assert.deepEqual([call.turn, call.key, call.args], [turn, "ada", {}]);
  peer.reply(call.request, true);
  assert.equal((await peer.end()).value, true);
});

at("L22: integers beyond 2^53 are BigInt, and others keep their numbers", [room], async (peer) => {
  await peer.seat();
  // Of each two that follow one another, a float holds one.
  for (const number of [2n ** 53n + 1n, 2n ** 53n + 2n]) assert.deepEqual(await peer.call(BIG, { number }), [0, number + 1n, undefined]);
  assert.deepEqual(payload(2 ** 40).toString("hex"), "0101d30000010000000000");
  assert.deepEqual(payload({ at: new Date(0), none: undefined }).toString("latin1"), "\x01\x01\x81\xa2at\xb81970-01-01T00:00:00.000Z");
});

at("L17: a turn in JSON is answered in JSON, with integers beyond 2^53", [room], async (peer) => {
  await peer.seat();
  const json = (method: number, head: number, text: string) =>
    peer.say(frame(T.turn, (body) => body.varint(7).varint(1).varint(method).u8(1).varint(0).varint(0).bytes(Buffer.from([2, head])).bytes(Buffer.from(text))));
  for (const number of [2n ** 53n + 1n, 2n ** 53n + 2n]) {
    json(BIG!, 1, `{"number": ${number}}`);
    assert.deepEqual((await peer.hear(T.turnEnd)).reader.rest().toString("latin1"), `\x07\0\0\x02\x01${number + 1n}`);
  }
  json(FAIL!, 2, '{"user": "a 12345678901234567890"}');
  const { reader } = await peer.hear(T.turnEnd);
  assert.equal(reader.rest().toString("latin1", 5), '{"error":{"NotMember":{"user":"a 12345678901234567890"}},"says":"NotMember {\\"user\\":\\"a 12345678901234567890\\"}"}');
});

at("L24: a stream's step begins between exclusive turns, as its consumer has room", [room], async (peer) => {
  await peer.seat();
  await peer.call(POST, { user: "ada" });
  peer.turn(HISTORY);
  const { stream } = await peer.end();
  peer.turn(SLOW);
  peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(2).varint(0)));
  await peer.end();
  for (const [number, text] of [[0, "ada: hello"], [1, "1"]] as const) {
    const { reader } = await peer.hear(T.streamItem);
    assert.deepEqual([reader.varint(), reader.varint(), reader.rest()], [stream, number, payload(text)]);
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(peer.isQuiet);
  peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(64).varint(2)));
  await peer.hear(T.streamItem);
  const { reader } = await peer.hear(T.streamEnd);
  assert.deepEqual([reader.varint(), reader.varint(), reader.u8()], [stream, 3, 0]);
});

at("L24: a step that waits for room does not begin in a turn that has begun meanwhile", [acting], async (peer) => {
  await peer.seat();
  peer.turn(COUNT);
  const { stream } = await peer.end();
  peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(2).varint(0)));
  await peer.hear(T.streamItem);
  peer.turn(ACT, { what: "nothing" });
  await began.pass();
  peer.say(frame(T.credit, (body) => body.varint(1000)));
  await pause();
  goes.open();
  await peer.end();
  const { reader } = await peer.hear(T.streamItem);
  assert.deepEqual([reader.varint(), reader.varint(), reader.rest()], [stream, 1, payload(2)]);
}, (peer) => (peer.window = 1));

at("a stream is consumed in order", [], async (peer, host) => {
  const found: string[] = [];
  const reading = (async () => {
    for await (const item of host.ref(room, "lobby").history({ start: 1 })) found.push(item);
  })();
  const { request } = await peer.called();
  peer.reply(request, { "greenroom:stream": "7.0.1.2.3" });
  const { reader } = await peer.hear(T.ask);
  const number = reader.varint();
  reader.varint();
  reader.varint();
  assert.equal(reader.u8(), 11);
  peer.reply(number);
  const stream = number - 1;
  for (let at = 0; at < 40; at++) peer.say(frame(T.streamItem, (body) => body.varint(stream).varint(at).bytes(payload(String(at)))));
  peer.say(frame(T.streamEnd, (body) => body.varint(stream).varint(40).u8(0)));
  await reading;
  assert.deepEqual(found, Array.from({ length: 40 }, (_, at) => String(at)));
});

at("a caller gets its errors by their classes", [], async (peer, host) => {
  for (const [status, value, kind] of [
    [1, { NotMember: { user: "ada" } }, ActorError], [2, { Refused: { Overloaded: { queue: "q", bound: 3 } } }, Refused],
    [3, { Unknown: { Disconnected: { node: "b" } } }, Unknown], [4, { Cycle: ["a/1", "a/1"] }, Cycle], [77, null, Unknown],
  ] as const) {
    const call = host.ref(users, "ada").may_post();
    peer.reply((await peer.called()).request, value, status);
    await assert.rejects(call, kind);
  }
});

at("calls wait for credit and go in order", [], async (peer, host) => {
  const calls = Array.from({ length: 20 }, (_, at) => host.ref(users, `user-${at}`).may_post());
  await new Promise((resolve) => setTimeout(resolve, 30));
  for (let at = 0; at < 20; at++) {
    const { request, key } = await peer.called();
    assert.equal(key, `user-${at}`);
    peer.reply(request, true);
    peer.say(frame(T.credit, (body) => body.varint(40 * (at + 1))));
  }
  await Promise.all(calls);
}, (peer) => (peer.window = 60));

at("a caller that gives up says so", [], async (peer, host) => {
  const abort = new AbortController();
  const call = host.ref(users, "ada").may_post({ signal: abort.signal } as never);
  await peer.called();
  void call.catch(() => {});
  const other = host.ref(users, "ada", { signal: abort.signal }).may_post();
  const { request } = await peer.called();
  abort.abort(new Error("enough"));
  await assert.rejects(other, /enough/);
  assert.equal((await peer.hear(T.cancelCall)).reader.varint(), request);
});

at("L4: the state leaves with the reply in one frame, if it has changed", [counter], async (peer) => {
  await peer.seat(1, { state: { count: 5 } });
  assert.deepEqual(await peer.call(0, { by: 2 }), [0, 7, { count: 7 }]);
  assert.deepEqual(await peer.call(0, { by: 0 }), [0, 7, undefined]);
});

at("L21: a failed handler's half-changed memory is not saved", [counter], async (peer) => {
  await peer.seat(1, { state: { count: 5 } });
  assert.equal((await peer.call(1))[0], 5);
  assert.deepEqual(await peer.call(0, { by: 1 }), [0, 6, { count: 6 }]);
});

at("L21: a failed handler's half-changed memory is not committed", [ledger], async (peer) => {
  await peer.seat();
  assert.deepEqual(await peer.call(0, { by: 5 }), [0, 5, 5]);
  assert.equal((await peer.call(1))[0], 5);
  assert.deepEqual(await peer.call(2), [0, 5, undefined]);
});

at("L2: a host whose lease is over begins nothing, and its turns see Fenced", [room], async (peer, host) => {
  seen.length = 0;
  await peer.seat();
  peer.turn(ASK, { user: "ada" });
  await peer.called();
  const [session] = host.sessions.values();
  session!.lease.end();
  peer.turn(SLOW);
  await session!.over;
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(seen, ["fenced", "again"]);
  assert.ok(peer.isQuiet);
}, silent);

for (const what of ["call", "send", "timer"]) {
  at(`L2: a ${what} of a turn whose lease is over does not leave`, [acting], async (peer, host) => {
    await peer.seat();
    peer.turn(ACT, { what });
    await began.pass();
    const [session] = host.sessions.values();
    session!.lease.end();
    goes.open();
    await session!.over;
    await pause();
    assert.deepEqual(seen, ["fenced", "aborted"]);
    assert.ok(peer.isQuiet);
  }, silent);
}

for (const what of ["call", "move"]) {
  at(`L2: a ${what} looks at the lease when it is answered`, [acting], async (peer, host) => {
    await peer.seat();
    peer.turn(ACT, { what });
    goes.open();
    const request = what === "call" ? (await peer.called()).request : (await peer.hear(T.ask)).reader.varint();
    const [session] = host.sessions.values();
    session!.lease.end();
    peer.reply(request, true);
    await session!.over;
    await pause();
    assert.deepEqual(seen, ["fenced", "aborted"]);
    assert.ok(peer.isQuiet);
  }, silent);
}

for (const when of ["before", "after"]) {
  at(`L2: a stream looks at the lease ${when} each step`, [acting], async (peer, host) => {
    await peer.seat();
    peer.turn(WATCH);
    const { stream } = await peer.end();
    const credit = () => peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(1).varint(0)));
    if (when === "after") {
      credit();
      await began.pass();
    }
    const [session] = host.sessions.values();
    session!.lease.end();
    if (when === "before") credit();
    goes.open();
    await session!.over;
    await pause();
    assert.ok(!began.isOpen, "a step has begun");
    assert.ok(peer.isQuiet);
  }, silent);
}

at("L2: who consumes a stream looks at the lease at each item", [acting], async (peer, host) => {
  await peer.seat();
  peer.turn(ACT, { what: "consume" });
  await began.pass();
  goes.open();
  peer.reply((await peer.called()).request, { "greenroom:stream": "7.0.1.2.3" });
  const opened = (await peer.hear(T.ask)).reader.varint();
  peer.reply(opened);
  const item = (at: number) => peer.say(frame(T.streamItem, (body) => body.varint(opened - 1).varint(at).bytes(payload(at))));
  item(0);
  await began.pass();
  const [session] = host.sessions.values();
  session!.lease.end();
  item(1);
  goes.open();
  await session!.over;
  await pause();
  assert.ok(!began.isOpen, "an item was taken");
  assert.deepEqual(seen, ["fenced", "aborted"]);
}, silent);

at("L1: a lane that stands here is said to be dropped when its seats are", [room], async (peer, host) => {
  await peer.seat();
  peer.turn(ASK, { user: "ada" });
  await peer.called();
  const [lane] = [...host.sessions.values()][0]!.lanes.values();
  peer.controlSocket!.write(frame(T.laneLost, (body) => body.varint(0)));
  while (!peer.control.some(({ type }) => type === T.laneDropped)) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.ok(lane!.isDead && lane!.seats.size === 0);
  await pause();
  assert.deepEqual(seen, ["fenced", "again"]);
});

at("L5: what waits for something else hears of it, and streams are closed", [acting], async (peer, host) => {
  await peer.seat();
  peer.turn(WATCH);
  const { stream } = await peer.end();
  peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(1).varint(0)));
  goes.open();
  await peer.hear(T.streamItem);
  await began.pass();
  peer.turn(ACT, { what: "nothing" });
  await began.pass();
  const [session] = host.sessions.values();
  session!.lose("a test");
  await pause();
  goes.open();
  await pause();
  assert.deepEqual(seen, ["closed", "aborted"]);
});

at("L5: an activation that goes on asks nothing once its session is lost", [acting], async (peer, host) => {
  peer.activate(1, "waits");
  await began.pass();
  const [session] = host.sessions.values();
  session!.lose("a test");
  goes.open();
  await pause();
  assert.deepEqual(seen, ["fenced", "aborted"]);
});

at("L5: before a Hello turns are abandoned and seats dropped", [room], async (peer, host) => {
  seen.length = 0;
  await peer.seat();
  peer.turn(ASK, { user: "ada" });
  await peer.called();
  const [lane] = [...host.sessions.values()][0]!.lanes.values();
  peer.controlSocket!.destroy();
  await peer.joined(2);
  assert.ok(lane!.isDead && lane!.seats.size === 0);
  assert.deepEqual(seen, ["fenced", "again"]);
  assert.equal((peer.hellos[1]!.ended as { session: number }).session, 1);
  await peer.seat();
  assert.equal((await peer.call(POST, { user: "ada" }))[1], 1);
});

at("L11: what a dead turn asks fails before the seat is said to be released", [room], async (peer) => {
  seen.length = 0;
  await peer.seat();
  const turn = peer.turn(ASK, { user: "ada" });
  const { request } = await peer.called();
  peer.say(frame(T.deactivate, (body) => body.varint(1).u8(1).u8(2)));
  await peer.hear(T.released);
  peer.reply(request, true);
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(seen, ["fenced", "again"]);
  assert.ok(peer.isQuiet && turn > 0);
});

for (const [what, hears] of [["call", ["fenced", "aborted"]], ["nothing", ["aborted"]]] as const) {
  at(`L11: a dead turn that goes on (${what}) says nothing while its seat's end takes its time`, [acting], async (peer) => {
    await peer.seat(1, { key: "lingers" });
    peer.turn(ACT, { what });
    await began.pass();
    peer.say(frame(T.deactivate, (body) => body.varint(1).u8(1).u8(2)));
    await began.pass();
    goes.open();
    await pause();
    assert.deepEqual(seen, hears);
    goes.open();
    await peer.hear(T.released);
    assert.ok(peer.isQuiet);
  });
}

at("a handler that computes past its lease loses nothing", [room], async (peer, host) => {
  await peer.seat();
  const [session] = host.sessions.values();
  // The peer is on the same loop: its answers are late, but it is the worker that asks.
  assert.equal((await peer.call(COMPUTE, { ms: 300 }))[0], 0);
  assert.ok(!session!.isLost);
}, (peer) => (peer.leaseMs = 1000));

at("a node that answers no Alive loses the session", [room], async (_, host) => {
  const [session] = host.sessions.values();
  await session!.over;
  assert.match(session!.why, /lease/);
}, (peer) => ([peer.leaseMs, peer.answers] = [200, false]));

for (const bad of [
  Buffer.from([0, 0, 0, 0, 1]), Buffer.from([255, 255, 255, 255, 36]), frame(T.turn, (body) => body.varint(1).varint(9)),
  frame(T.deactivate, (body) => body.varint(5)), frame(T.activate, (body) => body.u8(0x80).u8(0)),
]) {
  at(`a bad frame (${bad.toString("hex")}) ends the lane, and the session joins another`, [room], async (peer) => {
    peer.say(bad);
    await peer.joined(2);
    await peer.hear(T.goodbye);
    await peer.seat(2);
    assert.equal((await peer.call(POST, { user: "ada" }, 2))[0], 0);
    assert.equal(peer.control.filter(({ type }) => type === T.laneDropped).length, 1);
  });
}

at("unknown frames and frames in pieces do no harm", [room], async (peer) => {
  await peer.seat();
  const turn = frame(T.turn, (body) => body.varint(99).varint(1).varint(POST!).u8(1).varint(0).varint(0).bytes(payload({ user: "ada" })));
  for (const byte of Buffer.concat([frame(200), turn])) peer.say(Buffer.from([byte]));
  assert.equal((await peer.end()).turn, 99);
});

at("a schema checks arguments, and the error says where", [], async () => {
  const schema: Schema = {
    "~standard": {
      validate: (value) => (typeof (value as { user: unknown }).user === "string" ? { value } : { issues: [{ message: "expected a string", path: ["user"] }] }),
      jsonSchema: { input: () => ({ type: "object", properties: { user: { type: "string" } } }) },
    },
  };
  const peer = new Peer();
  const host = await peer.host(actor("checked", { methods: { run: async (_, { user }: { user: string }) => user }, schemas: { run: { arguments: schema } } }));
  await peer.seat();
  assert.deepEqual(await peer.call(0, { user: "ada" }), [0, "ada", undefined]);
  assert.deepEqual(await peer.call(0, { user: 1 }), [6, { Refused: { Invalid: { field: "user", message: "expected a string" } } }, undefined]);
  await host.close();
  peer.stop();
});

at("L6: the first lease counts from the Hello", [room], async (peer, host) => {
  const [session] = host.sessions.values();
  assert.ok(session!.lease.until.monotonic <= peer.greeted.monotonic + BigInt(peer.leaseMs * 990_000));
}, silent);

test("L10: a lease ends by each of its clocks, of which the wall's goes on while the machine is suspended", (t) => {
  const clocks = { monotonic: 1_000_000_000n, wall: 50_000 };
  t.mock.method(process.hrtime, "bigint", () => clocks.monotonic);
  t.mock.method(Date, "now", () => clocks.wall);
  for (const pass of [() => (clocks.monotonic += 5_000_000_000n), () => (clocks.wall += 5_000)]) {
    const lease = new Lease();
    lease.begin(now(), 5000);
    assert.ok(!lease.isOver());
    pass();
    assert.ok(lease.isOver());
  }
});

test("L6, L10: the lease counts from when it was asked for, by the clock that has gone further", () => {
  const now: Now = { monotonic: 1_000_000_000n, wall: 50_000_000_000n };
  const lease = new Lease(undefined, () => ({ ...now }));
  lease.begin(now, 5000);
  lease.ask();
  now.monotonic += 4_000_000_000n;
  now.wall += 4_000_000_000n;
  lease.granted(1, 5000);
  lease.granted(1, 60_000);
  lease.granted(7, 60_000);
  assert.equal(lease.until.monotonic, 5_950_000_000n);
  assert.ok(!lease.isOver());
  now.wall += 1_000_000_000n;
  assert.ok(lease.isOver());
});
