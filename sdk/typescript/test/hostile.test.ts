/** What a node says that it should not ends a call, a turn or a lane, and neither hangs nor ends the process, against a scripted node. */

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { T, frame, payload, payloadIn, unpack, valueOf } from "../src/frames.js";
import { Host, Refused, Unknown, actor, type AnyKind } from "../src/index.js";
import { isWhole } from "../src/lengths.js";
import { pause } from "./actors.js";
import { Peer } from "./peer.js";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const VALUES: Record<string, Buffer> = {
  deep: Buffer.concat([hex("0101"), Buffer.alloc(200_000, 0x91), hex("c0")]),
  "deep json": Buffer.from(`\x02\x01${"[".repeat(1e5)}`),
  "huge array": hex("0101 ddffffffff"),
  "huge arrays": hex(`0101 ${"dd01ffffff".repeat(64)}`),
  "huge arrays of 16 bits": hex(`0101 ${"dcffff".repeat(4000)}`),
  "huge text": hex("0101 dbffffffff"),
  "huge map": hex("0101 dfffffffff"),
  "no json": Buffer.from('\x02\x01{"a'),
  "no codec": hex("0701c0"),
  nothing: hex(""),
};

const open = actor("open", {
  methods: { run: async () => 1, take: async (_, { what }: { what: unknown }) => what },
  reads: {
    async *ticks() {
      yield 1;
    },
  },
});
const [RUN, TAKE] = [0, 1];

async function hosted(t: TestContext, ...kinds: AnyKind[]): Promise<{ peer: Peer; host: Host; isWhole: () => boolean }> {
  t.mock.method(console, "error", () => {});
  const peer = new Peer();
  const host = await peer.host(...kinds);
  t.after(async () => {
    await host.close();
    peer.stop();
  });
  return { peer, host, isWhole: () => [...host.sessions.values()].every(({ lanes }) => [...lanes.values()].every((lane) => !lane.isDead)) };
}

for (const [what, bytes] of Object.entries(VALUES)) {
  test(`arguments that cannot be read (${what}) are refused, and the lane stays`, async (t) => {
    const { peer, isWhole } = await hosted(t, open);
    await peer.seat();
    peer.say(frame(T.turn, (body) => body.varint(90).varint(1).varint(TAKE).u8(1).varint(0).varint(0).bytes(bytes)));
    const { turn, status } = await peer.end();
    assert.deepEqual([turn, status], [90, 6]);
    assert.deepEqual(await peer.call(RUN), [0, 1, undefined]);
    assert.ok(isWhole());
  });

  test(`an answer that cannot be read (${what}) is Unreadable for its caller alone`, async (t) => {
    const { peer, host, isWhole } = await hosted(t);
    const unreadable = (error: unknown) => error instanceof Unknown && error.reason === "Unreadable";
    for (const status of [0, 1, 3]) {
      const call = host.ref(open, "o").run();
      const { request } = await peer.called();
      peer.say(frame(T.reply, (body) => body.varint(request).u8(status).bytes(bytes)));
      await assert.rejects(call, unreadable);
    }
    for (const part of ["name", "item", "end"]) {
      const first = (async () => {
        for await (const _ of host.ref(open, "o").ticks()) break;
      })();
      const { request } = await peer.called();
      if (part === "name") peer.say(frame(T.reply, (body) => body.varint(request).u8(0).bytes(bytes)));
      else {
        peer.reply(request, { "greenroom:stream": "s" });
        const opens = (await peer.hear(T.ask)).reader.varint();
        peer.reply(opens);
        if (part === "item") peer.say(frame(T.streamItem, (body) => body.varint(opens - 1).varint(0).bytes(bytes)));
        else peer.say(frame(T.streamEnd, (body) => body.varint(opens - 1).varint(0).u8(3).bytes(bytes)));
      }
      await assert.rejects(first, unreadable);
      if (part === "item") await peer.hear(T.streamCredit);
    }
    assert.ok(isWhole());
  });
}

test("only what promises more than it has is no whole MessagePack", () => {
  const value = {
    none: null, yes: true, small: [1, -1, 300, 70_000, 2 ** 33, -200, -40_000, -(2 ** 31), 2n ** 63n, 1.5], bytes: Buffer.alloc(300, 0xdd),
    list: Array.from({ length: 70_000 }, (_, at) => at), some: Array.from({ length: 20 }, () => "x".repeat(40)), long: "Ü".repeat(70_000), text: "\u07ad".repeat(20),
    map: Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`n${at}`, [at, "y".repeat(300)]])),
  };
  const bytes = payload(value).subarray(2);
  assert.ok(isWhole(bytes));
  assert.deepEqual(unpack(bytes), { ...value, bytes: Buffer.alloc(300, 0xdd) });
  for (const ext of ["d40100", "d5010000", "d60100000000", "d7010000000000000000", `d801${"00".repeat(16)}`, "c7020100dd", "c800020100dd", "c9000000020100dd"]) {
    assert.ok(isWhole(hex(`dc0002${ext}01`)), ext);
    assert.ok(!isWhole(hex(`dc0003${ext}01`)), ext);
  }
  assert.ok(!isWhole(hex("dd00000003 01 02")));
});

test("JSON of many digits is read in no time worth the name, and as other languages read it", () => {
  assert.equal(valueOf(Buffer.from(`\x02\x01${"1".repeat(300)}`)), Number("1".repeat(300)));
  assert.equal(valueOf(Buffer.from("\x02\x0118446744073709551615")), 2n ** 64n - 1n);
  assert.equal(valueOf(Buffer.from("\x02\x01-9223372036854775808")), -(2n ** 63n));
});

for (const [what, value, says] of [
  ["half of a pair", { at: ["\ud800"] }, /at\[0\] has half of a surrogate pair/], ["its name", { "\udc00": 1 }, /the name "\\udc00" in the value has half/],
  ["infinity", [Infinity], /\[0\] is Infinity/], ["more than 64 bits", { big: 2n ** 64n }, /big has more than 64 bits/], ["less", -(2n ** 63n) - 1n, /more than 64 bits/],
] as const) {
  test(`what one codec has no form for (${what}) is refused in both, by its path`, () => {
    for (const codec of [1, 2]) assert.throws(() => payloadIn(codec, value), says);
  });
}

const WELCOMES: Record<string, unknown>[] = [
  { lease_ms: 2 ** 40 }, { lease_ms: 0 }, { lease_ms: Number.MAX_VALUE }, { lease_ms: "x" }, { window: 0 }, { window: "x" }, { frame_len_max: 0 },
  { shards: 5 }, { shards: ["x"] }, { shards: Array.from({ length: 2000 }, () => 0) }, { node: null }, { session: "x" }, { secret: 5 }, { unknown: 5 },
  { unknown: [{}] },
];
for (const welcome of WELCOMES) {
  test(`a Welcome that cannot be (${JSON.stringify(welcome).slice(0, 40)}) is no session, and the node is dialled again`, async (t) => {
    t.mock.method(console, "error", () => {});
    const peer = Object.assign(new Peer(), { welcome });
    await peer.listen();
    const host = new Host([open], { node: peer.url });
    let hasStarted = false;
    const starts = host.start(60_000).then(() => (hasStarted = true));
    while (peer.sessions < 2) await pause();
    assert.ok(!hasStarted);
    peer.welcome = {};
    await starts;
    await host.close();
    peer.stop();
  });
}

test("a shard that is named twice is joined once, and a digest that nobody has is shown to nobody", async (t) => {
  t.mock.method(console, "error", () => {});
  const peer = Object.assign(new Peer(), { welcome: { shards: [0, 0], unknown: ["constructor", "__proto__"] } });
  const host = await peer.host(open);
  assert.deepEqual([...[...host.sessions.values()][0]!.lanes.keys()], [0]);
  assert.deepEqual([peer.sessions, peer.described.length], [1, 0]);
  await host.close();
  peer.stop();
});

for (let seed = 1; seed <= 20; seed++) {
  test(`noise on a lane (${seed}) ends that lane at most`, async (t) => {
    let state = seed;
    const chance = (below: number) => (state = (state * 48271) % 2147483647) % below;
    const { peer, host } = await hosted(t, open);
    await peer.seat();
    const session = [...host.sessions.values()][0]!;
    for (let count = 0; count < 20; count++) {
      const values = [hex(""), hex("01"), Buffer.from(Array.from({ length: 9 }, () => chance(256))), payload(null), ...Object.values(VALUES)];
      const numbers = Array.from({ length: chance(7) }, () => [0, 1, 2, 3, 127, 2 ** 40, 2 ** 53 - 1][chance(7)]!);
      const type = [32, 34, 36, 38, 41, 48, 49, 50, 56, 99][chance(10)]!;
      peer.say(frame(type, (body) => (numbers.forEach((number) => body.varint(number)), body.bytes(values[chance(values.length)]!))));
      await new Promise(setImmediate);
    }
    for (let count = 0; count < 5 || session.lanes.get(0)!.isDead; count++) await pause();
    assert.ok(!session.isLost);
  });
}

test("what nobody has foreseen ends its lane, and not the process", async (t) => {
  const { peer, host } = await hosted(t, open);
  const lane = [...host.sessions.values()][0]!.lanes.get(0)!;
  t.mock.method(lane.turns, "get", () => {
    throw new RangeError("of whatever kind");
  });
  peer.say(frame(T.cancelTurn, (body) => body.varint(1)));
  await lane.closed;
  await peer.joined(2);
  await peer.hear(T.goodbye);
  await peer.seat();
  assert.deepEqual(await peer.call(RUN), [0, 1, undefined]);
});

test("names that cannot be are refused, and the lane goes on", async (t) => {
  const { peer, host, isWhole } = await hosted(t);
  for (const [kind, method] of [["", "run"], ["\ud800", "run"], ["k".repeat(129), "run"], ["open", "\ud800"], ["open", "m".repeat(129)]] as const) {
    for (const make of [() => host.ref(kind, "k")[method]!(), () => host.ref(kind, "k").$send[method]!()]) await assert.rejects(async () => make(), /is no name: give 1 to 128 bytes of UTF-8/);
  }
  for (const key of ["", "\ud800", "k".repeat(401), "/".repeat(134), ".", "..", 5, undefined]) assert.throws(() => host.ref(open, key as string), (error) => error instanceof Refused && error.reason === "InvalidKey" && /is a text of 1 to 400 bytes.*, which .* is not/.test(error.message));
  await assert.rejects(host.ref(open, "k", { context: { tenant: "\udcff" } }).run(), /half of a surrogate pair/);
  const call = host.ref(open, "o").run();
  peer.reply((await peer.called()).request, 5);
  assert.equal(await call, 5);
  assert.ok(isWhole());
});

test("times that bound no call bound none, and end no lane", async (t) => {
  const { peer, host } = await hosted(t);
  for (const timeout of [Number.NaN, "5" as never]) await assert.rejects(host.ref(open, "o", { timeout }).run(), /bounds no call: give milliseconds/);
  for (const [timeout, least, most] of [[Infinity, 0, 0], [1e300, 0, 0], [2 ** 39, 1, 2 ** 50], [-5, 1, 1], [0, 1, 1]] as const) {
    for (const isOneWay of [false, true]) {
      const ref = host.ref(open, "o", { timeout });
      const call = isOneWay ? ref.$send.run() : ref.run();
      const { reader } = await peer.hear(T.call);
      const request = reader.varint();
      reader.varint();
      reader.varint();
      reader.text();
      const left = reader.varint();
      assert.ok(left >= least && left <= most, `${timeout}: ${left}`);
      if (!isOneWay) peer.reply(request, 5);
      await call;
    }
  }
});

test("a turn that may last for a month is not told at once that nobody waits", async (t) => {
  const patient = actor("patient", {
    methods: {
      async run(c) {
        const { signal } = c;
        await pause();
        return signal.aborted;
      },
    },
  });
  const { peer } = await hosted(t, patient);
  await peer.seat();
  peer.say(frame(T.turn, (body) => body.varint(90).varint(1).varint(0).u8(1).varint(2 ** 42).varint(0).bytes(payload({}))));
  assert.equal((await peer.end()).value, false);
});
