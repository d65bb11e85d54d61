/** Turns, calls and streams, against a scripted node. */

import assert from "node:assert/strict";

import { T, frame, payload } from "../src/frames.js";
import { ActorError, Cycle, Refused, Unknown, actor, type Schema } from "../src/index.js";
import { ASK, BIG, FAIL, PANIC, POST, at, room, users } from "./actors.js";
import { Peer } from "./peer.js";

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
  const call = host.ref(users, "ada").may_post();
  await peer.called();
  void call.catch(() => {});
  const other = host.ref(users, "ada", { signal: abort.signal }).may_post();
  const { request } = await peer.called();
  abort.abort(new Error("enough"));
  await assert.rejects(other, /enough/);
  assert.equal((await peer.hear(T.cancelCall)).reader.varint(), request);
});

at("a schema checks arguments, and the error says where", [], async () => {
  const schema: Schema = {
    "~standard": {
      validate: (value) => (typeof (value as { user: unknown }).user === "string" ? { value } : { issues: [{ message: "expected a string", path: ["user"] }] }),
      jsonSchema: { input: () => ({ type: "object", properties: { user: { type: "string" } } }) },
    },
  };
  const peer = new Peer();
  const host = await peer.host(actor("checked", {
    methods: { run: async (_, { user }: { user: string }) => user },
    reads: {
      async *each(_, { user }: { user: string }) {
        yield* user;
      },
    },
    schemas: { run: { arguments: schema }, each: { arguments: schema } },
  }));
  await peer.seat();
  assert.deepEqual(await peer.call(0, { user: "ada" }), [0, "ada", undefined]);
  for (const method of [0, 1]) {
    assert.deepEqual(await peer.call(method, { user: 1 }), [6, { Refused: { Invalid: { field: "user", message: "expected a string" } } }, undefined]);
  }
  peer.turn(1, { user: "ada" });
  const { stream } = await peer.end();
  peer.say(frame(T.streamCredit, (body) => body.varint(stream).varint(8).varint(0)));
  for (const letter of "ada") assert.ok((await peer.hear(T.streamItem)).reader.rest().toString().endsWith(letter));
  await host.close();
  peer.stop();
});
