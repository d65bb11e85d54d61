/** References: calls of actors, with the kind's own signatures. */

import { inspect } from "node:util";

import { Refused, Unknown, decode, isObject, sentence, unreadable } from "./errors.js";
import { CARRIED_MAX, Op, Status, carried, payload, valueOf } from "./frames.js";
import { definitionOf, isGenerator, type AnyKind, type Handlers, type Kind } from "./kind.js";
import type { Lane } from "./lane.js";
import type { Seat } from "./seat.js";
import { Inlet, WINDOW } from "./streams.js";
import type { Turn } from "./turn.js";

/** How a call is made. */
export interface CallOptions {
  /** Milliseconds that it may take; a turn's own limit holds in any case. */
  timeout?: number;
  signal?: AbortSignal;
  /** Pairs for the request context of the call, and of all that are made on its behalf. */
  context?: Record<string, string> | undefined;
  /** Among all calls of a reliable actor with this key one runs, and the others get the answer that was recorded; other actors refuse it. */
  idempotencyKey?: string | undefined;
}

type Reply<F> = F extends (...args: never[]) => infer R
  ? R extends AsyncGenerator<infer T, unknown, unknown> | Generator<infer T, unknown, unknown>
    ? AsyncIterable<T>
    : Promise<Awaited<R>>
  : never;
type Args<F> = F extends (c: any, ...rest: infer A) => any ? A : never;
/** What a method takes; the options of a call come second, also where there is nothing to give. */
type Given<F> = Args<F> extends [] ? [args?: Record<string, never>] : Args<F>;
type Called<M> = { readonly [name in keyof M]: (...args: [...Given<M[name]>, ...options: [options?: CallOptions]]) => Reply<M[name]> };
type Told<M> = { readonly [name in keyof M]: (...args: Args<M[name]>) => Promise<void> };

/** An actor, by its kind and key: its methods make calls, those of `$send` one-way messages. */
export type Ref<M, R> = Called<M> & Called<R> & { readonly $send: Told<M & R> };

/** An actor of which only the kind's name is known. */
export type AnyRef = { readonly [name: string]: (args?: object, options?: CallOptions) => Promise<unknown> } & {
  readonly $send: { readonly [name: string]: (args?: object) => Promise<void> };
};

/** Makes references: a turn's context, or a client. */
export abstract class Referrer {
  /** The actor of a kind and key. */
  ref<S extends object, M, R>(kind: Kind<S, M, R>, key: string, options?: CallOptions): Ref<M, R>;
  ref(kind: string, key: string, options?: CallOptions): AnyRef;
  ref(kind: AnyKind | string, key: string, options: CallOptions = {}): unknown {
    // So long are keys where stores escape them; the node counts in the same way.
    const size = typeof key === "string" && key.isWellFormed() ? Buffer.byteLength(key.replaceAll(/[/%]/g, "xxx")) : 0;
    if (size === 0 || size > KEY_BYTES_MAX || key === "." || key === "..") throw new Refused("InvalidKey", { message: `a key is ${KEY_RULE}, which ${inspect(key, { maxStringLength: 40 })} is not` });
    const target = new Target(this, kind, key, options);
    const $send = methods((name) => (args: unknown) => target.send(name, args));
    return methods((name) => (name === "$send" ? $send : target.method(name)), $send);
  }

  /** A topic: what is published to it comes to all who subscribe to it. */
  topic<T>(name: string): Topic<T> {
    return new Topic<T>(this, name);
  }

  abstract scope(): { seat: Seat | undefined; turn: Turn | undefined };
  abstract laneNow(kind: string, key: string): Lane | undefined;
  abstract lane(kind: string, key: string): Promise<Lane>;
}

function methods(make: (name: string) => unknown, $send?: unknown): unknown {
  return new Proxy(Object.create(null) as object, {
    // A reference that is awaited is itself: it has no `then`.
    get: (_, name) => (typeof name !== "string" || name === "then" ? undefined : name === "$send" ? $send : make(name)),
  });
}

class Target {
  readonly name: string;
  readonly version: number;
  readonly #key: Buffer;
  readonly #streams: Set<string> | undefined;
  readonly #known: Set<string> | undefined;

  constructor(readonly caller: Referrer, kind: AnyKind | string, readonly key: string, readonly options: CallOptions) {
    this.#key = Buffer.from(key);
    if (typeof kind === "string") {
      [this.name, this.version] = [kind, 0];
    } else {
      const { version = 1, methods, reads } = definitionOf(kind);
      [this.name, this.version] = [kind.name, version];
      const all: Handlers<object> = { ...methods, ...reads };
      this.#known = new Set(Object.keys(all));
      this.#streams = new Set(Object.keys(all).filter((name) => isGenerator(all[name])));
    }
  }

  method(name: string): (args?: unknown, options?: CallOptions) => unknown {
    if (this.#known && !this.#known.has(name)) throw new TypeError(`${this.name} has no method ${name}`);
    if (this.#streams?.has(name)) return (args, options) => this.#stream(name, args, options);
    return (args, options) => this.#call(name, args, options);
  }

  send(name: string, args: unknown): Promise<void> {
    const sent = new Sent(this.#send(name, args), `${this.name}/${this.key}.${name}`);
    const { turn } = this.caller.scope();
    if (turn?.seat.kind.definition.reliable) turn.owed.push(sent.lost);
    return sent;
  }

  async #send(name: string, args: unknown): Promise<void> {
    const lane = this.caller.laneNow(this.name, this.key) ?? (await this.caller.lane(this.name, this.key));
    const packed = payload(args ?? {});
    if (!lane.hasRoom) await lane.room();
    const { seat, turn } = this.caller.scope();
    lane.call(0, seat, turn, this.name, name, this.version, this.#key, bounded(this.options.timeout) ?? 0, carrying(this.options.context), packed);
  }

  async #call(name: string, args: unknown, options: CallOptions = {}): Promise<unknown> {
    const { reply, lane } = await this.#ask(name, args, options);
    const value = read(reply);
    const stream = streamOf(value);
    return stream === undefined ? value : this.#items(lane, stream);
  }

  async *#stream(name: string, args: unknown, options: CallOptions = {}): AsyncGenerator<unknown> {
    const { reply, lane } = await this.#ask(name, args, options);
    const stream = streamOf(read(reply));
    if (stream === undefined) throw new Unknown("Unreadable", { message: `${this.name}.${name} gave no stream` });
    yield* this.#items(lane, stream);
  }

  async #ask(name: string, args: unknown, options: CallOptions): Promise<{ reply: Buffer; lane: Lane }> {
    const { timeout, signal, context, idempotencyKey } = { ...this.options, ...options };
    signal?.throwIfAborted();
    const limit = bounded(timeout);
    const until = limit === undefined ? 0 : performance.now() + limit;
    const packed = payload(args ?? {});
    const carried = carrying(context, idempotencyKey);
    const lane = this.caller.laneNow(this.name, this.key) ?? (await this.caller.lane(this.name, this.key));
    if (!lane.hasRoom) await lane.room();
    const { seat, turn } = this.caller.scope();
    const number = lane.number();
    const left = until ? Math.max(0.001, until - performance.now()) : 0;
    const send = () => lane.call(number, seat, turn, this.name, name, this.version, this.#key, left, carried, packed);
    const { status, payload: reply } = await lane.answer(number, seat, turn, send, signal);
    lane.check(seat, turn);
    if (status !== Status.ok) throw decode(status, reply);
    return { reply, lane };
  }

  async *#items(lane: Lane, name: string): AsyncGenerator<unknown> {
    const { seat, turn } = this.caller.scope();
    const inlet = new Inlet(lane, lane.number());
    try {
      await lane.ask(seat, turn, Op.openStream, { name, stream: inlet.number, window: WINDOW });
      for (let item = await inlet.take(); item !== undefined; item = await inlet.take()) {
        if (seat) lane.check(seat);
        yield read(item);
      }
    } finally {
      inlet.close();
    }
  }
}

/** A topic, and the type of its events. */
export class Topic<T> {
  constructor(private readonly referrer: Referrer, readonly name: string) {}

  /** Publishes: once it is done, the queues of all subscribers have it. */
  async publish(event: T): Promise<void> {
    await this.referrer.ref("topics", this.name).publish!({ event: JSON.stringify(event) });
  }

  /** The events from now on. */
  async *watch(): AsyncGenerator<T> {
    const terms = { slow: "backpressure", queue_len: 256, from: null };
    const parcels = (await this.referrer.ref("topics", this.name).subscribe!({ terms })) as AsyncIterable<unknown>;
    for await (const parcel of parcels) {
      if (isObject(parcel) && Array.isArray(parcel.Event)) yield JSON.parse(String(parcel.Event[1])) as T;
    }
  }
}

/** A one-way message on its way. That it could not be sent is for who awaits it; where nobody does, it is logged, and fails a reliable turn. */
class Sent extends Promise<void> {
  /** Done when it has gone or cannot, and nobody but this has heard why: with that error. */
  readonly lost: Promise<unknown>;
  #isAwaited = false;

  constructor(sent: Promise<void>, what: string) {
    super((resolve, reject) => void sent.then(resolve, reject));
    this.lost = super.then(undefined, (error: unknown) => {
      // Whoever awaits it does so by now.
      if (this.#isAwaited) return undefined;
      console.error(`greenroom: the one-way message ${what} was not sent, and nobody awaits it: ${sentence(error)}`);
      return error;
    });
  }

  override then<A = void, B = never>(sent?: ((value: void) => A | PromiseLike<A>) | null, failed?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<A | B> {
    this.#isAwaited = true;
    return super.then(sent, failed);
  }

  /** What follows it is a promise as any. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }
}

/** A time that may be said of a call; what has no end, or is longer than anybody waits, bounds nothing. */
function bounded(timeout: number | undefined): number | undefined {
  if (timeout === undefined || timeout > TIMEOUT_MAX_MS) return undefined;
  if (typeof timeout !== "number" || Number.isNaN(timeout)) throw new TypeError(`timeout: ${String(timeout)} bounds no call: give milliseconds, or leave it out`);
  return Math.max(0.001, timeout);
}

const TIMEOUT_MAX_MS = 1e12;

function read(payload: Buffer): unknown {
  try {
    return valueOf(payload);
  } catch (error) {
    throw unreadable(error);
  }
}

function carrying(context: Record<string, string> | undefined, idempotencyKey?: string): Buffer {
  const written = carried(context, idempotencyKey);
  if (written.length <= CARRIED_MAX) return written;
  throw new Refused("Invalid", { field: "context", message: "what the call carries is over 16 KiB; carry less" });
}

function streamOf(value: unknown): string | undefined {
  const name = isObject(value) ? value["greenroom:stream"] : undefined;
  return typeof name === "string" ? name : undefined;
}

const KEY_BYTES_MAX = 400;
const KEY_RULE = "a text of 1 to 400 bytes of UTF-8, where each / and % counts as three, and neither . nor ..";
