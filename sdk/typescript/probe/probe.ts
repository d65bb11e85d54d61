/** The probe of TypeScript for the cases of `sdk/python/tests/test_languages.py`: one actor in four forms. */

import { ActorError, actor, serve, type Context } from "../src/index.js";

type State = { value: number };
type Laden = Named & { method: string; arguments: object; context: Record<string, string>; idempotency_key: string };
type Named = { kind: string; key: string };

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const probe = {
  state: (): State => ({ value: 0 }),
  methods: {
    async add(c: Context<State>, { n }: { n: number }) {
      return (c.state.value += n);
    },
    async fail(c: Context<State>) {
      throw new ActorError("Broke", { at: (c.state.value += 1) });
    },
    async panic(c: Context<State>) {
      c.state.value += 1000;
      throw new TypeError("in the middle");
    },
    async call(c: Context<State>, { kind, key, method, arguments: args }: Named & { method: string; arguments: object }): Promise<unknown> {
      return c.ref(kind, key)[method]!(args);
    },
    async carry(c: Context<State>, { kind, key, method, arguments: args, context, idempotency_key }: Laden): Promise<unknown> {
      return c.ref(kind, key)[method]!(args, { context, idempotencyKey: idempotency_key });
    },
    async send(c: Context<State>, { kind, key, n }: Named & { n: number }) {
      c.state.value -= n;
      await c.ref(kind, key).$send.add!({ n });
      return c.state.value;
    },
    async later(c: Context<State>, { ms, n }: { ms: number; n: number }) {
      c.after(ms, "add", { n });
    },
    async remind(c: Context<State>, { ms, n }: { ms: number; n: number }) {
      await c.remind("add", { args: { n }, after: ms });
    },
    async rest(c: Context<State>) {
      c.deactivate();
    },
    async move(c: Context<State>, { node }: { node: string }) {
      await c.migrate(node);
    },
    async slow(c: Context<State>, { ms }: { ms: number }) {
      c.state.value += 1;
      await sleep(ms);
      return c.state.value;
    },
  },
  reads: {
    where: async (_: Context<State>) => process.pid,
    told: async (c: Context<State>) => c.context,
    get: async (c: Context<State>) => c.state.value,
    echo: async (_: Context<State>, { value }: { value: unknown }) => value,
    async look(c: Context<State>, { ms }: { ms: number }) {
      await sleep(ms);
      return c.state.value;
    },
    async *count(_: Context<State>, { upto }: { upto: number }) {
      for (let number = 0; number < upto; number++) yield number;
    },
  },
};

await serve([
  actor("typescript_volatile", probe),
  actor("typescript_traveller", { ...probe, travels: true }),
  actor("typescript_persistent", { ...probe, persistent: true, save: "turn" }),
  actor("typescript_reliable", { ...probe, reliable: true }),
]);
