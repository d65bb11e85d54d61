/** The frames of the host protocol, version 1: bytes in, fields out. `length u32 LE` (of what follows), `type u8`, body. */

import { randomUUID } from "node:crypto";

import { Packr } from "msgpackr";

import { isWhole } from "./lengths.js";
import { isOf64Bits, plain, put } from "./plain.js";

export const MAGIC = "GRHP";
export const VERSION = 1;
export const FRAME_MAX = 8 << 20;

/** Types of frames. */
export const T = {
  hello: 1, welcome: 1, describe: 2, offered: 3, alive: 4, lease: 5, nodes: 6, drain: 7, goodbye: 8, laneLost: 9, laneDropped: 10,
  join: 16, activate: 32, activated: 33, deactivate: 34, released: 35, turn: 36, turnEnd: 37, cancelTurn: 38, define: 39, call: 40,
  reply: 41, cancelCall: 42, ask: 43, operationRefused: 44, streamItem: 48, streamCredit: 49, streamEnd: 50, credit: 56,
} as const;

/** How a call or a turn went. */
export const Status = {
  ok: 0, actorError: 1, refused: 2, unknown: 3, cycle: 4, panicked: 5, invalid: 6, expired: 7, abandoned: 16,
} as const;

/** What an Ask asks for. */
export const Op = {
  save: 1, reload: 2, clear: 3, timer: 4, cancelTimer: 5, remind: 6, cancelReminder: 7, listReminders: 8, subscribe: 9,
  unsubscribe: 10, openStream: 11, keepAlive: 12, deactivate: 13, migrate: 14, output: 15, create: 16, chosen: 17,
} as const;

/** What a message carries along, by its tags. */
export const Tag = { context: 1, principal: 7, idempotencyKey: 14, callingSeat: 15 } as const;

/** Bytes of the other side that are no frame: the lane that they came on is closed. `field` is the path of the value that cannot be read, if there is one. */
export class FrameError extends Error {
  constructor(message: string, readonly field = "") {
    super(message);
  }
}

const options = { useRecords: false, mapsAsObjects: true, int64AsType: "auto" as "string", skipValues: [undefined], encodeUndefinedAsNil: true };
const packr = new Packr(options);
/** Reads what the other one changes: maps with the name `__proto__`, and the integers 2^53 and -2^53. */
const exactPackr = new Packr({ ...options, mapsAsObjects: false, int64AsType: "bigint" as "string" });

/** A value as MessagePack. */
export function pack(value: unknown): Buffer {
  return packr.pack(plain(value));
}

/** Returns the value that MessagePack holds: integers beyond 2^53 as BigInt. */
export function unpack(bytes: Uint8Array): unknown {
  if (!isWhole(bytes)) throw new FrameError("a value is no MessagePack: it says that it has more than there are bytes for");
  try {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return CHANGED_PARTS.some((part) => buffer.includes(part)) ? inUsualForm(exactPackr.unpack(bytes)) : packr.unpack(bytes);
  } catch (error) {
    throw new FrameError(`a value is no MessagePack: ${String(error)}`);
  }
}

/** Parts of payloads that hold what `packr` changes, or something that looks like that. */
const CHANGED_PARTS = [Buffer.from("__proto__"), Buffer.from("0020000000000000", "hex"), Buffer.from("ffe0000000000000", "hex")];

/** Returns a value of `exactPackr` as the other one gives it: with objects for maps, and numbers for integers below 2^53. */
function inUsualForm(value: unknown): unknown {
  if (typeof value === "bigint") return value < FIRST_BIG && value > -FIRST_BIG ? Number(value) : value;
  if (Array.isArray(value)) return value.map(inUsualForm);
  if (!(value instanceof Map)) return value;
  const object: Record<string, unknown> = {};
  for (const [name, inside] of value) put(object, String(name), inUsualForm(inside));
  return object;
}

const FIRST_BIG = 2n ** 53n;

const CHOICE = process.env.GREENROOM_CODEC ?? "";

/** The codecs that this process reads; the node writes over what is in another one. */
export const CODECS = ({ "": [1, 2], messagepack: [1], json: [2] } as Record<string, number[]>)[CHOICE];

/** The payload of a value: codec, type version, value. Replies alone are in the codec of their arguments. */
export function payload(value: unknown, version = 1): Buffer {
  return payloadIn(CODECS?.[0] ?? 1, value, version);
}

/**
 * Returns the value that a payload holds. If `isExact`, numbers that fit neither 64 bits nor a float are refused by their path; otherwise they become the
 * nearest float, as states that earlier programs have stored must be read.
 */
export function valueOf(bytes: Buffer, isExact = false): unknown {
  if (bytes.length < 2 || (bytes[0] !== 1 && bytes[0] !== 2)) throw new FrameError("a payload has no codec that is known");
  return bytes[0] === 1 ? unpack(bytes.subarray(2)) : fromJson(bytes.toString("utf8", 2), isExact);
}

/** The same in a codec that is named. */
export function payloadIn(codec: number, value: unknown, version = 1): Buffer {
  if (codec !== 2) {
    const packed = pack(value);
    const out = Buffer.allocUnsafe(packed.length + 2);
    out[0] = 1;
    out[1] = version;
    packed.copy(out, 2);
    return out;
  }
  const text = (JSON.stringify(plain(value ?? null), toJson) ?? "null").replaceAll(MARKED_NUMBER, "$1");
  return Buffer.concat([Buffer.from([2, version]), Buffer.from(text)]);
}

/** Writes large integers as marked texts, those of floats with a fraction, so that they are read as floats again; and bytes as base64. */
function toJson(this: Record<string, unknown>, name: string, inside: unknown): unknown {
  // A Buffer has a form of its own in JSON, which it has already been given here.
  const value = this[name];
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (typeof inside === "bigint") return MARK + inside;
  const isLarge = Number.isInteger(inside) && !Number.isSafeInteger(inside) && Math.abs(inside as number) < EXPONENT_FROM;
  return isLarge ? `${MARK}${BigInt(inside as number)}.0` : inside;
}

/** From here on the library writes floats with an exponent. */
const EXPONENT_FROM = 1e21;

/** Reads JSON, with integers beyond 2^53 as BigInt: these are passed through the library's reader as marked texts. */
function fromJson(text: string, isExact: boolean): unknown {
  let isUnfit = false;
  const mark = (token: string) => {
    if (token.startsWith('"')) return token;
    const isInteger = INTEGER.test(token);
    if (isInteger ? Number.isSafeInteger(Number(token)) : Number.isFinite(Number(token))) return token;
    const fits = isInteger && token.length <= DIGITS_MAX && isOf64Bits(BigInt(token));
    isUnfit ||= !fits;
    return fits ? `"${MARK}${token}"` : isExact ? `"${UNFIT_MARK}"` : token;
  };
  try {
    const marked = text.replaceAll(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g, mark);
    const read = (source: string) => JSON.parse(source, (_, inside: unknown) => (typeof inside === "string" && inside.startsWith(MARK) ? BigInt(inside.slice(MARK.length)) : inside)) as unknown;
    if (!isUnfit || !isExact) return read(marked);
    const path = pathOf(UNFIT_MARK, JSON.parse(marked)) ?? "";
    throw new FrameError(`${path || "the value"} is a number that fits neither 64 bits nor a float: send it as a text`, path);
  } catch (error) {
    throw error instanceof FrameError ? error : new FrameError(`a value is no JSON: ${String(error)}`);
  }
}

/** Returns the path of the first place in a value where this text is. */
function pathOf(text: string, value: unknown, path = ""): string | undefined {
  if (value === text) return path;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [name, inside] of Object.entries(value)) {
    const found = pathOf(text, inside, Array.isArray(value) ? `${path}[${name}]` : path ? `${path}.${name}` : name);
    if (found !== undefined) return found;
  }
  return undefined;
}

const INTEGER = /^-?\d+$/;
/** Digits of the longest integer of 64 bits, and its sign. */
const DIGITS_MAX = 20;

/** Nobody else can know it. */
const MARK = `${randomUUID()}:`;
const MARKED_NUMBER = new RegExp(`"${MARK}(-?\\d+(?:\\.0)?)"`, "g");
/** Marks a number that cannot be read exactly. */
const UNFIT_MARK = `${MARK}unfit`;

/** The payload of nothing. */
export const NIL = payload(null);

/** Frames one after the other. */
const NOTHING = Buffer.alloc(0);

/** Bytes that a message carries along, at most. */
export const CARRIED_MAX = 16 << 10;

/** What a message carries along, as it is in a Call: a request context, and an idempotency key. */
export function carried(context: Record<string, string> | undefined, idempotencyKey?: string): Buffer {
  if (!context && idempotencyKey === undefined) return NOTHING;
  const [all, pairs] = [new Batch(256), new Batch(256)];
  for (const [key, value] of Object.entries(context ?? {})) pairs.text(key).text(value);
  if (pairs.length > 0) all.varint(Tag.context).block(pairs.take());
  if (idempotencyKey !== undefined) all.varint(Tag.idempotencyKey).text(idempotencyKey);
  return all.take();
}

/** Adds the seat to what a call carries that no turn makes: while a hook of the seat runs, the call is part of what waits for the hook. */
export function withSeat(carried: Buffer, seat: number): Buffer {
  const [all, number] = [new Batch(carried.length + 16), new Batch(16)];
  all.bytes(carried).varint(Tag.callingSeat).block(number.varint(seat).take());
  return all.length > CARRIED_MAX ? carried : all.take();
}

export class Batch {
  #bytes: Buffer;
  length = 0;

  constructor(size = 16 << 10) {
    this.#bytes = Buffer.allocUnsafe(size);
  }

  /** Begins a frame; gives where it begins. */
  begin(type: number): number {
    this.#room(16);
    const at = this.length;
    this.length += 4;
    this.#bytes[this.length++] = type;
    return at;
  }

  /** Ends the frame that began at `at`; gives its length, its length field included. */
  end(at: number): number {
    this.#bytes.writeUInt32LE(this.length - at - 4, at);
    return this.length - at;
  }

  u8(value: number): this {
    this.#room(1);
    this.#bytes[this.length++] = value;
    return this;
  }

  varint(value: number): this {
    this.#room(10);
    while (value >= 0x80) {
      this.#bytes[this.length++] = (value % 0x80) | 0x80;
      value = Math.floor(value / 0x80);
    }
    this.#bytes[this.length++] = value;
    return this;
  }

  bytes(value: Uint8Array): this {
    this.#room(value.length);
    this.#bytes.set(value, this.length);
    this.length += value.length;
    return this;
  }

  block(value: Uint8Array): this {
    return this.varint(value.length).bytes(value);
  }

  text(value: string): this {
    if (!value.isWellFormed()) throw new TypeError(`${JSON.stringify(value.slice(0, 80))} has half of a surrogate pair: use toWellFormed()`);
    return this.block(Buffer.from(value));
  }

  /** Whole states, each a payload. */
  fields(states: [string, Uint8Array][]): this {
    this.varint(states.length);
    for (const [name, state] of states) this.text(name).u8(0).block(state);
    return this;
  }

  /** Gives what was written, and begins anew. */
  take(): Buffer {
    const out = Buffer.from(this.#bytes.subarray(0, this.length));
    this.length = 0;
    return out;
  }

  /** Takes back what was written behind `at`. */
  cut(at: number): void {
    this.length = at;
  }

  #room(size: number): void {
    if (this.length + size <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.length + size));
    this.#bytes.copy(larger, 0, 0, this.length);
    this.#bytes = larger;
  }
}

/** One frame by itself. */
export function frame(type: number, write: (batch: Batch) => unknown = () => {}): Buffer {
  const batch = new Batch();
  const at = batch.begin(type);
  write(batch);
  batch.end(at);
  return batch.take();
}

/** Takes the fields of one frame's body in order. */
export class Reader {
  constructor(readonly data: Buffer, public at = 0, readonly end = data.length) {}

  u8(): number {
    if (this.at >= this.end) throw new FrameError("a frame ends within a field");
    return this.data[this.at++]!;
  }

  varint(): number {
    let byte = this.u8();
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let scale = 0x80;
    do {
      byte = this.u8();
      value += (byte & 0x7f) * scale;
      scale *= 0x80;
      if (value > Number.MAX_SAFE_INTEGER) throw new FrameError("a number is over 2^53");
    } while (byte >= 0x80);
    if (byte === 0) throw new FrameError("a number is not in its shortest form");
    return value;
  }

  /** A number of up to 64 bits. */
  big(): bigint {
    let value = 0n;
    let shift = 0n;
    let byte: number;
    do {
      byte = this.u8();
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
      if (shift > 70n) throw new FrameError("a number has more than 64 bits");
    } while (byte >= 0x80);
    return value;
  }

  bytes(size: number): Buffer {
    const end = this.at + size;
    if (end > this.end) throw new FrameError("a frame ends within a field");
    const found = this.data.subarray(this.at, end);
    this.at = end;
    return found;
  }

  block(): Buffer {
    return this.bytes(this.varint());
  }

  text(): string {
    return this.block().toString("utf8");
  }

  rest(): Buffer {
    return this.bytes(this.end - this.at);
  }

  /** The payloads of whole states, by name. */
  fields(): Map<string, Buffer> {
    const found = new Map<string, Buffer>();
    for (let left = this.varint(); left > 0; left--) {
      const name = this.text();
      if (this.u8() !== 0) throw new FrameError(`state ${name} comes in entries, which this SDK did not offer to read`);
      found.set(name, this.block());
    }
    return found;
  }
}

/** Cuts what comes off a socket into frames. */
export class Splitter {
  #kept: Buffer[] = [];
  #size = 0;
  #need = 5;

  constructor(public limit = 64 << 10) {}

  /** Gives each whole frame to `take`, until that says `false`. */
  feed(data: Buffer, take: (type: number, reader: Reader) => boolean | void): void {
    if (this.#size > 0) {
      this.#kept.push(data);
      this.#size += data.length;
      if (this.#size < this.#need) return;
      data = Buffer.concat(this.#kept);
      this.#kept = [];
      this.#size = 0;
    }
    let at = 0;
    this.#need = 5;
    while (data.length - at >= 5) {
      const length = data.readUInt32LE(at);
      if (length === 0 || length > this.limit) throw new FrameError(`a frame of ${length} bytes is outside the bound of ${this.limit}`);
      const end = at + 4 + length;
      if (end > data.length) {
        this.#need = end - at;
        break;
      }
      if (take(data[at + 4]!, new Reader(data, at + 5, end)) === false) return;
      at = end;
    }
    if (at < data.length) {
      this.#kept.push(data.subarray(at));
      this.#size = data.length - at;
    }
  }
}

/** The last frame of a lane. */
export function goodbye(code: number, reason: string): Buffer {
  return frame(T.goodbye, (body) => body.u8(code).text(reason.slice(0, 300)));
}
