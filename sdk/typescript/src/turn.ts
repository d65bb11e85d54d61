/** Turns: the handling of one message each. */

import { Fenced } from "./errors.js";
import type { Method } from "./kind.js";
import type { Seat } from "./seat.js";

/** The handling of one message at a seat. */
export class Turn {
  isDead = false;
  /** Whether its reliable actor ends with it. */
  halts = false;
  /** The state of a state machine from this turn on, if it says one. */
  jump: string | undefined;
  /** Messages of a reliable actor's turn that wait for room on the lane: it ends behind them, and fails by the error of one that is lost. */
  readonly owed: Promise<unknown>[] = [];
  extension: Buffer | undefined;
  /** That of the arguments: the reply comes in it. */
  codec = 1;
  /** Whether anybody waits for its end: of a tick or a one-way message nobody does. */
  isHeard = true;
  /** Whether an error is to come with its sentence. */
  isTold = false;
  #abort: AbortController | undefined;

  constructor(readonly seat: Seat, readonly number: number, readonly method: Method, readonly until: number) {}

  get abort(): AbortController {
    if (this.#abort) return this.#abort;
    const abort = (this.#abort = new AbortController());
    // Its caller has given up then.
    if (this.until) setTimeout(() => abort.abort(), Math.min(this.until - performance.now(), TIMER_MAX_MS)).unref();
    return abort;
  }

  /** Tells the handler that nobody waits. */
  cancel(): void {
    this.abort.abort();
  }

  /** Marks it dead: what it asks from now on fails with `Fenced`. */
  abandon(): void {
    this.isDead = true;
    this.abort.abort(new Fenced());
  }
}

/** Longer timers fire at once; no turn lasts so long. */
const TIMER_MAX_MS = 2 ** 31 - 1;
