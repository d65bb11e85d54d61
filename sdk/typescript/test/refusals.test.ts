/** What is refused by its name and path, and what is said in the log, against a scripted node. */

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";

import { T, frame, payload, payloadIn, unpack, valueOf } from "../src/frames.js";
import { ActorError, Fenced, Host, NotLetIn, Refused, actor, type Schema } from "../src/index.js";
import { PANIC, room, users } from "./actors.js";
import { Peer } from "./peer.js";

class Money {
  constructor(readonly cents: number) {}
}
const cyclic: Record<string, unknown> = { name: "ada" };
cyclic.friends = [{ of: cyclic }];

const VALUES: Record<string, { value: () => unknown; says: RegExp }> = {
  map: { value: () => ({ members: new Map([["ada", 1]]) }), says: /members is an instance of Map.*Object\.fromEntries/ },
  set: { value: () => [{ tags: new Set(["a"]) }], says: /\[0\]\.tags is an instance of Set.*\[\.\.\.set\]/ },
  money: { value: () => ({ price: new Money(5) }), says: /price is an instance of Money.*plain objects and arrays/ },
  call: { value: () => ({ run: () => 1 }), says: /run is a function/ },
  symbol: { value: () => ({ is: Symbol("s") }), says: /is is a symbol/ },
  nan: { value: () => ({ rate: Number.NaN }), says: /rate is NaN/ },
  cycle: { value: () => cyclic, says: /friends\[0\]\.of is cyclic/ },
  floats: { value: () => ({ at: new Float64Array(2) }), says: /at is an instance of Float64Array/ },
};

const keeper = actor("keeper", {
  state: () => ({ kept: null as unknown, count: 0 }),
  persistent: true,
  save: "turn",
  methods: {
    async keep(c, { what }: { what: string }) {
      c.state.count += 1;
      c.state.kept = VALUES[what]?.value() ?? what;
    },
    async save(c, { what }: { what: string }) {
      c.state.kept = VALUES[what]!.value();
      await c.save();
    },
    async fail(_, { what }: { what: string }) {
      throw new ActorError("Odd", { kept: VALUES[what]!.value() });
    },
  },
  reads: {
    give: async (_, { what }: { what: string }) => VALUES[what]?.value() ?? what,
    async *items(_, { what }: { what: string }) {
      yield VALUES[what]!.value();
    },
  },
});
const [KEEP, SAVE, FAIL, GIVE, ITEMS] = [0, 1, 2, 3, 4];

function logged(t: TestContext): () => string {
  const log = t.mock.method(console, "error", () => {});
  return () => log.mock.calls.map(({ arguments: said }) => said.map((one: unknown) => (one instanceof Error ? one.stack : String(one))).join(" ")).join("\n");
}

async function hosted(t: TestContext, ...kinds: Parameters<Peer["host"]>): Promise<{ peer: Peer; host: Host }> {
  const peer = new Peer();
  const host = await peer.host(...kinds);
  t.after(async () => {
    await host.close();
    peer.stop();
  });
  return { peer, host };
}

test("what is no plain value is refused by its path, in a reply, a saved state and an error, and ends nothing but its turn", async (t) => {
  logged(t);
  const { peer } = await hosted(t, keeper);
  await peer.seat(1, { state: { kept: "first", count: 1 } });
  for (const [what, { says }] of Object.entries(VALUES)) {
    for (const codec of [1, 2]) assert.throws(() => payloadIn(codec, VALUES[what]!.value()), says);
    for (const [method, reason] of [[GIVE, "Unreadable"], [KEEP, "Unsaved"], ...(what === "cycle" ? [] : [[FAIL, "Unreadable"] as const])] as const) {
      const [status, value, state] = await peer.call(method, { what });
      assert.equal(status, 3);
      assert.match((value as { Unknown: Record<string, { message: string }> }).Unknown[reason]!.message, says);
      assert.equal(state, undefined);
    }
    const [status, value] = await peer.call(SAVE, { what });
    assert.equal(status, 3);
    assert.match(JSON.stringify(value).replaceAll("\\", ""), says);
    peer.turn(ITEMS, { what });
    const { stream } = await peer.end();
    peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(8).varint(0)));
    const { reader } = await peer.hear(T.streamEnd);
    assert.deepEqual([reader.varint(), reader.varint(), reader.u8()], [stream, 0, 5]);
  }
  assert.deepEqual(await peer.call(KEEP, { what: "last" }), [0, null, { kept: "last", count: 2 }]);
});

test("bytes, times, large integers, and objects without a prototype travel as ever", () => {
  const value = { bytes: new Uint8Array([1, 2]), at: new Date(0), big: 2n ** 60n, none: undefined, inside: Object.assign(Object.create(null), { a: [2 ** 40] }) };
  const read = { bytes: Buffer.from([1, 2]), at: "1970-01-01T00:00:00.000Z", big: 2n ** 60n, inside: { a: [2 ** 40] } };
  assert.deepEqual(unpack(payload(value).subarray(2)), read);
  assert.deepEqual(valueOf(payloadIn(2, value)), { ...read, bytes: "AQI=" });
  const twice = { id: 1 };
  assert.deepEqual(valueOf(payload([twice, twice])), [twice, twice]);
});

test("a panic is logged with its trace, and its caller is told type and message only", async (t) => {
  const log = logged(t);
  const { peer } = await hosted(t, room);
  await peer.seat();
  assert.deepEqual(await peer.call(PANIC), [5, { Unknown: { Panicked: { message: "TypeError: no" } } }, undefined]);
  assert.match(log(), /chat_room\/lobby\.panic failed: TypeError: no\n\s+at .*actors\.js/);
});

test("an activation that fails is logged with its trace", async (t) => {
  const log = logged(t);
  const { peer } = await hosted(t, actor("broken", { activated: () => { throw new TypeError("no"); }, methods: { run: () => 1 } }));
  peer.activate(1);
  await peer.hear(T.activated);
  assert.match(log(), /broken\/lobby cannot be activated: TypeError: no\n\s+at .*refusals/);
});

test("a description over its bound is refused before anybody is dialled, by its kind, its size and the bound", () => {
  const schema: Schema = { "~standard": { validate: (value) => ({ value }), jsonSchema: { input: () => ({ type: "string", enum: ["x".repeat(256 << 10)] }) } } };
  const large = actor("large", { methods: { run: async () => 1 }, schemas: { run: { arguments: schema } } });
  assert.throws(() => new Host([large]), /large: its description has 262\d{3} bytes, and 262144 are the most/);
});

test("what `actor` has not made is refused by name", () => {
  for (const [kind, says] of [
    [() => 1, /\[Function.*is no kind: give what actor\("name"/], [undefined, /undefined is no kind/], [{ name: "x" }, /is no kind/],
    [actor("odd", { methods: { run: 5 as never } }), /odd\.run is 5, and no function/],
  ] as const) {
    assert.throws(() => new Host([kind as never]), says);
  }
  assert.throws(() => new Host(room as never), /serve\(\[chatRoom\]\)/);
});

test("what outlives its turn and calls on gets Fenced", async (t) => {
  const found: Promise<unknown>[] = [];
  let go = () => {};
  const gone = new Promise<void>((resolve) => (go = resolve));
  const late = actor("late", {
    methods: { run: async (c) => void found.push(gone.then(() => c.ref(users, "ada").may_post()).catch((error: unknown) => error)) },
  });
  const { peer } = await hosted(t, late);
  await peer.seat();
  await peer.call(0);
  go();
  peer.reply((await peer.called()).request, { Unknown: "Fenced" }, 3);
  assert.ok((await found[0]) instanceof Fenced);
});

const checks: Schema = {
  "~standard": { validate: (value) => (typeof (value as { why: unknown }).why === "string" ? { value } : { issues: [{ message: "expected a string", path: ["why"] }] }) },
};
const sensor = actor("sensor", {
  methods: {
    async set(c, { how }: { how: string }) {
      try {
        if (how === "remind") await c.remind("flush", { args: { why: 5 }, after: 1000 });
        else c.after(1000, "flush", { why: 5 });
      } catch (error) {
        return error instanceof Refused ? [error.reason, error.detail] : String(error);
      }
    },
    async flush() {},
  },
  schemas: { flush: { arguments: checks } },
});

test("a timer or reminder whose arguments do not fit is refused where it is set, by its method", async (t) => {
  const { peer } = await hosted(t, sensor);
  await peer.seat();
  for (const how of ["after", "remind"]) {
    const [status, value] = await peer.call(0, { how });
    assert.deepEqual([status, value], [0, ["Invalid", { field: "why", message: "sensor.flush does not take these arguments: expected a string" }]]);
  }
  assert.ok(peer.isQuiet);
});

const metronome = actor("metronome", {
  methods: {
    async fill(c) {
      const timers = [];
      try {
        for (let n = 0; n < 300; n++) timers.push(c.every(60_000, "tick"));
      } catch (error) {
        timers[0]!.cancel();
        c.after(60_000, "tick");
        return error instanceof Refused ? [timers.length, error.reason, error.detail.bound] : String(error);
      }
      return [timers.length];
    },
    remind: (c, { after }: { after: number }) => c.remind("tick", { after }).then(() => "set", String),
    async tick() {},
  },
});

test("a timer beyond the most of an activation is refused where it is set", async (t) => {
  const { peer } = await hosted(t, metronome);
  // Each activation has timers of its own.
  for (const seat of [1, 2]) {
    await peer.seat(seat);
    peer.turn(0, {}, seat);
    // 256 timers, the end of one, and another one.
    for (let n = 0; n < 258; n++) await peer.hear(T.ask);
    assert.deepEqual((await peer.end()).value, [256, "Overloaded", 256]);
  }
});

test("a reminder before now is refused where it is set", async (t) => {
  const { peer } = await hosted(t, metronome);
  await peer.seat();
  assert.match(String((await peer.call(1, { after: -5 }))[1]), /is no such time/);
});

test("a tick whose arguments do not fit is logged by its method", async (t) => {
  const log = logged(t);
  const { peer } = await hosted(t, sensor);
  await peer.seat();
  for (const flags of [4, 5]) {
    peer.say(frame(T.turn, (body) => body.varint(90 + flags).varint(1).varint(1).u8(flags).varint(0).varint(0).bytes(payload({ why: 5 }))));
    assert.equal((await peer.end()).status, 6);
  }
  assert.equal(log().match(/sensor\/lobby\.flush has not run, as its arguments do not fit: Invalid: expected a string/g)?.length, 2);
  assert.equal((await peer.call(1, { why: 5 }))[0], 6);
  assert.equal(log().match(/has not run/g)?.length, 2, "who waits is told, and the log is not");
});

for (const [what, answer] of [["HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n"], ["a wrong length", "\0\0\0\0\0"]] as const) {
  test(`${what} in place of a Welcome is said to be of somebody else`, async (t) => {
    logged(t);
    const path = join(mkdtempSync(join(tmpdir(), "greenroom-")), "odd.sock");
    const server = createServer((socket) => socket.on("error", () => {}).on("data", () => socket.write(answer)));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    t.after(() => server.close());
    await assert.rejects(new Host([], { node: `unix:${path}` }).start(), (error) => {
      assert.ok(error instanceof NotLetIn);
      assert.match(error.message, /odd\.sock does not speak the host protocol: is it the host socket of a Greenroom node\?/);
      return true;
    });
  });
}
