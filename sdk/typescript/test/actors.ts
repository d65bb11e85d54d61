/** Actors that tests have at a scripted node, and how a test has them there. */

import { test } from "node:test";

import { ActorError, Fenced, actor, type AnyKind, type Context, type Host } from "../src/index.js";
import { Peer } from "./peer.js";

export const users = actor("user", { reads: { may_post: async () => true } });

export const seen: string[] = [];
export const room = actor("chat_room", {
  state: () => ({ messages: [] as string[] }),
  methods: {
    async post(c, { user, text = "hello" }: { user: string; text?: string }) {
      c.state.messages.push(`${user}: ${text}`);
      return c.state.messages.length;
    },
    async ask(c, { user }: { user: string }): Promise<boolean> {
      try {
        return await c.ref(users, user, { timeout: 2000 }).may_post();
      } catch (error) {
        if (error instanceof Fenced) {
          seen.push("fenced");
          await c.ref(users, user).may_post().catch((again: unknown) => seen.push(again instanceof Fenced ? "again" : "not"));
        }
        throw error;
      }
    },
    async fail(_, { user }: { user: string }) {
      throw new ActorError("NotMember", { user });
    },
    async panic() {
      throw new TypeError("no");
    },
    async slow(c) {
      c.state.messages.push("1");
      await new Promise((resolve) => setTimeout(resolve, 50));
      c.state.messages.push("2");
      return c.signal.aborted;
    },
    async big(_, { number }: { number: bigint }) {
      return number + 1n;
    },
    compute(_, { ms }: { ms: number }) {
      for (const until = performance.now() + ms; performance.now() < until; );
    },
  },
  reads: {
    async *history(c, { start = 0 }: { start?: number }) {
      yield* c.state.messages.slice(start);
    },
    async count(c) {
      return c.state.messages.length;
    },
  },
});
export const [POST, ASK, FAIL, PANIC, SLOW, BIG, COMPUTE, HISTORY] = [0, 1, 2, 3, 4, 5, 6, 7];

export const counter = actor("counter", {
  state: () => ({ count: 0 }),
  persistent: true,
  save: "turn",
  methods: {
    async add(c, { by }: { by: number }) {
      return (c.state.count += by);
    },
    async break_off(c) {
      c.state.count += 1000;
      throw new Error("in the middle");
    },
  },
});

/** Opens once for each time that it is told to. */
class Gate {
  #opens = 0;
  #waits: (() => void)[] = [];

  open(): void {
    this.#opens += 1;
    this.#waits.shift()?.();
  }

  async pass(): Promise<void> {
    while (this.#opens === 0) await new Promise<void>((wake) => this.#waits.push(wake));
    this.#opens -= 1;
  }

  get isOpen(): boolean {
    return this.#opens > 0;
  }
}

/** What an actor does that says when it begins, and goes on when its test says so. */
export let [began, goes] = [new Gate(), new Gate()];
async function act(c: Context<{ steps: number }>, what: string): Promise<void> {
  c.state.steps += 1;
  try {
    await reached();
    if (what === "call") await c.ref("users", "ada").may_post!();
    if (what === "send") await c.ref("users", "ada").$send.may_post!();
    if (what === "timer") c.after(1000, "act", { what });
    if (what === "move") await c.migrate("other");
    if (what === "consume") for await (const _ of (await c.ref("room", "lobby").history!()) as AsyncIterable<unknown>) await reached();
  } catch (error) {
    seen.push(error instanceof Fenced ? "fenced" : String(error));
    throw error;
  } finally {
    if (c.signal.reason instanceof Fenced) seen.push("aborted");
  }
  c.state.steps += 1;
}

async function reached(): Promise<void> {
  began.open();
  await goes.pass();
}

export const acting = actor("acting", {
  state: () => ({ steps: 0 }),
  activated: async (c) => (c.key === "waits" ? act(c, "call") : undefined),
  deactivating: async (c) => (c.key === "lingers" ? reached() : undefined),
  methods: { act: (c, { what }: { what: string }) => act(c, what) },
  reads: {
    async *watch() {
      try {
        for (let at = 0; ; at++) {
          await reached();
          yield at;
        }
      } finally {
        seen.push("closed");
      }
    },
    async *count(c) {
      for (;;) yield c.state.steps;
    },
  },
});
export const [ACT, WATCH, COUNT] = [0, 1, 2];

export const ledger = actor("ledger", {
  state: () => ({ count: 0 }),
  reliable: true,
  methods: {
    async add(c, { by }: { by: number }) {
      return (c.state.count += by);
    },
    async break_off(c) {
      c.state.count += 1000;
      throw new Error("in the middle");
    },
  },
  reads: { get: async (c) => c.state.count },
});

/** No answer to an Alive makes a lease longer that a test has ended. */
export function silent(peer: Peer): void {
  peer.answers = false;
}

export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}

export function at(name: string, kinds: AnyKind[], run: (peer: Peer, host: Host) => Promise<void>, set: (peer: Peer) => void = () => {}): void {
  test(name, async () => {
    seen.length = 0;
    [began, goes] = [new Gate(), new Gate()];
    const peer = new Peer();
    set(peer);
    const host = await peer.host(...kinds);
    try {
      await run(peer, host);
    } finally {
      await host.close();
      peer.stop();
    }
  });
}
