/** Seats: how activations get them here, what they keep at them, and how they leave them. */

import { Context } from "./context.js";
import { Refused, Unknown, encode, named, report, sentence, written } from "./errors.js";
import { CODECS, NIL, Status, T, payload, unpack, valueOf } from "./frames.js";
import type { Method, Served } from "./kind.js";
import type { Lane } from "./lane.js";
import { Timers } from "./timers.js";
import type { Turn } from "./turn.js";

/** An activation's place in a session, and its state. */
export class Seat {
  state: object = {};
  /** The payload of the state as it is stored, as far as is known. */
  saved: Buffer | undefined;
  /** The payloads of a reliable actor's state by its members, as the last turn has left them. */
  journaled = new Map<string, Buffer>();
  /** The state that a state machine is in. */
  machineState: string | undefined;
  exclusive: Turn | undefined;
  isReady = false;
  isDead = false;
  readonly abort = new AbortController();
  readonly streams = new Set<number>();
  readonly timers = new Timers();
  /** Streams whose next step waits for the end of an exclusive turn. */
  waiting: (() => void)[] = [];

  constructor(readonly lane: Lane, readonly number: number, readonly kind: Served, readonly key: string, readonly epoch: bigint) {
    this.machineState = kind.definition.start;
  }

  /** Makes the state anew from what is stored: a failed handler's half-changed memory is not saved by the next turn. */
  renew(): void {
    this.state = (this.kind.definition.state?.() ?? {}) as object;
    if (this.saved) this.load(this.saved);
    for (const [name, value] of this.journaled) (this.state as Record<string, unknown>)[name] = valueOf(value);
  }

  /** What a turn has changed of the state's members; from now on it is kept. */
  changes(): [string, Buffer][] {
    const now = Object.entries(this.state).map(([name, value]): [string, Buffer] => [name, this.#packed(() => payload(value ?? null), `state.${name}: `)]);
    const changed = now.filter(([name, value]) => !this.journaled.get(name)?.equals(value));
    for (const [name, value] of changed) this.journaled.set(name, value);
    return changed;
  }

  /** Takes the state of a payload, whatever version of the kind wrote it. */
  load(stored: Buffer): void {
    const wrote = stored[1]!;
    const reads = this.kind.stateVersion;
    if (wrote > reads) throw new Refused("Activation", { message: `the state has version ${wrote}, this program reads up to ${reads}` });
    const value = stored[0] === 1 ? unpack(stored.subarray(2)) : valueOf(stored);
    const { migrate } = this.kind.definition;
    if (wrote < reads && !migrate) throw new TypeError(`${this.kind.name} has no \`migrate\`, and its state has version ${wrote}`);
    this.state = wrote < reads && migrate ? migrate(wrote, value) : Object.assign(this.state, value);
    this.saved = Buffer.from(stored);
  }

  /** The payload of the state. */
  dump(): Buffer {
    return this.#packed(() => payload(this.state, this.kind.stateVersion), "state: ");
  }

  #packed(pack: () => Buffer, where: string): Buffer {
    try {
      return pack();
    } catch (error) {
      throw new Unknown("Unsaved", { message: `${this.kind.name} cannot be saved: ${where}${sentence(error)}` });
    }
  }

  method(name: string): Method {
    const found = this.kind.methods.find((method) => method.name === name);
    if (!found) throw new TypeError(`${this.kind.name} has no method ${name}`);
    return found;
  }

  /** Makes the state from what is stored, or carried from another host, calls the hook, and says how that went. */
  async activate(stored: Map<string, Buffer>, carried?: Buffer): Promise<void> {
    let status: number = Status.ok;
    let answer: Buffer = NIL;
    try {
      if (this.kind.definition.reliable) this.journaled = stored;
      const saved = (this.saved = this.kind.definition.reliable ? undefined : stored.get("self"));
      this.renew();
      if (carried && this.kind.hasState) {
        this.load(carried);
        this.saved = saved;
      }
      await this.kind.definition.activated?.(new Context(this));
      this.isReady = true;
    } catch (error) {
      report(`${this.kind.name}/${this.key} cannot be activated`, error);
      [status, answer] = refusal(error);
      if (!this.isDead) this.lane.seats.delete(this.number);
    }
    if (this.isDead) return;
    [status, answer] = this.lane.fitting(status, answer, `why ${this.kind.name}/${this.key} cannot be activated`);
    this.lane.write(T.activated, (body) => body.varint(this.number).u8(status).bytes(answer));
  }

  /** Calls the hook, and gives the seat back with the state if that is carried to another host. */
  async release(why: string, isCarried: boolean): Promise<void> {
    let [status, carried] = [0, Buffer.alloc(0) as Buffer];
    try {
      await this.kind.definition.deactivating?.(new Context(this), why);
      if (isCarried && this.kind.hasState) carried = this.dump();
    } catch (error) {
      [status, carried] = written(error, `${this.kind.name}/${this.key}.deactivating`, CODECS?.[0] ?? 1);
    }
    if (this.isDead) return;
    this.isDead = true;
    this.lane.seats.delete(this.number);
    [status, carried] = this.lane.fitting(status, carried, `what ${this.kind.name}/${this.key} carries`);
    this.lane.write(T.released, (body) => body.varint(this.number).u8(status).bytes(carried));
  }
}

/** Why a seat is not taken: the hook's own words if they can be sent. */
function refusal(error: unknown): [number, Buffer] {
  const told = new Refused("Activation", { message: named(error) });
  try {
    const [status, value] = encode(error instanceof Refused ? error : told);
    return [status, payload(value)];
  } catch {
    const [status, value] = encode(told);
    return [status, payload(value)];
  }
}
