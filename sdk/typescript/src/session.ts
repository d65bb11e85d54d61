/** A session: a host's stay at one node, from its Hello to its loss. It never comes back; the next one begins with nothing. */

import { Worker } from "node:worker_threads";

import type { Given, Told, Welcome } from "./control.js";
import { FRAME_MAX, MAGIC, T, VERSION, frame, goodbye, pack } from "./frames.js";
import type { Served } from "./kind.js";
import { Lane } from "./lane.js";
import { Lease } from "./lease.js";
import type { Way } from "./ways.js";

export const PAUSE_MIN_MS = 50;
export const PAUSE_MAX_MS = 2_000;

export class Session {
  readonly lanes = new Map<number, Lane>();
  readonly lease = new Lease();
  readonly offered = new Map<string, { status: number; reason: string }>();

  /** The kinds that the node has taken of those that it was offered. */
  get taken(): string[] {
    return [...this.offered].filter(([, { status }]) => status < 2).map(([kind]) => kind);
  }

  /** Whether there is anything to stay for: a client offers nothing. */
  get isTaken(): boolean {
    return this.kinds.length === 0 || this.taken.length > 0;
  }

  welcome: Welcome | undefined;
  frameMax = FRAME_MAX;
  window = 0;
  isLost = false;
  isRefused = false;
  isOpen = false;
  isDraining = false;
  why = "";
  /** Done when its lanes are joined and its offers answered, or it is lost. */
  readonly open: Promise<void>;
  readonly over: Promise<void>;
  readonly #worker: Worker;
  readonly #dropped = new Map<number, () => void>();
  #opened = () => {};
  #ended = () => {};

  constructor(readonly way: Way, readonly kinds: Served[], hello: Record<string, unknown>) {
    this.open = new Promise((resolve) => (this.#opened = resolve));
    this.over = new Promise((resolve) => (this.#ended = resolve));
    const offers = kinds.map(({ name: kind, version, definition, digest }) => ({ kind, version, compatible: definition.compatible ?? 1, digest }));
    const describe = (kind: Served) => frame(T.describe, (body) => body.text(kind.name).varint(kind.version).bytes(Buffer.from(JSON.stringify(kind.description))));
    const described = Object.fromEntries(kinds.map((kind) => [kind.digest, describe(kind)]));
    const given: Given = { url: way.url, token: way.token, hello: { ...hello, offers }, described, lease: this.lease.shared };
    this.#worker = new Worker(new URL("./control.js", import.meta.url), { workerData: given });
    this.#worker.on("message", (told: Told) => this.#hear(told));
    this.#worker.on("error", (error) => this.lose(`the control lane failed: ${error.message}`));
    this.#worker.on("exit", () => this.lose("the control lane has ended"));
  }

  get nodeName(): string {
    return this.welcome ? this.welcome.node.toString(16) : this.way.url;
  }

  /** What the next Hello says of this session: its seats are dropped. */
  get ended(): { session: number | bigint; secret: Uint8Array } | undefined {
    return this.welcome && { session: this.welcome.session, secret: Buffer.from(this.welcome.secret) };
  }

  /** Whether nothing may begin any more. It is asked before each turn, and after each await of the SDK. */
  isOver(): boolean {
    return this.isLost || this.lease.isOver();
  }

  /** Ends it: turns are abandoned and seats dropped, before anybody can greet again. */
  lose(why: string, isRefused = false): void {
    if (this.isLost) return;
    [this.isLost, this.why, this.isRefused] = [true, why, isRefused];
    for (const lane of this.lanes.values()) {
      lane.drop();
      lane.close();
    }
    this.#worker.postMessage("close");
    this.#opened();
    this.#ended();
  }

  /** Says goodbye, and ends it. */
  leave(code: number, reason: string): void {
    for (const lane of this.lanes.values()) lane.drop();
    this.#worker.postMessage(goodbye(code, reason));
    this.lose(reason);
  }

  /** Asks the node to take the seats away, saved or carried, one by one. */
  drain(): void {
    if (this.isDraining) return;
    this.isDraining = true;
    this.#worker.postMessage(frame(T.drain));
  }

  #hear(told: Told): void {
    if (this.isLost) return;
    switch (told.what) {
      case "welcome":
        this.welcome = told.welcome;
        this.frameMax = told.welcome.frame_len_max;
        this.window = told.welcome.window;
        for (const shard of told.welcome.shards) void this.#keep(shard);
        break;
      case "offered":
        this.offered.set(told.kind, told);
        if (told.status >= 2) console.error(`greenroom: ${told.kind} is refused: ${told.reason}`);
        break;
      case "lane lost": {
        const lane = this.lanes.get(told.shard);
        lane?.drop();
        lane?.close();
        this.#worker.postMessage(frame(T.laneDropped, (body) => body.varint(told.shard)));
        this.#dropped.get(told.shard)?.();
        break;
      }
      case "refused":
        return this.lose(told.reason, true);
      default:
        return this.lose(told.reason || "the node said goodbye");
    }
    this.look();
  }

  /** Has a lane to the shard, as long as the session lasts. */
  async #keep(shard: number): Promise<void> {
    const { session, secret } = this.welcome!;
    const join = frame(T.join, (body) => body.bytes(Buffer.from(MAGIC)).u8(VERSION).u8(0).bytes(pack({ session, secret: Buffer.from(secret), shard })));
    let pause = PAUSE_MIN_MS;
    while (!this.isLost) {
      const lane = new Lane(this, shard, join);
      const dropped = new Promise<void>((resolve) => this.#dropped.set(shard, resolve));
      const since = performance.now();
      this.lanes.set(shard, lane);
      await lane.closed;
      if (this.isLost) return;
      // The shard is joined again when the node has said that the lane is lost, and was told that its seats are dropped.
      if (!lane.isDismissed) await Promise.race([dropped, this.over, sleep(this.welcome!.lease_ms)]);
      if (performance.now() - since > PAUSE_MAX_MS) pause = PAUSE_MIN_MS;
      await sleep(pause);
      pause = Math.min(2 * pause, PAUSE_MAX_MS);
    }
  }

  /** Looks whether it is open. */
  look(): void {
    const joined = [...this.lanes.values()].filter((lane) => lane.isJoined);
    if (joined.length === this.welcome?.shards.length && this.offered.size === this.kinds.length) {
      this.isOpen = true;
      this.#opened();
    }
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
