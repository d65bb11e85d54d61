/** A node's side of the host protocol, scripted: it says what a test has it say, and shows what the host says. */

import { mkdtempSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Reader, Splitter, T, frame, pack, payload, unpack } from "../src/frames.js";
import { Host, type AnyKind } from "../src/index.js";
import { now } from "../src/lease.js";

export class Peer {
  readonly url = `unix:${join(mkdtempSync(join(tmpdir(), "greenroom-")), "node.sock")}`;
  leaseMs = 5000;
  answers = true;
  window = 1 << 20;
  /** Why its offers are refused, if they are. */
  refuses = "";
  /** What it waits for before it answers a Hello. */
  waits: Promise<void> = Promise.resolve();
  /** What its Welcome says in other words than usual. */
  welcome: Record<string, unknown> = {};
  sessions = 0;
  readonly hellos: Record<string, unknown>[] = [];
  readonly described: Record<string, unknown>[] = [];
  readonly control: { type: number; reader: Reader }[] = [];
  controlSocket: Socket | undefined;
  /** When the last Hello came. */
  greeted = now();
  joins = 0;
  #user: Socket | undefined;
  #said: { type: number; reader: Reader }[] = [];
  #wake: (() => void) | undefined;
  #server: Server | undefined;
  #turns = 0;

  async listen(): Promise<void> {
    this.#server = createServer((socket) => this.#accept(socket));
    await new Promise<void>((resolve) => this.#server!.listen(this.url.slice(5), resolve));
  }

  stop(): void {
    this.#server?.close();
    this.controlSocket?.destroy();
    this.#user?.destroy();
  }

  #accept(socket: Socket): void {
    const splitter = new Splitter(8 << 20);
    let is: "new" | "control" | "user" = "new";
    socket.on("error", () => {});
    socket.on("close", () => {
      if (is === "user") this.controlSocket?.write(frame(T.laneLost, (body) => body.varint(0)));
    });
    socket.on("data", (data) =>
      splitter.feed(data, (type, reader) => {
        if (is === "new" && type === T.hello) {
          is = "control";
          this.controlSocket = socket;
          void this.waits.then(() => this.#greet(socket, reader));
        } else if (is === "new") {
          is = "user";
          this.#user = socket;
          this.joins += 1;
          this.#wake?.();
        } else if (is === "user") {
          if (type !== T.define) this.#said.push({ type, reader });
          this.#wake?.();
        } else if (type === T.alive) {
          const number = reader.varint();
          if (this.answers) socket.write(frame(T.lease, (body) => body.varint(number).varint(this.leaseMs)));
        } else {
          this.control.push({ type, reader });
          if (type === T.describe) {
            reader.text();
            reader.varint();
            this.described.push(JSON.parse(reader.rest().toString()) as Record<string, unknown>);
          }
        }
      }),
    );
  }

  #greet(socket: Socket, reader: Reader): void {
    this.greeted = now();
    reader.bytes(8);
    const hello = unpack(reader.rest()) as { offers: { kind: string; digest: string }[] };
    this.hellos.push(hello);
    this.sessions += 1;
    const secret = Buffer.from("0123456789abcdef");
    const unknown = hello.offers.map(({ digest }) => digest);
    const welcome = { cluster: "music", node: 7, session: this.sessions, secret, lease_ms: this.leaseMs, shards: [0], window: this.window, unknown, ...this.welcome };
    socket.write(frame(T.welcome, (body) => body.bytes(Buffer.from("GRHP\x01\0\x01\0")).bytes(pack(welcome))));
    hello.offers.forEach(({ kind }, index) => socket.write(frame(T.offered, (body) => body.varint(index).text(kind).u8(this.refuses ? 2 : 0).text(this.refuses))));
  }

  say(bytes: Buffer): void {
    this.#user!.write(bytes);
  }

  async joined(count = 1): Promise<void> {
    while (this.joins < count) await new Promise<void>((wake) => (this.#wake = wake));
  }

  /** The next frame of the user lane, which is one of those wanted. */
  async hear(...wanted: number[]): Promise<{ type: number; reader: Reader }> {
    while (this.#said.length === 0) await new Promise<void>((wake) => (this.#wake = wake));
    const found = this.#said.shift()!;
    if (!wanted.includes(found.type)) throw new Error(`frame ${found.type} came, not one of ${wanted.join(", ")}`);
    return found;
  }

  get isQuiet(): boolean {
    return this.#said.length === 0;
  }

  async seat(seat = 1, { key = "lobby", state }: { key?: string; state?: unknown } = {}): Promise<void> {
    this.activate(seat, key, state);
    const { reader } = await this.hear(T.activated);
    if (reader.varint() !== seat || reader.u8() !== 0) throw new Error(`not activated: ${reader.rest().toString()}`);
  }

  activate(seat: number, key = "lobby", state?: unknown, version = 1): void {
    this.say(frame(T.activate, (body) => body.varint(seat).varint(0).varint(1).u8(0).text(key).fields(state === undefined ? [] : [["self", payload(state, version)]])));
  }

  turn(method: number, args: unknown = {}, seat = 1): number {
    const number = ++this.#turns;
    this.say(frame(T.turn, (body) => body.varint(number).varint(seat).varint(method).u8(1).varint(0).varint(0).bytes(payload(args))));
    return number;
  }

  async end(): Promise<{ turn: number; status: number; value: unknown; state: unknown; stream: number }> {
    const { reader } = await this.hear(T.turnEnd);
    const [turn, status, flags] = [reader.varint(), reader.u8(), reader.u8()];
    const state = flags & 1 ? unpack([...reader.fields().values()][0]!.subarray(2)) : undefined;
    const stream = flags & 8 ? reader.varint() : 0;
    return { turn, status, value: unpack(reader.rest().subarray(2)), state, stream };
  }

  async call(method: number, args: unknown = {}, seat = 1): Promise<[number, unknown, unknown]> {
    this.turn(method, args, seat);
    const { status, value, state } = await this.end();
    return [status, value, state];
  }

  /** A call that the host makes. */
  async called(): Promise<{ request: number; turn: number; key: string; args: unknown }> {
    const { reader } = await this.hear(T.call);
    const [request, turn] = [reader.varint(), reader.varint()];
    reader.varint();
    const key = reader.text();
    reader.varint();
    reader.block();
    return { request, turn, key, args: unpack(reader.rest().subarray(2)) };
  }

  reply(request: number, value: unknown = null, status = 0): void {
    this.say(frame(T.reply, (body) => body.varint(request).u8(status).bytes(payload(value))));
  }

  async host(...kinds: AnyKind[]): Promise<Host> {
    await this.listen();
    const host = await new Host(kinds, { node: this.url }).start();
    await this.joined();
    return host;
  }
}

