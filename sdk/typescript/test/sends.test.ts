/** One-way messages, and calls that cannot be sent: what nobody awaits ends no process, against a scripted node. */

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { T, frame } from "../src/frames.js";
import { Host, Refused, actor, type AnyKind } from "../src/index.js";
import { counter, pause } from "./actors.js";
import { Peer } from "./peer.js";

async function hosted(t: TestContext, window: number, ...kinds: AnyKind[]): Promise<{ peer: Peer; host: Host; says: (words: string) => boolean }> {
  const said = t.mock.method(console, "error", () => {});
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on("unhandledRejection", note);
  const peer = Object.assign(new Peer(), { window });
  const host = await peer.host(...kinds);
  t.after(async () => {
    await host.close();
    peer.stop();
    await new Promise(setImmediate);
    process.off("unhandledRejection", note);
    assert.deepEqual(unhandled, []);
  });
  return { peer, host, says: (words) => said.mock.calls.some(({ arguments: parts }) => parts.join(" ").includes(words)) };
}

const leave = (peer: Peer) => peer.say(frame(T.goodbye, (body) => body.u8(0).text("")));

test("what waits for room on a lane that is lost is logged if nobody awaits it, and raised if somebody does", async (t) => {
  const { peer, host, says } = await hosted(t, 1);
  const ref = host.ref(counter, "c");
  await ref.$send.add({ by: 1 });
  await peer.called();
  void ref.$send.add({ by: 2 });
  const awaited = ref.$send.add({ by: 3 });
  const heard = assert.rejects(awaited, (error) => error instanceof Refused && error.reason === "Unreachable");
  leave(peer);
  await heard;
  while (!says("the one-way message counter/c.add was not sent, and nobody awaits it: Unreachable")) await pause();
});

test("an operation that the node refuses is logged, and the lane goes on", async (t) => {
  const { peer, host, says } = await hosted(t, 1 << 20);
  await host.ref(counter, "c").$send.add({ by: 1 });
  await peer.called();
  for (const [actor, operation, reason] of [["clock/c", "SetTimer", "full"], ["", "topics.publish", "no such topic"]]) {
    peer.say(frame(T.operationRefused, (body) => body.varint(9).text(actor!).text(operation!).text(reason!)));
  }
  while (!says("the node refuses topics.publish of this host: no such topic")) await pause();
  assert.ok(says("the node refuses SetTimer of clock/c: full"));
  await host.ref(counter, "c").$send.add({ by: 2 });
  await peer.called();
});

test("what cannot be written is logged if nobody awaits it", async (t) => {
  const { host, says } = await hosted(t, 1 << 20);
  void host.ref("counter", "c").$send.add!({ by: new Map() });
  while (!says("the one-way message counter/c.add was not sent, and nobody awaits it: by is an instance of Map")) await pause();
  await assert.rejects(host.ref("counter", "d").$send.add!({ by: new Map() }), /instance of Map/);
  assert.ok(!says("counter/d.add was not sent"));
});

test("what is sent without a lane goes with the next one", async (t) => {
  const { peer, host } = await hosted(t, 1 << 20);
  leave(peer);
  while (host.laneNow("counter", "c")) await pause();
  void host.ref(counter, "c").$send.add({ by: 1 });
  const { request, args } = await peer.hear(T.call, T.goodbye).then(({ reader }) => {
    const request = reader.varint();
    for (const _ of [1, 2]) reader.varint();
    return { request, args: reader.text() };
  });
  assert.deepEqual([request, args], [0, "c"]);
});

test("a reliable turn whose message cannot be sent fails, although nobody awaits that", async (t) => {
  const payer = actor("payer", {
    reliable: true,
    methods: {
      async pay(c) {
        void c.ref("counter", "c").$send.add!({ by: new Map() });
        return 1;
      },
      async dare(c) {
        await c.ref("counter", "c").$send.add!({ by: new Map() }).catch(() => {});
        return 2;
      },
    },
  });
  const { peer } = await hosted(t, 1 << 20, payer);
  await peer.seat();
  const [status, value] = await peer.call(0);
  assert.equal(status, 5);
  assert.match(JSON.stringify(value), /TypeError: by is an instance of Map/);
  assert.deepEqual((await peer.call(1)).slice(0, 2), [0, 2]);
});

test("a call that is over the bound leaves nothing behind when its lane is lost", async (t) => {
  const { peer, host } = await hosted(t, 1 << 20);
  const [session] = host.sessions.values();
  await assert.rejects(host.ref("counter", "c").add!({ by: "x".repeat(9 << 20) }), (error) => error instanceof Refused && error.reason === "Unsendable");
  const lane = session!.lanes.get(0)!;
  assert.equal(lane.requests.size, 0);
  leave(peer);
  await lane.closed;
});

test("a call that is given up while it waits for room is not made", async (t) => {
  const { peer, host } = await hosted(t, 1);
  const first = host.ref(counter, "c").add({ by: 1 });
  const { request } = await peer.called();
  const abort = new AbortController();
  const second = host.ref(counter, "c", { signal: abort.signal }).add({ by: 2 });
  const heard = assert.rejects(second, /enough/);
  await pause();
  abort.abort(new Error("enough"));
  peer.say(frame(T.credit, (body) => body.varint(1000)));
  await heard;
  peer.reply(request, 1);
  await first;
  assert.ok(peer.isQuiet);
});
