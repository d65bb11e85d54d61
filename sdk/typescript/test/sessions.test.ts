/** Sessions and lanes, against a scripted node. */

import assert from "node:assert/strict";

import { T, frame, payload } from "../src/frames.js";
import { COMPUTE, POST, at, room } from "./actors.js";

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
