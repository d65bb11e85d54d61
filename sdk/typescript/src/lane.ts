/** A user lane: the turns, calls and streams of one shard, a batch a round. */

import type { Socket } from "node:net";

import { Context } from "./context.js";
import { Fenced, Refused, Unknown, decode, encode, report, sentence, written } from "./errors.js";
import { Batch, FrameError, NIL, Reader, Splitter, Status, T, payload, payloadIn, valueOf, withSeat } from "./frames.js";
import { checked, isGenerator } from "./kind.js";
import { Seat } from "./seat.js";
import type { Session } from "./session.js";
import { Inlet, Outlet } from "./streams.js";
import { Turn } from "./turn.js";

interface Request {
  resolve(answer: { status: number; payload: Buffer }): void;
  reject(error: Error): void;
}

/** One connection to one shard of a node. */
export class Lane {
  readonly seats = new Map<number, Seat>();
  readonly turns = new Map<number, Turn>();
  readonly requests = new Map<number, Request>();
  readonly inlets = new Map<number, Inlet>();
  readonly outlets = new Map<number, Outlet>();
  isDead = false;
  isJoined = false;
  /** Whether the node has said goodbye on it. */
  isDismissed = false;
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #out = new Batch();
  readonly #splitter: Splitter;
  readonly #routes = new Map<string, number>();
  #isFlushDue = false;
  #frames = 0;
  #numbers = 0;
  #sent = 0;
  #granted: number;
  #blocked: (() => void)[] = [];

  constructor(readonly session: Session, readonly shard: number, join: Buffer) {
    this.#granted = session.window;
    this.#splitter = new Splitter(session.frameMax);
    let done = () => {};
    this.closed = new Promise((resolve) => (done = resolve));
    this.#socket = session.way.open(join, (data) => this.#round(data), (error) => {
      if (error) console.error(`greenroom: lane ${shard}: ${error.message}`);
      this.drop();
      done();
    }, () => {
      this.isJoined = true;
      session.look();
    });
  }

  close(): void {
    this.#flush();
    this.#socket.end();
    this.#socket.destroySoon();
  }

  /** Abandons what runs, and drops all seats: nothing that was here acts any more. */
  drop(): void {
    if (this.isDead) return;
    this.isDead = true;
    for (const turn of this.turns.values()) turn.abandon();
    for (const seat of this.seats.values()) {
      seat.isDead = true;
      seat.abort.abort(new Fenced());
    }
    for (const outlet of [...this.outlets.values()]) outlet.stop();
    this.turns.clear();
    this.seats.clear();
    const lost = new Unknown("Disconnected", { node: this.session.nodeName });
    for (const request of this.requests.values()) request.reject(lost);
    this.requests.clear();
    for (const inlet of [...this.inlets.values()]) inlet.end(lost);
    for (const wake of this.#blocked.splice(0)) wake();
  }

  /** Sends a frame with the round's batch; gives its length. */
  write(type: number, body: (batch: Batch) => unknown): number {
    const at = this.#out.begin(type);
    try {
      body(this.#out);
      const size = this.#out.end(at);
      if (size - 4 > this.session.frameMax) throw new Refused("Unsendable", { message: `${size} bytes are over the bound of ${this.session.frameMax}` });
      if (++this.#frames >= BATCH) this.#flush();
      else if (!this.#isFlushDue) {
        this.#isFlushDue = true;
        setImmediate(() => this.#flush());
      }
      return size;
    } catch (error) {
      this.#out.cut(at);
      throw error;
    }
  }

  #flush(): void {
    this.#frames = 0;
    this.#isFlushDue = false;
    if (this.#out.length > 0) {
      const batch = this.#out.take();
      if (this.#socket.writable) this.#socket.write(batch);
    }
  }

  // What comes.

  #round(data: Buffer): void {
    if (this.isDead) return;
    try {
      this.#splitter.feed(data, (type, reader) => {
        this.#hear(type, reader);
        return !this.isDead;
      });
    } catch (error) {
      // Whatever bytes have led to it, they end this lane, and not the process.
      if (error instanceof FrameError) console.error(`greenroom: lane ${this.shard}: ${error.message}`);
      else report(`lane ${this.shard}`, error);
      this.write(T.goodbye, (body) => body.u8(4).text(sentence(error).slice(0, 300).toWellFormed()));
      this.close();
      this.drop();
    }
  }

  #hear(type: number, reader: Reader): void {
    switch (type) {
      case T.turn:
        return this.#turn(reader);
      case T.activate:
        return this.#activate(reader);
      case T.deactivate:
        return this.#deactivate(reader);
      case T.cancelTurn:
        return this.turns.get(reader.varint())?.cancel();
      case T.reply: {
        const number = reader.varint();
        const request = this.requests.get(number);
        this.requests.delete(number);
        const status = reader.u8();
        // What is kept is copied: the buffer that it lies in may hold a whole batch.
        return request?.resolve({ status, payload: Buffer.from(reader.rest()) });
      }
      case T.streamItem: {
        const inlet = this.inlets.get(reader.varint());
        const number = reader.varint();
        return inlet?.item(number, reader.rest());
      }
      case T.streamEnd: {
        const inlet = this.inlets.get(reader.varint());
        const [count, status] = [reader.varint(), reader.u8()];
        return inlet?.finish(count, status, reader.rest());
      }
      case T.streamCredit: {
        const outlet = this.outlets.get(reader.varint());
        const [window, consumed] = [reader.varint(), reader.varint()];
        return outlet?.credit(window, consumed);
      }
      case T.credit:
        this.#granted = Math.max(this.#granted, this.session.window + reader.varint());
        return this.#wake();
      case T.operationRefused: {
        reader.varint();
        const [actor, operation, reason] = [reader.text(), reader.text(), reader.text()];
        return console.error(`greenroom: the node refuses ${operation} of ${actor || "this host"}: ${reason}`);
      }
      case T.goodbye: {
        const code = reader.u8();
        this.isDismissed = true;
        // What is done, or a node that stops, is no error.
        if (code > 1) console.error(`greenroom: the node ends lane ${this.shard} (${code}): ${reader.text()}`);
        this.close();
        return this.drop();
      }
      default: // A later version's.
    }
  }

  #seat(number: number): Seat {
    const seat = this.seats.get(number);
    if (!seat) throw new FrameError(`a frame names seat ${number}, which is not there`);
    return seat;
  }

  #turn(reader: Reader): void {
    const number = reader.varint();
    const seat = this.#seat(reader.varint());
    const method = seat.kind.methods[reader.varint()];
    const flags = reader.u8();
    const left = reader.varint();
    const extension = reader.block();
    if (!method || !seat.isReady || this.turns.has(number)) throw new FrameError(`turn ${number} names what is not there, or has begun`);
    // Nothing begins any more.
    if (this.session.isOver()) return this.session.lose("its lease is over");
    const turn = new Turn(seat, number, method, left ? performance.now() + left / 1000 : 0);
    if (extension.length > 0) turn.extension = Buffer.from(extension);
    this.turns.set(number, turn);
    turn.isHeard = (flags & 5) === 1;
    let args: unknown;
    try {
      const given = reader.rest();
      turn.codec = given[0] ?? 1;
      turn.isTold = given[0] === 2 && given[1] === 2;
      args = valueOf(given, true);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      return this.#fail(turn, new Refused("Invalid", { field: error.field, message: error.message }));
    }
    if (!method.isRead) seat.exclusive = turn;
    try {
      const context = new Context(seat, turn);
      const { schema } = method;
      if (isGenerator(method.run)) {
        if (!schema) return this.#stream(turn, method.run(context, args ?? {}));
        return void checked(schema, args)
          .then((value) => turn.isDead || this.#stream(turn, method.run(context, value)))
          .catch((error: unknown) => this.#fail(turn, error));
      }
      const made = schema ? checked(schema, args).then((value) => method.run(context, value)) : method.run(context, args ?? {});
      if (made instanceof Promise) {
        made.then(
          (value) => this.#end(turn, value),
          (error: unknown) => this.#fail(turn, error),
        );
      } else {
        this.#end(turn, made);
      }
    } catch (error) {
      this.#fail(turn, error);
    }
  }

  /** Ends a turn with the stream of what its generator gives. */
  #stream(turn: Turn, items: unknown): void {
    const { seat, method } = turn;
    const outlet = new Outlet(this, seat, this.number(), items as AsyncIterator<unknown>, turn.codec, `${seat.kind.name}/${seat.key}.${method.name}`);
    this.outlets.set(outlet.number, outlet);
    seat.streams.add(outlet.number);
    this.#finish(turn, Status.ok, NIL, outlet.number);
  }

  #end(turn: Turn, value: unknown): void {
    if (turn.isDead) return;
    try {
      const answer = payloadIn(turn.codec, value ?? null);
      if (turn.owed.length === 0) return this.#settle(turn, Status.ok, answer);
      void Promise.all(turn.owed.splice(0)).then((lost) => {
        const error = lost.find((one) => one !== undefined);
        return error === undefined ? this.#end(turn, value) : this.#fail(turn, error);
      });
    } catch (error) {
      this.#fail(turn, unsent(error, "the reply"));
    }
  }

  #fail(turn: Turn, error: unknown): void {
    if (turn.isDead) return;
    if (turn.owed.length > 0) return void Promise.all(turn.owed.splice(0)).then(() => this.#fail(turn, error));
    const { seat, method } = turn;
    const where = `${seat.kind.name}/${seat.key}.${method.name}`;
    let [status, answer] = written(error, where, turn.codec, turn.isTold);
    if (status === Status.actorError) {
      try {
        return this.#settle(turn, status, answer);
      } catch (why) {
        [status, answer] = written(unsent(why, "the error"), where, turn.codec);
      }
    }
    // Nobody else hears of it.
    if (status === Status.invalid && !turn.isHeard) console.error(`greenroom: ${where} has not run, as its arguments do not fit: ${sentence(error)}`);
    const { persistent, reliable, onError } = seat.kind.definition;
    if ((persistent || reliable || onError === "restart") && !method.isRead && status !== Status.invalid) {
      try {
        seat.renew();
      } catch (why) {
        report(`${seat.kind.name}/${seat.key} cannot be made anew`, why);
      }
    }
    this.#finish(turn, status, answer);
  }

  #settle(turn: Turn, status: number, answer: Buffer): void {
    const { seat, method } = turn;
    const { save, reliable } = seat.kind.definition;
    // The node commits what has changed with what was sent.
    if (reliable && !method.isRead) return this.#finish(turn, status, answer, undefined, seat.changes());
    if (method.isRead || save === undefined || save === "explicit") return this.#finish(turn, status, answer);
    const state = seat.dump();
    if (seat.saved?.equals(state)) return this.#finish(turn, status, answer);
    // Reply and state are one frame: neither comes without the other.
    this.#finish(turn, status, answer, undefined, [["self", state]]);
    seat.saved = state;
  }

  #finish(turn: Turn, status: number, answer: Buffer, stream?: number, changes: [string, Buffer][] = []): void {
    const { seat, number } = turn;
    // Of a turn that has failed nothing is kept.
    const jump = status === Status.ok || status === Status.actorError ? turn.jump : undefined;
    this.write(T.turnEnd, (body) => {
      const flags = (changes.length > 0 ? 1 : 0) + (jump === undefined ? 0 : 2) + (turn.halts ? 4 : 0) + (stream === undefined ? 0 : 8);
      body.varint(number).u8(status).u8(flags);
      if (changes.length > 0) body.fields(changes);
      if (jump !== undefined) body.text(jump);
      if (stream !== undefined) body.varint(stream);
      body.bytes(answer);
    });
    this.turns.delete(number);
    seat.machineState = jump ?? seat.machineState;
    if (turn.halts) {
      seat.journaled.clear();
      seat.machineState = seat.kind.definition.start;
    }
    if (seat.exclusive === turn) {
      seat.exclusive = undefined;
      for (const wake of seat.waiting.splice(0)) wake();
    }
  }

  /** The same, if a frame has room for it; else that it has not, which costs nobody the lane. */
  fitting(status: number, answer: Buffer, what: string): [number, Buffer] {
    const size = answer.length + HEAD_MAX;
    if (size <= this.session.frameMax) return [status, answer];
    const [unknown, value] = encode(new Unknown("Unreadable", { message: `${what} has ${size} bytes, over the bound of ${this.session.frameMax}; let it be smaller` }));
    return [unknown, payload(value)];
  }

  #activate(reader: Reader): void {
    const [number, offer] = [reader.varint(), reader.varint()];
    const epoch = reader.big();
    const flags = reader.u8();
    const key = reader.text();
    const state = flags & 1 ? reader.text() : undefined;
    const kind = this.session.kinds[offer];
    if (!kind || (flags & ~3) !== 0 || this.seats.has(number)) throw new FrameError(`Activate of seat ${number} names what is not there`);
    const carried = flags & 2 ? Buffer.from(reader.block()) : undefined;
    const stored = [...reader.fields()].map(([name, value]): [string, Buffer] => [name, Buffer.from(value)]);
    const seat = new Seat(this, number, kind, key, epoch);
    seat.machineState = state ?? seat.machineState;
    this.seats.set(number, seat);
    void seat.activate(new Map(stored), carried);
  }

  #deactivate(reader: Reader): void {
    const seat = this.#seat(reader.varint());
    const [why, flags] = [reader.u8(), reader.u8()];
    if (flags & 2) {
      for (const turn of [...this.turns.values()].filter((turn) => turn.seat === seat)) {
        this.turns.delete(turn.number);
        turn.abandon();
      }
    }
    for (const number of [...seat.streams]) this.outlets.get(number)?.stop();
    void seat.release(WHY[why] ?? "other", (flags & 1) !== 0);
  }

  // What goes.

  /** Throws `Fenced` if a seat, its turn or the session may no longer act. */
  check(seat: Seat | undefined, turn?: Turn): void {
    if (this.session.isOver()) this.session.lose("its lease is over");
    if (turn?.isDead || seat?.isDead) throw new Fenced();
    if (this.isDead) throw new Refused("Unreachable", { node: this.session.nodeName, reason: "the connection is lost" });
  }

  /** Whether a frame that costs credit may go at once. */
  get hasRoom(): boolean {
    return this.#sent < this.#granted && this.#blocked.length === 0;
  }

  /** Waits until a frame that costs credit may go. Whoever waits longest goes first. */
  room(): Promise<void> {
    const room = new Promise<void>((wake) => this.#blocked.push(wake));
    // Whoever it is may be too late to send: the next one looks for itself.
    return room.finally(() => setImmediate(() => this.#wake()));
  }

  #wake(): void {
    if (this.#sent < this.#granted) this.#blocked.shift()?.();
  }

  /** Sends a frame that costs credit. */
  pay(type: number, body: (batch: Batch) => unknown): void {
    this.#sent += this.write(type, body);
    this.#wake();
  }

  /** The next number of a request or a stream. */
  number(): number {
    return ++this.#numbers;
  }

  call(number: number, seat: Seat | undefined, turn: Turn | undefined, kind: string, method: string, version: number, key: Buffer, left: number, carried: Buffer, args: Buffer): void {
    this.check(seat, turn);
    const name = `${kind}\0${method}`;
    let route = this.#routes.get(name);
    if (route === undefined) {
      const next = (route = this.#routes.size);
      this.write(T.define, (body) => body.varint(next).text(named(kind, "kind")).text(named(method, `${kind}: method`)).varint(version));
      // Not before it is said: the node knows no route of names that cannot be.
      this.#routes.set(name, next);
    }
    const to = route;
    const laden = seat && !turn ? withSeat(carried, seat.number) : carried;
    this.pay(T.call, (body) => body.varint(number).varint(turn?.number ?? 0).varint(to).block(key).varint(Math.ceil(left * 1000)).block(laden).bytes(args));
  }

  /** The answer to a request, which `send` sends. */
  answer(number: number, seat: Seat | undefined, turn: Turn | undefined, send: () => void, signal?: AbortSignal): Promise<{ status: number; payload: Buffer }> {
    this.check(seat, turn);
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const give = (error: Error) => reject(seat ? new Fenced() : error);
      this.requests.set(number, { resolve, reject: give });
      try {
        send();
      } catch (error) {
        // Nobody answers what was not sent, and nobody waits for it.
        this.requests.delete(number);
        throw error;
      }
      signal?.addEventListener("abort", () => {
        if (this.requests.delete(number) && !this.isDead) this.write(T.cancelCall, (body) => body.varint(number));
        reject(signal.reason as Error);
      }, { once: true });
    });
  }

  /** Asks the node for something; the answer's payload. */
  async ask(seat: Seat | undefined, turn: Turn | undefined, operation: number, what: Record<string, unknown>): Promise<Buffer> {
    if (!this.hasRoom) await this.room();
    const number = this.number();
    const { status, payload } = await this.answer(number, seat, turn, () => this.#ask(number, seat, turn, operation, what));
    this.check(seat, turn);
    if (status !== Status.ok) throw decode(status, payload);
    return payload;
  }

  /** The same, of what is not answered. */
  tell(seat: Seat, turn: Turn | undefined, operation: number, what: Record<string, unknown>): void {
    this.check(seat, turn);
    this.#ask(0, seat, turn, operation, what);
  }

  #ask(number: number, seat: Seat | undefined, turn: Turn | undefined, operation: number, what: Record<string, unknown>): void {
    const packed = payload(what);
    this.pay(T.ask, (body) => body.varint(number).varint(turn?.number ?? 0).varint(seat?.number ?? 0).u8(operation).bytes(packed));
  }
}

/** What may name something: the node ends a lane on which it comes by another name. */
function named(name: string, what: string): string {
  if (name !== "" && name.isWellFormed() && Buffer.byteLength(name) <= NAME_MAX) return name;
  throw new TypeError(`${what} ${JSON.stringify(name.slice(0, 80))} is no name: give 1 to ${NAME_MAX} bytes of UTF-8`);
}

const NAME_MAX = 128;

/** Why a turn's end could not be sent. */
function unsent(error: unknown, what: string): Unknown {
  return error instanceof Unknown && error.reason === "Unsaved" ? error : new Unknown("Unreadable", { message: `${what} cannot be sent: ${sentence(error)}` });
}

/** Frames that leave before a round is over: the node goes on with them meanwhile. */
const BATCH = 16;

/** Bytes of a frame before its payload, at most, where these are numbers alone. */
const HEAD_MAX = 32;

/** Why a seat is left, by its byte. */
const WHY = ["idle", "stopping", "asked", "failed", "migrating", "superseded", "upgraded", "unsaved", "duplicate", "stopped"];
