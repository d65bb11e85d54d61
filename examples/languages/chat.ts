/**
 * A chat that costs: members post in rooms, for a coin from their wallets. The same in `chat.py` and `chat.go`, so each kind may run in any of them.
 *
 *     npm --prefix examples/languages install       # the SDK, and chat.js
 *     greenroom run --table sqlite:chat.db --journal sqlite:journal.db node examples/languages/chat.js
 *     curl -d '{"order": "gift", "amount": 10}' localhost:7070/wallet/ada/deposit
 *     curl -d '{"room": "lobby", "text": "hello"}' localhost:7070/member/ada/say
 *
 * `chat.js room` serves rooms alone, and so on. Wallets are reliable, and want the journal: without one they are refused, and nobody can post.
 */

import { randomUUID } from "node:crypto";

import { ActorError, Unknown, actor, serve } from "greenroom";

/** Messages that a room and a member keep, and orders that a wallet remembers: whoever repeats one does so within seconds. */
const KEPT = 100;

type Message = { number: number; order: string; user: string; text: string };
/** An order, and what it was answered. */
type Done = { order: string; balance: number };

const wallet = actor("wallet", {
  doc: "What a user has. What a turn changes and what it sends is one commit; an order is carried out once, however often it comes.",
  reliable: true,
  state: () => ({ coins: 0, orders: [] as Done[] }),
  methods: {
    async deposit(c, { order, amount }: { order: string; amount: number }) {
      return once(c.state, order, amount);
    },
    async pay(c, { order, to, amount }: { order: string; to: string; amount: number }) {
      if (!c.state.orders.some((done) => done.order === order)) {
        if (!(0 < amount && amount <= c.state.coins)) throw new ActorError("Empty", { balance: c.state.coins });
        await c.ref("wallet", to).$send.take!({ amount });
      }
      return once(c.state, order, -amount);
    },
    async take(c, { amount }: { amount: number }) {
      c.state.coins += amount;
    },
  },
  reads: { balance: async (c) => c.state.coins },
});

function once(wallet: { coins: number; orders: Done[] }, order: string, amount: number): number {
  const known = wallet.orders.find((done) => done.order === order);
  if (known) return known.balance;
  wallet.coins += amount;
  wallet.orders = [...wallet.orders, { order, balance: wallet.coins }].slice(-KEPT);
  return wallet.coins;
}

const room = actor("room", {
  doc: "What was said last. Who posts is answered when it is stored.",
  persistent: true,
  save: "turn",
  state: () => ({ messages: [] as Message[] }),
  methods: {
    /** Says something, for a coin from the user's wallet to that of the room's name; gives the message's number. */
    async post(c, { order: theirs, user, text }: { order: string; user: string; text: string }) {
      const order = `${c.key}/${theirs}`;
      const known = c.state.messages.find((message) => message.order === order);
      if (known) return known.number;
      try {
        await c.ref(wallet, user).pay({ order, to: c.key, amount: 1 });
      } catch (error) {
        if (error instanceof ActorError && error.name === "Empty") throw new ActorError("NotMember", { user });
        throw error;
      }
      const message = { number: (c.state.messages.at(-1)?.number ?? 0) + 1, order, user, text };
      await c.topic<Message>(`rooms/${c.key}`).publish(message);
      c.state.messages = [...c.state.messages, message].slice(-KEPT);
      return message.number;
    },
  },
  reads: {
    /** The messages from a number on. */
    async history(c, { start = 0 }: { start?: number }) {
      return c.state.messages.filter((message) => message.number >= start);
    },
    /** The same, as a stream: one message after the other, as the caller has room. */
    async *replay(c, { start = 0 }: { start?: number }) {
      yield* c.state.messages.filter((message) => message.number >= start);
    },
  },
});

const member = actor("member", {
  doc: "A user who is online: what it has heard lasts as long as its activation.",
  state: () => ({ heard: [] as Message[] }),
  methods: {
    /** Hears from now on what is said in a room, and what was said before. */
    async join(c, { room: name }: { room: string }) {
      await c.subscribe(`rooms/${name}`, "hear", "message");
      for await (const message of c.ref(room, name).replay({})) hear(c.state, message);
      return c.state.heard.length;
    },
    async hear(c, { message }: { message: Message }) {
      hear(c.state, message);
    },
    async say(c, { room: name, text }: { room: string; text: string }) {
      const said = { order: randomUUID(), user: c.key, text };
      return c.ref(room, name).post(said).catch((error) => {
        if (!(error instanceof Unknown)) throw error;
        return c.ref(room, name).post(said); // It may be posted, or paid: the same order again does what is left of it.
      });
    },
  },
  reads: { inbox: async (c) => c.state.heard },
});

/** A message may come twice, and counts once. */
function hear(member: { heard: Message[] }, message: Message): void {
  if (member.heard.every((known) => known.order !== message.order)) member.heard = [...member.heard, message].slice(-KEPT);
}

const asked = process.argv.slice(2);
await serve([member, room, wallet].filter(({ name }) => asked.length === 0 || asked.includes(name)));
