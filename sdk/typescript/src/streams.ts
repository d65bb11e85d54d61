/** Streams of replies: what a generator gives, and what is consumed of others. */

import { Unknown, decode, encode, report, written } from "./errors.js";
import { CODECS, FrameError, Status, T, payload, payloadIn } from "./frames.js";
import type { Lane } from "./lane.js";
import type { Seat } from "./seat.js";

/** Items that may be under way to a consumer. */
export const WINDOW = 64;

/** A generator of a seat: its items go as its consumer has room, and each step begins between exclusive turns. */
export class Outlet {
  #sent = 0;
  #until = 0;
  #runs = false;
  #stopped = false;
  #wake: (() => void) | undefined;

  constructor(readonly lane: Lane, readonly seat: Seat, readonly number: number, private readonly items: AsyncIterator<unknown> | Iterator<unknown>, private readonly codec: number, private readonly where: string) {}

  /** The consumer's word on its room. No window gives the stream up. */
  credit(window: number, consumed: number): void {
    if (window === 0) return this.stop();
    this.#until = Math.max(this.#until, consumed + window);
    this.#wake?.();
    if (!this.#runs) {
      this.#runs = true;
      void this.#run();
    }
  }

  /** Ends the stream. */
  stop(): void {
    this.#stopped = true;
    this.#wake?.();
    if (!this.#runs) this.#gone();
  }

  #gone(): void {
    this.lane.outlets.delete(this.number);
    this.seat.streams.delete(this.number);
  }

  async #run(): Promise<void> {
    let end: [number, Buffer] = [Status.ok, Buffer.alloc(0)];
    try {
      for (;;) {
        while (this.#sent >= this.#until && !this.#stopped) await new Promise<void>((wake) => (this.#wake = wake));
        if (!this.lane.hasRoom) await this.lane.room();
        // Last: whatever else it waits for, an exclusive turn may have begun meanwhile.
        while (this.seat.exclusive && !this.#stopped) await new Promise<void>((wake) => this.seat.waiting.push(wake));
        if (this.#stopped) throw new Unknown("Ended", { actor: `${this.seat.kind.name}/${this.seat.key}` });
        this.lane.check(this.seat);
        const { done, value } = await this.items.next();
        if (done) break;
        this.lane.check(this.seat);
        const item = payloadIn(this.codec, value);
        this.lane.pay(T.streamItem, (body) => body.varint(this.number).varint(this.#sent).bytes(item));
        this.#sent += 1;
      }
    } catch (error) {
      end = this.#ending(error);
    }
    this.#gone();
    if (!this.lane.isDead) {
      const [status, answer] = this.lane.fitting(...end, `the end of ${this.where}`);
      this.lane.write(T.streamEnd, (body) => body.varint(this.number).varint(this.#sent).u8(status).bytes(answer));
    }
    try {
      await this.items.return?.();
    } catch (error) {
      report(`${this.where} failed as it was closed`, error);
    }
  }

  /** How the stream ends that has failed, or was ended. */
  #ending(error: unknown): [number, Buffer] {
    try {
      if (error instanceof Unknown) {
        const [status, value] = encode(error);
        return [status, payload(value)];
      }
    } catch {
      // The user's own, with a detail that cannot be sent: as any other error.
    }
    return written(error, this.where, CODECS?.[0] ?? 1);
  }
}

/** A stream that is consumed here: items in order, none left out, none twice. */
export class Inlet {
  #items: Buffer[] = [];
  #next = 0;
  #taken = 0;
  #said = 0;
  #over: { error?: Error } | undefined;
  #wake: (() => void) | undefined;

  constructor(private readonly lane: Lane, readonly number: number) {
    lane.inlets.set(number, this);
  }

  item(number: number, payload: Buffer): void {
    if (number !== this.#next || this.#items.length >= WINDOW) throw new FrameError(`item ${number} of a stream came in the place of ${this.#next}`);
    this.#next += 1;
    this.#items.push(Buffer.from(payload));
    this.#wake?.();
  }

  finish(count: number, status: number, payload: Buffer): void {
    if (status !== Status.ok) this.end(decode(status, payload));
    else if (count !== this.#next) this.end(new Unknown("Unreadable", { message: "the stream's last items are missing" }));
    else this.end();
  }

  end(error?: Error): void {
    this.#over ??= error ? { error } : {};
    this.lane.inlets.delete(this.number);
    this.#wake?.();
  }

  /** The next item's payload; `undefined` at the end. */
  async take(): Promise<Buffer | undefined> {
    while (this.#items.length === 0) {
      if (this.#over?.error) throw this.#over.error;
      if (this.#over) return undefined;
      await new Promise<void>((wake) => (this.#wake = wake));
    }
    this.#taken += 1;
    if (this.#taken - this.#said >= WINDOW / 2 && !this.#over) this.#credit(WINDOW);
    return this.#items.shift();
  }

  /** Gives the stream up. */
  close(): void {
    if (!this.#over && !this.lane.isDead) this.#credit(0);
    this.end();
  }

  #credit(window: number): void {
    this.#said = this.#taken;
    this.lane.write(T.streamCredit, (body) => body.varint(this.number).varint(window).varint(this.#taken));
  }
}
