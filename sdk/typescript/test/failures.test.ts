/** What users' own code throws ends its own turn, hook or stream, and nothing else, against a scripted node. */

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { T, frame, unpack } from "../src/frames.js";
import { ActorError, Refused, Unknown, actor, type AnyKind } from "../src/index.js";
import { Peer } from "./peer.js";

class Mute extends Error {
  override get message(): string {
    throw new RangeError("no words");
  }
}
class Unnamed extends Error {
  override get name(): string {
    throw new RangeError("no name");
  }
}
class Traceless extends Error {
  override get stack(): string {
    throw new RangeError("no trace");
  }
}
class Formless {
  toString(): string {
    throw new RangeError("no form");
  }
}

const THROWN: Record<string, { make: () => unknown; says: RegExp }> = {
  mute: { make: () => new Mute(), says: /^Mute, which cannot be read: a getter or toString\(\) of it throws$/ },
  unnamed: { make: () => new Unnamed("x"), says: /^Unnamed, which cannot be read/ },
  traceless: { make: () => new Traceless("x"), says: /^Error: x$/ },
  formless: { make: () => new Formless(), says: /^Formless, which cannot be read/ },
  "no prototype": { make: () => Object.create(null) as unknown, says: /^object, which cannot be read/ },
  trap: { make: () => new Proxy({}, { getPrototypeOf: () => { throw new RangeError("no prototype"); } }), says: /which cannot be read|cannot be sent/ },
  surrogate: { make: () => new Error("no file \udcff"), says: /^Error: no file \ufffd$/ },
  huge: { make: () => new Error("x".repeat(9 << 20)), says: /^Error: x+\.\. \(9437191 characters\)$/ },
  nothing: { make: () => undefined, says: /^undefined$/ },
  "own detail": { make: () => new Unknown("Unreadable", { rate: Number.NaN }), says: /cannot be sent: Unknown\.Unreadable\.rate is NaN/ },
  refused: { make: () => new Refused("Invalid", { field: "\ud800" }), says: /cannot be sent: .*half of a surrogate pair/ },
  "actor's": { make: () => new ActorError("Bad", { of: "\ud800" }), says: /cannot be sent: .*half of a surrogate pair/ },
};

const failing = actor("failing", {
  state: () => ({ held: "" }),
  persistent: true,
  activated: (c) => {
    const found = THROWN[c.key];
    if (found) throw found.make();
  },
  deactivating: async (c) => {
    const found = THROWN[c.key.replace("leaves ", "")];
    if (found) throw found.make();
  },
  methods: {
    now: (_, { what }: { what: string }) => {
      throw THROWN[what]!.make();
    },
    later: async (_, { what }: { what: string }) => {
      throw THROWN[what]!.make();
    },
    async run() {
      return 1;
    },
    async fill(c, { size }: { size: number }) {
      c.state.held = "x".repeat(size);
    },
  },
  reads: {
    async *items(_, { what }: { what: string }) {
      yield 1;
      throw THROWN[what]!.make();
    },
    async *bursts(_, { what }: { what: string }) {
      try {
        yield 1;
        yield 2;
      } finally {
        if (what !== "ends") throw THROWN[what]!.make();
        throw new TypeError("in the end");
      }
    },
    *plain() {
      try {
        yield 1;
        yield 2;
      } finally {
        throw new TypeError("in the end");
      }
    },
  },
});
const [NOW, LATER, RUN, FILL, ITEMS, BURSTS, PLAIN] = [0, 1, 2, 3, 4, 5, 6];

/** A host at a peer, of which nothing may be left unhandled. */
async function hosted(t: TestContext, ...kinds: AnyKind[]): Promise<{ peer: Peer; log: () => string }> {
  const said = t.mock.method(console, "error", () => {});
  const peer = new Peer();
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on("unhandledRejection", note);
  const host = await peer.host(...kinds);
  t.after(async () => {
    assert.ok([...host.sessions.values()].every((session) => !session.isLost && [...session.lanes.values()].every((lane) => !lane.isDead)), "no lane is lost");
    await host.close();
    peer.stop();
    await new Promise(setImmediate);
    process.off("unhandledRejection", note);
    assert.equal(unhandled.length, 0);
  });
  return { peer, log: () => said.mock.calls.map(({ arguments: words }) => words.map(String).join(" ")).join("\n") };
}

function messageOf(value: unknown): string {
  const [family] = Object.values(value as Record<string, Record<string, { message: string }>>);
  return Object.values(family!)[0]!.message;
}

async function ending(peer: Peer, stream: number): Promise<{ sent: number; status: number; value: unknown }> {
  const { reader } = await peer.hear(T.streamEnd);
  assert.equal(reader.varint(), stream);
  const [sent, status, rest] = [reader.varint(), reader.u8(), reader.rest()];
  return { sent, status, value: rest.length > 2 ? unpack(rest.subarray(2)) : undefined };
}

for (const [what, { says }] of Object.entries(THROWN)) {
  test(`what a turn throws (${what}) fails that turn alone, and is named`, async (t) => {
    const { peer, log } = await hosted(t, failing);
    await peer.seat();
    for (const method of [NOW, LATER]) {
      const [status, value] = await peer.call(method, { what });
      assert.ok(status === 5 || status === 3);
      assert.match(messageOf(value), says);
      // As the door asks, which wants the sentence too.
      peer.say(frame(T.turn, (body) => body.varint(90).varint(1).varint(method).u8(1).varint(0).varint(0).bytes(Buffer.from(`\x02\x02{"what":"${what}"}`))));
      assert.ok([3, 5].includes((await peer.end()).status));
    }
    if (!["own detail", "refused", "actor's", "trap"].includes(what)) assert.match(log(), /failing\/lobby\.now failed/);
    assert.deepEqual((await peer.call(RUN))[1], 1);
  });

  test(`what a stream throws (${what}) ends that stream alone, and is named`, async (t) => {
    const { peer } = await hosted(t, failing);
    await peer.seat();
    peer.turn(ITEMS, { what });
    const { stream } = await peer.end();
    peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(8).varint(0)));
    await peer.hear(T.streamItem);
    const { sent, status, value } = await ending(peer, stream);
    assert.equal(sent, 1);
    assert.ok(status === 5 || status === 3);
    assert.match(messageOf(value), says);
    assert.deepEqual((await peer.call(RUN))[1], 1);
  });

  test(`what a hook throws (${what}) is told to who waits for the seat`, async (t) => {
    const { peer } = await hosted(t, failing);
    await peer.seat();
    peer.activate(2, what);
    let { reader } = await peer.hear(T.activated);
    assert.equal(reader.varint(), 2);
    assert.ok(reader.u8() !== 0);
    assert.ok(messageOf(unpack(reader.rest().subarray(2))).length > 0);
    await peer.seat(3, { key: `leaves ${what}` });
    peer.say(frame(T.deactivate, (body) => body.varint(3).u8(0).u8(0)));
    ({ reader } = await peer.hear(T.released));
    assert.equal(reader.varint(), 3);
    assert.ok(reader.u8() !== 0);
    assert.deepEqual((await peer.call(RUN))[1], 1);
  });

  test(`a generator that throws as it is closed (${what}) ends its own stream alone, and is logged by its method`, async (t) => {
    const { peer, log } = await hosted(t, failing);
    await peer.seat();
    peer.turn(BURSTS, { what });
    const { stream } = await peer.end();
    peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(1).varint(0)));
    await peer.hear(T.streamItem);
    peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(0).varint(1)));
    assert.equal((await ending(peer, stream)).status, 3);
    assert.deepEqual((await peer.call(RUN))[1], 1);
    assert.match(log(), /failing\/lobby\.bursts failed as it was closed/);
  });
}

test("a generator that is not async and throws as it is closed is logged with its trace", async (t) => {
  const { peer, log } = await hosted(t, failing);
  await peer.seat();
  peer.turn(PLAIN);
  const { stream } = await peer.end();
  peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(1).varint(0)));
  await peer.hear(T.streamItem);
  peer.say(frame(T.deactivate, (body) => body.varint(1).u8(0).u8(0)));
  await peer.hear(T.streamEnd, T.released);
  await peer.hear(T.streamEnd, T.released);
  await peer.seat(2);
  assert.match(log(), /failing\/lobby\.plain failed as it was closed: TypeError: in the end\n\s+at .*failures/);
});

test("what is too large to be carried is said, and costs no lane", async (t) => {
  const { peer } = await hosted(t, failing);
  await peer.seat();
  await peer.call(FILL, { size: 9 << 20 });
  peer.say(frame(T.deactivate, (body) => body.varint(1).u8(4).u8(1)));
  const { reader } = await peer.hear(T.released);
  assert.deepEqual([reader.varint(), reader.u8()], [1, 3]);
  assert.match(messageOf(unpack(reader.rest().subarray(2))), /what failing\/lobby carries has 9437\d+ bytes, over the bound of 8388608/);
});
