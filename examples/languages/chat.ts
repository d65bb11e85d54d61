/**
 * The chat room of `chat.py` in TypeScript; its members pay from the purses of whichever program serves them.
 *
 *     greenroom run node examples/languages/chat.js
 */

import { ActorError, actor, serve } from "greenroom";

const purse = actor("purse", {
  doc: "What a user has. A caller is answered when it is stored.",
  state: () => ({ balance: 0 }),
  persistent: true,
  save: "turn",
  methods: {
    async deposit(c, { amount }: { amount: number }) {
      return (c.state.balance += amount);
    },
    async pay(c, { amount }: { amount: number }) {
      if (amount > c.state.balance) throw new ActorError("Empty", { balance: c.state.balance });
      return (c.state.balance -= amount);
    },
  },
});

const chatRoom = actor("chat_room", {
  doc: "A room. Its messages last as long as its activation.",
  state: () => ({ messages: [] as string[] }),
  idle: 600_000,
  methods: {
    async post(c, { user, text }: { user: string; text: string }) {
      try {
        await c.ref(purse, user, { timeout: 2000 }).pay({ amount: 1 });
      } catch (error) {
        if (error instanceof ActorError && error.name === "Empty") throw new ActorError("NotMember", { user });
        throw error;
      }
      return c.state.messages.push(`${user}: ${text}`);
    },
  },
  reads: {
    async history(c, { start = 0 }: { start?: number }) {
      return c.state.messages.slice(start);
    },
    /** The same, as a stream: one message after the other, as the caller has room. */
    async *replay(c, { start = 0 }: { start?: number }) {
      yield* c.state.messages.slice(start);
    },
  },
});

await serve([chatRoom, purse]);
