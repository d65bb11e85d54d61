/** What keeps a host from acting too long: each trace that the protocol excludes, by its number. Against a scripted node. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { T, frame, payload } from "../src/frames.js";
import { Lease, now, type Now } from "../src/lease.js";
import { ACT, ASK, COUNT, HISTORY, POST, SLOW, WATCH, acting, at, began, counter, goes, ledger, pause, room, seen, silent } from "./actors.js";

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

at("L4: the state leaves with the reply in one frame, if it has changed", [counter], async (peer) => {
  await peer.seat(1, { state: { count: 5 } });
  assert.deepEqual(await peer.call(0, { by: 2 }), [0, 7, { count: 7 }]);
  assert.deepEqual(await peer.call(0, { by: 0 }), [0, 7, undefined]);
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

at("L6: the first lease counts from the Hello", [room], async (peer, host) => {
  const [session] = host.sessions.values();
  assert.ok(session!.lease.until.monotonic <= peer.greeted.monotonic + BigInt(peer.leaseMs * 990_000));
}, silent);

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
