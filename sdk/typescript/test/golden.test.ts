/** What all SDKs write and read alike: frames of `sdk/golden.json`, and the digests of descriptions. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Reader, Splitter, T, frame, carried, goodbye, unpack, withSeat, type Batch } from "../src/frames.js";
import { canonical, digest } from "../src/kind.js";

type Body = Record<string, never> & { payload?: string };
interface Golden { name: string; frame: string; from: "host" | "node"; type: number; hex: string; body: Body }

const root = new URL("../../../../", import.meta.url);
const golden = JSON.parse(readFileSync(new URL("sdk/golden.json", root), "utf8")) as { frames: Golden[] };

for (const { name, frame: kind, from, hex, body, type } of golden.frames) {
  if (from === "host" && WRITES().has(kind) && body.jump == null && !body.extension && !body.turn === (kind === "Call" || !body.turn)) {
    test(`a host writes ${name}`, () => assert.equal(WRITES().get(kind)!(body).toString("hex"), hex));
  }
  if (from === "node") {
    test(`a host reads ${name}`, () => {
      const found: [number, Reader][] = [];
      new Splitter().feed(Buffer.from(hex, "hex"), (type, reader) => void found.push([type, reader]));
      assert.equal(found.length, 1);
      const [[is, reader]] = found as [[number, Reader]];
      assert.equal(is, type);
      const expected = READS[kind]?.(body) ?? [];
      for (const value of expected) {
        const read = typeof value === "number" ? reader.varint() : typeof value === "string" ? reader.text() : reader.rest().toString("hex");
        assert.deepEqual(read, Array.isArray(value) ? value[0] : value);
      }
      if (kind === "Welcome") assert.equal((unpack(reader.rest().subarray(8)) as { cluster: string }).cluster, "music");
    });
  }
}

test("what a call carries along", () => {
  const { hex } = golden.frames.find(({ name }) => name === "call_with_an_idempotency_key")!;
  assert.ok(hex.includes(`0a${carried({ k: "v" }, "17").toString("hex")}`));
  assert.equal(carried(undefined).length, 0);
  const ofHook = golden.frames.find(({ name }) => name === "call_of_a_hook")!;
  assert.ok(ofHook.hex.includes(`0a${withSeat(carried({ k: "v" }), 300).toString("hex")}`));
});

function WRITES(): Map<string, (body: Body) => Buffer> {
  const of = (type: number, write: (batch: Batch, body: Body) => unknown) => (body: Body) => frame(type, (batch) => write(batch, body));
  const rest = (body: Body) => Buffer.from(body.payload ?? "", "hex");
  return new Map<string, (body: Body) => Buffer>([
    ["Alive", of(T.alive, (to, { number }) => to.varint(number!))],
    ["Drain", of(T.drain, () => {})],
    ["Goodbye", ({ code, reason }) => goodbye(code!, reason!)],
    ["LaneDropped", of(T.laneDropped, (to, { shard }) => to.varint(shard!))],
    ["Activated", of(T.activated, (to, body) => to.varint(body.seat!).u8(body.status!).bytes(rest(body)))],
    ["Released", of(T.released, (to, body) => to.varint(body.seat!).u8(body.status!).bytes(rest(body)))],
    ["Define", of(T.define, (to, { route, kind, method, version }) => to.varint(route!).text(kind!).text(method!).varint(version!))],
    ["CancelCall", of(T.cancelCall, (to, { request }) => to.varint(request!))],
    ["StreamItem", of(T.streamItem, (to, body) => to.varint(body.stream!).varint(body.number!).bytes(rest(body)))],
    ["StreamCredit", of(T.streamCredit, (to, { stream, window, consumed }) => to.varint(stream!).varint(window!).varint(consumed!))],
    ["StreamEnd", of(T.streamEnd, (to, body) => to.varint(body.stream!).varint(body.number!).u8(body.status!).bytes(rest(body)))],
  ]);
}

// Numbers, texts, and the rest in a list; all bytes here are below 128.
const READS: Record<string, (body: Body) => unknown[]> = {
  Offered: ({ offer, kind, status, reason }) => [offer, kind, status, reason],
  Lease: ({ number, ms }) => [number, ms],
  LaneLost: ({ shard }) => [shard],
  Goodbye: ({ code, reason }) => [code, reason],
  CancelTurn: ({ turn }) => [turn],
  Reply: ({ request, status, payload }) => [request, status, [payload]],
  OperationRefused: ({ turn, actor, operation, reason }) => [turn, actor, operation, reason],
  StreamItem: ({ stream, number, payload }) => [stream, number, [payload]],
  StreamCredit: ({ stream, window, consumed }) => [stream, window, consumed],
  StreamEnd: ({ stream, number, status, payload }) => [stream, number, status, [payload]],
  Credit: ({ granted }) => [granted],
  Turn: ({ turn, seat, method }) => [turn, seat, method],
  Activate: ({ seat, offer, epoch }) => [seat, offer, epoch],
};

interface Description { name: string; document: Record<string, unknown>; canonical: string; digest: string }
const descriptions = JSON.parse(readFileSync(new URL("crates/greenroom-describe/golden/descriptions.json", root), "utf8")) as Description[];
for (const { name, document, canonical: expected, digest: number } of descriptions) {
  test(`the digest of ${name} is that of all languages`, () => {
    assert.equal(canonical(document), expected);
    assert.equal(digest(document), number);
  });
}
