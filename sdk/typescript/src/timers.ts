/** The timers that an activation has, as far as its host knows. */

import { Refused } from "./errors.js";

/** Names of timers, each with the time by which a timer that fires once has fired. */
export class Timers {
  #until = new Map<string, number>();

  /** Adds a timer that fires once after so many milliseconds, or in each period; throws `Refused` if there is no room for it. */
  add(name: string, after: number | undefined): void {
    if (this.#until.size >= TIMERS_MAX) {
      const now = performance.now();
      this.#until = new Map([...this.#until].filter(([, until]) => until > now));
    }
    if (this.#until.size >= TIMERS_MAX) throw new Refused("Overloaded", { queue: "the timers of this actor", bound: TIMERS_MAX });
    this.#until.set(name, after === undefined ? Infinity : performance.now() + after);
  }

  /** Forgets a timer that was cancelled. */
  delete(name: string): void {
    this.#until.delete(name);
  }
}

/** Timers of one activation; the node refuses further ones. */
const TIMERS_MAX = 256;
