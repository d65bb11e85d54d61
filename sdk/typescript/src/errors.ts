/** What a call may end with, other than its reply. */

import { inspect } from "node:util";

import { Status, payload, payloadIn, valueOf } from "./frames.js";

/** A method's own error: a name, and its fields. */
export class ActorError extends Error {
  /** The error as it travels. */
  readonly value: unknown;

  constructor(override readonly name: string, readonly fields?: Record<string, unknown>, value?: unknown) {
    super(fields ? `${name} ${text(fields)}` : name);
    this.value = value ?? (fields ? { [name]: fields } : name);
  }

  static of(value: unknown): ActorError {
    const [name, fields] = only(value);
    return new ActorError(name || "ActorError", isObject(fields) ? fields : undefined, value);
  }
}

/** A call's end without the method's own error. */
export class Failure extends Error {
  /** `reason` is the name of the case, as `Overloaded`; `detail` what the node says of it. */
  constructor(readonly reason: string, readonly detail: Record<string, unknown> = {}, message?: string) {
    super(message ?? (typeof detail.message === "string" ? `${reason}: ${detail.message}` : Object.keys(detail).length ? `${reason} ${text(detail)}` : reason));
    this.name = new.target.name;
  }
}

/** Nothing ran: a retry cannot do anything twice. */
export class Refused extends Failure {
  /** Milliseconds after which a retry can help; `undefined` where no retry will. */
  get retryAfter(): number | undefined {
    if (this.reason === "Overloaded" || this.reason === "Moved") return 50;
    if (this.reason === "Shed") return Number(this.detail.retry_after_ms ?? 1000);
    return FINAL.has(this.reason) ? undefined : 1000;
  }
}

/** The method may have run, wholly or in part. */
export class Unknown extends Failure {}

/** Who asks may no longer act: its turn is over, or its host's lease or session. What it does counts no more. */
export class Fenced extends Unknown {
  /** @param isTold Whether the node has said so: of this turn, or of one that it has called. */
  constructor(readonly isTold = false) {
    super("Fenced", {}, "the turn may no longer act: it is over, or its host's session has ended");
  }
}

/** The call would have waited for itself. Nothing ran. */
export class Cycle extends Failure {
  constructor(readonly path: string[]) {
    super("Cycle", {}, `the call chain would deadlock: ${path.join(" -> ")}`);
  }
}

/** A failure as it travels: its status, and its value. */
export function encode(failure: Failure): [number, unknown] {
  const inside = Object.keys(failure.detail).length ? { [failure.reason]: failure.detail } : failure.reason;
  if (failure instanceof Refused) return [failure.reason === "Invalid" ? Status.invalid : Status.refused, { Refused: inside }];
  if (failure instanceof Cycle) return [Status.cycle, { Cycle: failure.path }];
  return [failure.reason === "Panicked" ? Status.panicked : Status.unknown, { Unknown: inside }];
}

/** How a turn ended that threw: its status, and its value. */
export function outcome(error: unknown, where: string): [number, unknown] {
  if (error instanceof ActorError) return [Status.actorError, error.value];
  if (error instanceof Fenced && !error.isTold) return [Status.abandoned, null];
  if (error instanceof Failure && ["Unsaved", "Unreadable", "Invalid"].includes(error.reason)) return encode(error);
  report(`${where} failed`, error);
  return encode(new Unknown("Panicked", { message: named(error) }));
}

/** The same with the payload: an error of its own in a codec, with its sentence if that is to be told. */
export function written(error: unknown, where: string, codec: number, isTold = false): [number, Buffer] {
  try {
    const [status, value] = outcome(error, where);
    if (status !== Status.actorError) return [status, payload(value)];
    return [status, isTold ? payloadIn(codec, { error: value, says: sentence(error) }, 2) : payloadIn(codec, value)];
  } catch (why) {
    const [unknown, told] = encode(new Unknown("Unreadable", { message: `the error of ${where} cannot be sent: ${sentence(why)}` }));
    return [unknown, payload(told)];
  }
}

/** What an error says. It never throws, whatever the error's own getters do, and what it gives can be sent. */
export function sentence(error: unknown): string {
  return words(error, () => (error instanceof Error ? String(error.message) : String(error)));
}

/** The same with the error's name, as callers are told of what a method did not mean. */
export function named(error: unknown): string {
  return words(error, () => (error instanceof Error ? `${String(error.name)}: ${String(error.message)}` : String(error)));
}

function words(error: unknown, read: () => string): string {
  try {
    const said = read();
    const told = said.length > WORDS_MAX ? `${said.slice(0, WORDS_MAX)}.. (${said.length} characters)` : said;
    return told.toWellFormed();
  } catch {
    return `${classOf(error)}, which cannot be read: a getter or toString() of it throws`;
  }
}

/** The name of what made an error, found without its own help. */
function classOf(error: unknown): string {
  try {
    const name: unknown = (Object.getPrototypeOf(error) as { constructor?: { name?: unknown } } | null)?.constructor?.name;
    return typeof name === "string" && name !== "" ? name.toWellFormed() : typeof error;
  } catch {
    return typeof error;
  }
}

/** Logs an error with its trace, or what can be told of one that cannot be shown. */
export function report(what: string, error: unknown): void {
  let shown: string;
  try {
    shown = inspect(error);
  } catch {
    shown = named(error);
  }
  console.error(`greenroom: ${what}:`, shown);
}

/** The error of what is no reply. */
export function decode(status: number, payload: Buffer): Error {
  try {
    return failure(status, valueOf(payload));
  } catch (error) {
    return unreadable(error);
  }
}

/** What came cannot be read. */
export function unreadable(error: unknown): Unknown {
  return new Unknown("Unreadable", { message: sentence(error) });
}

function failure(status: number, value: unknown): Error {
  if (status === Status.actorError) return ActorError.of(value);
  const [family, inside] = only(value);
  if (family === "Cycle" && Array.isArray(inside)) return new Cycle(inside.map(String));
  const [reason, detail] = only(inside);
  const isRefused = family === "Refused" || (family === "" && [Status.refused, Status.invalid, Status.expired].some((one) => one === status));
  if (family === "Unknown" && reason === "Fenced") return new Fenced(true);
  const fields = isObject(detail) ? detail : detail === undefined ? {} : { what: detail };
  return isRefused ? new Refused(reason || "Refused", fields) : new Unknown(reason || "Unknown", fields);
}

function only(value: unknown): [string, unknown] {
  if (typeof value === "string") return [value, undefined];
  if (isObject(value)) {
    const [first, ...others] = Object.entries(value);
    if (first && others.length === 0) return first;
  }
  return ["", value];
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

function text(value: unknown): string {
  return JSON.stringify(value, (_, inside: unknown) => (typeof inside === "bigint" ? String(inside) : inside));
}

/** Characters of an error that others are told; its host's log has all of them. */
const WORDS_MAX = 16 << 10;
const FINAL = new Set(["UnknownKind", "UnknownMethod", "Invalid", "InvalidKey", "DeadLetter", "Unbound", "Denied", "TickOver", "Leaving", "Unsendable"]);
