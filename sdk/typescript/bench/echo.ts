/** What `greenroom bench host` runs: actors that echo, or with `floor` the same echo with no Greenroom in between. */

import { connect } from "node:net";

import { Packr, Unpackr } from "msgpackr";

import { actor, serve } from "../src/index.js";

interface Arguments {
  text: string;
  n: number;
}

const volatile = actor("echo", { methods: { echo: async (_, { text }: Arguments) => text } });

const persistent = actor("echo", {
  persistent: true,
  save: "turn",
  state: () => ({ turns: 0 }),
  methods: {
    async echo(c, { text }: Arguments) {
      c.state.turns += 1;
      return text;
    },
  },
});

const reliable = actor("echo", {
  reliable: true,
  state: () => ({ turns: 0 }),
  methods: {
    async echo(c, { text }: Arguments) {
      c.state.turns += 1;
      return text;
    },
  },
});

async function echo({ text }: Arguments): Promise<string> {
  return text;
}

/** Frames of a length, a number and a payload, each answered by a promise of its own, a batch a round. */
function floor(path: string): void {
  const [packr, unpackr] = [new Packr({ useRecords: false }), new Unpackr({ useRecords: false })];
  const socket = connect(path);
  let rest: Buffer = Buffer.alloc(0);
  let out: Buffer[] = [];
  const answer = async (number: Buffer, given: Arguments) => {
    const reply = packr.pack(await echo(given));
    const length = Buffer.allocUnsafe(4);
    length.writeUInt32LE(4 + reply.length);
    if (out.length === 0) {
      setImmediate(() => {
        socket.write(Buffer.concat(out));
        out = [];
      });
    }
    out.push(length, number, reply);
  };
  socket.on("data", (data: Buffer) => {
    const all = rest.length === 0 ? data : Buffer.concat([rest, data]);
    let at = 0;
    while (all.length - at >= 4) {
      const end = at + 4 + all.readUInt32LE(at);
      if (end > all.length) break;
      void answer(all.subarray(at + 4, at + 8), unpackr.unpack(all.subarray(at + 8, end)) as Arguments);
      at = end;
    }
    rest = all.subarray(at);
  });
}

switch (process.argv[2]) {
  case "floor":
    floor((process.env["GREENROOM_HOST"] ?? "").replace(/^unix:/, ""));
    break;
  case "volatile":
    await serve([volatile]);
    break;
  case "persistent":
    await serve([persistent]);
    break;
  case "reliable":
    await serve([reliable]);
    break;
  default:
    console.error("usage: echo.js floor|volatile|persistent|reliable");
    process.exitCode = 2;
}
