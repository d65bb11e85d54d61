/** Both codecs are the inverse of themselves: what is written is read again, in value and type, and also across codecs. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { FrameError, payloadIn, valueOf } from "../src/frames.js";

const [MESSAGEPACK, JSON_CODEC] = [1, 2];
const EDGES: unknown[] = [
  null, true, false, 0, 1, -1, 0.5, -1e-7, 2 ** 31, 2 ** 32, -(2 ** 31) - 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 53, -(2 ** 53), 1e16, 2 ** 60, 2 ** 63,
  2 ** 64, 2 ** 70, 1e20, 1e21, 1e300, Number.MAX_VALUE, Number.MIN_VALUE, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n, -(2n ** 63n), -(2n ** 53n), "",
  "\0", "\u2028 \" \\ 12345678901234567890", "é 日 😀", "9007199254740993", "__proto__",
];
const NAMES = ["", "a", "__proto__", "__proto_", "constructor", "toString", "é", "1", "a.b"];

/** Random numbers that are the same in each run. */
function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

function anyValue(roll: (sides: number) => number, depth: number): unknown {
  switch (roll(depth > 0 ? 6 : 4)) {
    case 0:
      return EDGES[roll(EDGES.length)];
    case 1:
      return (roll(2 ** 31) - 2 ** 30) * 2 ** (roll(90) - 40) || 0;
    case 2:
      // An integer below 2^53 is a number whoever wrote it.
      return 2n ** 53n + (BigInt(roll(2 ** 31)) << BigInt(roll(32)));
    case 3:
      return roll(2 ** 31) * 2 ** 22 + roll(2 ** 22);
    case 4:
      return Array.from({ length: roll(4) }, () => anyValue(roll, depth - 1));
    default: {
      const entries = Array.from({ length: roll(4) }, () => [NAMES[roll(NAMES.length)], anyValue(roll, depth - 1)] as const);
      return Object.fromEntries(entries);
    }
  }
}

function comesBack(value: unknown): void {
  for (const first of [MESSAGEPACK, JSON_CODEC]) {
    const read = valueOf(payloadIn(first, value), true);
    assert.deepStrictEqual(read, value, `codec ${first}`);
    for (const second of [MESSAGEPACK, JSON_CODEC]) assert.deepStrictEqual(valueOf(payloadIn(second, read), true), value, `codec ${first}, then ${second}`);
  }
}

test("what is written is read again in value and type, by both codecs and across them", () => {
  for (const value of EDGES) {
    comesBack(value);
    for (const name of NAMES) comesBack(Object.fromEntries([[name, [value]]]));
  }
  const roll = dice(7);
  for (let round = 0; round < 20_000; round++) comesBack(anyValue(roll, 3));
});

test("a number that fits neither 64 bits nor a float is refused by its path in arguments, and read as a float in what is stored", () => {
  const json = (text: string) => Buffer.concat([Buffer.from([JSON_CODEC, 1]), Buffer.from(text)]);
  for (const token of ["18446744073709551616", "-9223372036854775809", "1180591620717411303424", "1e400", "-1e400"]) {
    const refused = (error: unknown) => error instanceof FrameError && error.field === "coins[1].v" && error.message.startsWith("coins[1].v is a number");
    assert.throws(() => valueOf(json(`{"n": 1e20, "coins": [0, {"v": ${token}}]}`), true), refused, token);
    assert.throws(() => valueOf(json(token), true), /the value is a number that fits neither/);
    assert.equal(valueOf(json(token)), Number(token));
  }
  assert.equal(valueOf(json("18446744073709551615"), true), 2n ** 64n - 1n);
  assert.throws(() => valueOf(json("{"), true), /no JSON/);
});
