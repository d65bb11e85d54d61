/** What a call may end with, other than its reply. */

import { FrameError, Status, payload, payloadIn, valueOf } from "./frames.js";

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
  console.error(`greenroom: ${where} failed:`, error);
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return encode(new Unknown("Panicked", { message }));
}

/** The same with the payload: an error of its own in a codec, with its sentence if that is to be told. */
export function written(error: unknown, where: string, codec: number, isTold = false): [number, Buffer] {
  const [status, value] = outcome(error, where);
  if (status !== Status.actorError) return [status, payload(value)];
  try {
    const says = error instanceof Error ? error.message : String(error);
    return [status, isTold ? payloadIn(codec, { error: value, says }, 2) : payloadIn(codec, value)];
  } catch (why) {
    const [unknown, told] = encode(new Unknown("Unreadable", { message: `the error of ${where} cannot be sent: ${sentence(why)}` }));
    return [unknown, payload(told)];
  }
}

export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The error of what is no reply. */
export function decode(status: number, payload: Buffer): Error {
  let value: unknown;
  try {
    value = valueOf(payload);
  } catch (error) {
    if (error instanceof FrameError) return new Unknown("Unreadable", { message: error.message });
    throw error;
  }
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

const FINAL = new Set(["UnknownKind", "UnknownMethod", "Invalid", "InvalidKey", "DeadLetter", "Unbound", "Denied", "TickOver", "Leaving", "Unsendable"]);
