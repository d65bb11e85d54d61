/** Until when a host may act: written by the control lane's thread, read by the loop. */

/** Nanoseconds of the monotonic clock, and of the wall's: a suspended machine stops the first one, so that the greater counts. */
export interface Now {
  monotonic: bigint;
  wall: bigint;
}

export function now(): Now {
  return { monotonic: process.hrtime.bigint(), wall: BigInt(Date.now()) * 1_000_000n };
}

/**
 * It counts from when it was asked for, not from when it was answered, and ends at 0.99 of what was granted: before the node
 * can believe that it is over.
 */
export class Lease {
  readonly #until: BigInt64Array;
  #asked = new Map<number, Now>();
  next = 0;

  constructor(readonly shared = new SharedArrayBuffer(16), private readonly clock = now) {
    this.#until = new BigInt64Array(shared);
  }

  /** Until when, by both clocks. */
  get until(): Now {
    return { monotonic: Atomics.load(this.#until, 0), wall: Atomics.load(this.#until, 1) };
  }

  isOver(): boolean {
    const { monotonic, wall } = this.clock();
    return monotonic >= Atomics.load(this.#until, 0) || wall >= Atomics.load(this.#until, 1);
  }

  /** The number of an Alive, which counts from now. */
  ask(): number {
    this.next += 1;
    this.#asked.set(this.next, this.clock());
    if (this.#asked.size > 64) this.#asked.delete(Math.min(...this.#asked.keys()));
    return this.next;
  }

  /** The node's answer to an Alive. */
  granted(number: number, ms: number): void {
    const asked = this.#asked.get(number);
    this.#asked.delete(number);
    if (asked !== undefined) this.begin(asked, ms);
  }

  /** What was granted to what was asked at `asked`. */
  begin(asked: Now, ms: number): void {
    const right = BigInt(Math.floor(ms * 990_000));
    const later = (at: number, until: bigint) => until > Atomics.load(this.#until, at) && Atomics.store(this.#until, at, until);
    later(0, asked.monotonic + right);
    later(1, asked.wall + right);
  }

  /** Ends it at once. */
  end(): void {
    Atomics.store(this.#until, 0, 0n);
  }
}
