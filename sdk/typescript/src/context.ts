/** What a turn may ask of its node. */

import { randomUUID } from "node:crypto";

import { Fenced, Refused } from "./errors.js";
import { Batch, NIL, Op, Reader, Tag, payload, payloadIn, valueOf } from "./frames.js";
import { checked, checkedNow, type AnyKind } from "./kind.js";
import type { Lane } from "./lane.js";
import { Referrer } from "./refs.js";
import type { Seat } from "./seat.js";
import type { Turn } from "./turn.js";

/** What a turn may ask of its node. Its `state` is the activation's. */
export class Context<S = object> extends Referrer {
  constructor(private readonly seat: Seat, private readonly turn?: Turn) {
    super();
  }

  get state(): S {
    return this.seat.state as S;
  }
  set state(state: S) {
    this.seat.state = state as object;
  }

  /** The actor's kind. */
  get kind(): string {
    return this.seat.kind.name;
  }

  /** The actor's key. */
  get key(): string {
    return this.seat.key;
  }

  /** What only rises: to be sent along to what is outside of the cluster, which then can refuse what is older. */
  get fence(): readonly [epoch: bigint, turn: number] {
    return [this.seat.epoch, this.turn?.number ?? 0];
  }

  /** Aborted when the turn's caller has given up, or its host may no longer act. */
  get signal(): AbortSignal {
    return (this.turn ?? this.seat).abort.signal;
  }

  /** Milliseconds that are left of the turn's time; `undefined` if it has no limit. */
  get left(): number | undefined {
    return this.turn?.until ? Math.max(0, this.turn.until - performance.now()) : undefined;
  }

  /** The pairs of the request context that came with the turn's message. */
  get context(): Record<string, string> {
    const found: Record<string, string> = {};
    const pairs = this.#came(Tag.context);
    while (pairs && pairs.at < pairs.end) found[pairs.text()] = pairs.text();
    return found;
  }

  /** On whose behalf the turn is, if anybody's. */
  get principal(): string | undefined {
    return this.#came(Tag.principal)?.text();
  }

  /** Saves the actor's state: a conditional write. Once it is done, it is stored. */
  async save(): Promise<void> {
    if (!this.seat.kind.definition.persistent) throw new TypeError(`${this.kind} keeps nothing: write persistent: true`);
    const dump = this.seat.dump();
    const fields = new Batch().fields([["self", dump]]).take();
    await this.#ask(Op.save, { state: "self", fields });
    this.seat.saved = dump;
  }

  /** Reads the state again from the store. */
  async reload(): Promise<void> {
    const stored = await this.#ask(Op.reload, { state: "self" });
    if (!stored.equals(NIL)) this.seat.load(stored);
  }

  /** Removes the state from the store, and begins with a fresh one. */
  async clear(): Promise<void> {
    await this.#ask(Op.clear, { state: "self" });
    this.seat.saved = undefined;
    this.seat.renew();
  }

  /** Calls a method of this actor once, so many milliseconds from now. It ends with the activation. */
  after(ms: number, method: string, args: unknown = {}): Timer {
    return this.#timer(method, args, { after_us: micros(ms) });
  }

  /** Calls a method of this actor in each period, as long as the activation lasts. Ticks never pile up. */
  every(ms: number, method: string, args: unknown = {}): Timer {
    return this.#timer(method, args, { after_us: micros(ms), every_us: micros(ms) });
  }

  /** Sets a reminder, which is kept in the store. One of the same name, by default the method's, is replaced. */
  async remind(method: string, { args = {}, after, every, name = method }: Reminder): Promise<void> {
    const first = after ?? every;
    if (first === undefined) throw new TypeError("a reminder needs `after` or `every`; it has no cron patterns here");
    for (const time of [first, every ?? first]) if (!(time >= 0)) throw new RangeError(`a reminder comes after so many milliseconds, at least 1000: ${time} is no such time`);
    const { schema } = this.seat.method(method);
    if (schema) await checked(schema, args).catch((error: unknown) => refuse(this.kind, method, error));
    // By the node's clock; one of an older build reads the other.
    const what = { name, method, after_ms: Math.round(first), due_ms: Math.round(Date.now() + first), arguments: payload(args) };
    await this.#ask(Op.remind, every === undefined ? what : { ...what, every_ms: Math.round(every) });
  }

  /** Cancels a reminder: once this is done, no turn of it begins. */
  async forget(name: string): Promise<void> {
    await this.#ask(Op.cancelReminder, { name });
  }

  /** The actor's reminders. */
  async reminders(): Promise<SetReminder[]> {
    return valueOf(await this.#ask(Op.listReminders, {})) as SetReminder[];
  }

  /**
   * Has a method of this actor called for each event of a topic, as long as the activation lasts. An event is the method's arguments, or
   * the one that is called `argument`. `activated` is the place for it.
   */
  async subscribe(topic: string, method: string, argument = ""): Promise<void> {
    this.seat.method(method);
    await this.#ask(Op.subscribe, { topic, method, argument });
  }

  async unsubscribe(topic: string): Promise<void> {
    await this.#ask(Op.unsubscribe, { topic });
  }

  /** Sends a value as JSON to an outlet of the nodes', with the commit of this reliable actor's turn: at least once. */
  output(outlet: string, value: unknown): void {
    this.#reliable();
    this.#tell(Op.output, { outlet, message: payloadIn(2, value) });
  }

  /** Lets an actor of a reliable kind come into being with this turn's commit: its key, which was never used. */
  async create(kind: AnyKind | string): Promise<string> {
    this.#reliable();
    return valueOf(await this.#ask(Op.create, { kind: typeof kind === "string" ? kind : kind.name })) as string;
  }

  /**
   * What `make` gives: chance, the time, whatever neither the message nor what is stored decides. Where a test's node runs reliable turns twice
   * (`--rerun`), the second run gets what the first one got; anywhere else nobody is asked.
   */
  async choose<T>(make: () => T): Promise<T> {
    const made = make();
    if (!this.seat.lane.session.welcome?.rerun || !this.seat.kind.definition.reliable || !this.turn) return made;
    return valueOf(await this.#ask(Op.chosen, { value: payload(made) })) as T;
  }

  /** Ends this reliable actor with its turn's commit: its state and what waits for it go. */
  halt(): void {
    this.#reliable().halts = true;
  }

  /**
   * Takes this state machine to another of its states, with its turn's commit: what is deferred is looked at again. The turn fails if
   * nothing names that state.
   */
  jump(state: string): void {
    const turn = this.#reliable();
    if (turn.method.isRead || this.seat.kind.definition.start === undefined) {
      throw new TypeError(`${this.kind}.${turn.method.name}: only exclusive turns of state machines jump`);
    }
    turn.jump = state;
  }

  /** The state that this state machine is in, in this turn to its end; `undefined` of what is none. */
  get machineState(): string | undefined {
    return this.seat.machineState;
  }

  /** Keeps the activation from ending of idleness for so many milliseconds. */
  keepAlive(ms: number): void {
    this.#tell(Op.keepAlive, { for_ms: Math.round(ms) });
  }

  /**
   * Lets the activation go to the node called `node` once the turns that it has begun are over. What waits for it follows. Its state goes
   * along if its kind says `travels: true`; a persistent one is read from its store there. It throws `Refused` if the activation stays: there is no
   * such node, nobody hosts the kind there, or the kind says neither.
   */
  async migrate(node: string): Promise<void> {
    await this.#ask(Op.migrate, { node });
  }

  /** Ends the activation after this turn. */
  deactivate(): void {
    this.#tell(Op.deactivate, {});
  }

  override scope(): { seat: Seat; turn: Turn | undefined } {
    return { seat: this.seat, turn: this.turn };
  }

  override laneNow(): Lane {
    return this.seat.lane;
  }

  override async lane(): Promise<Lane> {
    return this.seat.lane;
  }

  #reliable(): Turn {
    if (!this.turn || !this.seat.kind.definition.reliable) throw new TypeError(`${this.kind}: this is for turns of reliable actors`);
    return this.turn;
  }

  #came(tag: number): Reader | undefined {
    const fields = new Reader(this.turn?.extension ?? Buffer.alloc(0));
    while (fields.at < fields.end) {
      const found = fields.varint();
      const field = fields.block();
      if (found === tag) return new Reader(field);
    }
    return undefined;
  }

  #ask(operation: number, what: Record<string, unknown>): Promise<Buffer> {
    return this.seat.lane.ask(this.seat, this.turn, operation, what);
  }

  #tell(operation: number, what: Record<string, unknown>): void {
    if (this.turn?.isDead) throw new Fenced();
    this.seat.lane.tell(this.seat, this.turn, operation, what);
  }

  #timer(method: string, args: unknown, times: Record<string, number>): Timer {
    const { schema } = this.seat.method(method);
    try {
      if (schema) checkedNow(schema, args);
    } catch (error) {
      refuse(this.kind, method, error);
    }
    // The timer of a reliable actor outlasts its lane, and is known by its name alone.
    const { reliable } = this.seat.kind.definition;
    const name = reliable ? randomUUID() : String(this.seat.lane.number());
    if (!reliable) this.seat.timers.add(name, times.every_us === undefined ? times.after_us! / 1000 : undefined);
    this.#tell(Op.timer, { name, method, arguments: payload(args), ...times });
    // In the name of the turn that cancels it, which may be a later one.
    const cancel = () => {
      this.seat.timers.delete(name);
      this.seat.lane.tell(this.seat, this.seat.exclusive ?? this.turn, Op.cancelTimer, { name });
    };
    return { name, cancel };
  }
}

/** A timer of an activation. */
export interface Timer {
  readonly name: string;
  /** Ends it, in the actor's own exclusive turn: no tick of it begins any more. */
  cancel(): void;
}

/** A reminder that is set: `due_ms` since 1970, and `every_ms` or `cron` if it comes again. */
export interface SetReminder {
  name: string;
  method: string;
  due_ms: number;
  every_ms: number | null;
  cron: string | null;
}

/** When a reminder comes, in milliseconds. */
export interface Reminder {
  args?: unknown;
  after?: number;
  every?: number;
  name?: string;
}

/** A tick that cannot run is refused where it is set, by the method's name. */
function refuse(kind: string, method: string, error: unknown): never {
  if (!(error instanceof Refused)) throw error;
  throw new Refused("Invalid", { ...error.detail, message: `${kind}.${method} does not take these arguments: ${error.detail.message}` });
}

function micros(ms: number): number {
  return Math.max(1, Math.round(ms * 1000));
}
