/** What the compiler knows: a reference has the kind's own signatures, with no generated code. */

import { test } from "node:test";

import { ActorError, actor, type Host } from "../src/index.js";

const users = actor("user", { reads: { may_post: async () => true } });
const chatRoom = actor("chat_room", {
  state: () => ({ messages: [] as string[] }),
  methods: {
    async post(c, { user, text }: { user: string; text: string }) {
      if (!(await c.ref(users, user).may_post())) throw new ActorError("NotMember", { user });
      c.state.messages.push(`${user}: ${text}`);
      return true;
    },
  },
  reads: {
    async *history(c, { start = 0 }: { start?: number }) {
      yield* c.state.messages.slice(start);
    },
  },
});

async function typed({ room, owner }: ReturnType<typeof references>): Promise<void> {
  const posted: boolean = await room.post({ user: "ada", text: "hi" }, { timeout: 500 });
  for await (const message of room.history({ start: 1 })) message.toUpperCase();
  await room.$send.post({ user: "ada", text: "hi" });
  // @ts-expect-error a text is missing
  await room.post({ user: "ada" });
  // @ts-expect-error there is no such method
  await room.shout({ user: "ada" });
  // @ts-expect-error it is a boolean
  const wrong: string = await room.post({ user: "ada", text: "hi" });
  // @ts-expect-error options come behind the arguments, also where there are none
  const may: boolean = await owner.may_post({ timeout: 500 });
  const may_too: boolean = await owner.may_post({}, { timeout: 500 });
  void [posted, wrong, may, may_too];
}

function references(client: Host) {
  return { room: client.ref(chatRoom, "lobby"), owner: client.ref(users, "ada") };
}

test("references have the kind's own signatures", () => {
  // Compiled is all that they have to be.
  void typed;
});
