/** Hosts and clients: sessions with nodes, begun again when they are lost. */

import { basename } from "node:path";

import { Refused } from "./errors.js";
import { CODECS } from "./frames.js";
import { Served, type AnyKind } from "./kind.js";
import type { Lane } from "./lane.js";
import { Referrer } from "./refs.js";
import { PAUSE_MAX_MS, PAUSE_MIN_MS, Session, sleep } from "./session.js";
import { NoNode, NotLetIn, find, type Way } from "./ways.js";

/** How a host or client is run. */
export interface HostOptions {
  /** The ways in, by comma; by default those of `GREENROOM_HOST`, or the one node's that has a socket here. */
  node?: string;
  token?: string;
  name?: string;
  weight?: number;
  turnsMax?: number;
  seatsMax?: number;
  lanes?: number;
}

/** A process that runs turns of the kinds that it offers. Without kinds, a client. */
export class Host extends Referrer {
  readonly sessions = new Map<Way, Session>();
  readonly #kinds: Served[];
  #ways: Way[] = [];
  readonly #hello: Record<string, unknown>;
  #stays: Promise<void>[] = [];
  #isClosing = false;
  /** Why the last session at a way in has ended. */
  readonly #ended = new Map<Way, string>();
  /** Where it will not be let in: these are not dialled again. */
  readonly #refused = new Set<Way>();
  #changed: (() => void)[] = [];

  constructor(kinds: AnyKind[], private readonly options: HostOptions = {}) {
    super();
    if (!Array.isArray(kinds)) throw new TypeError("kinds come in an array: write serve([chatRoom])");
    this.#kinds = kinds.map((kind) => new Served(kind));
    const names = kinds.map(({ name }) => name);
    if (new Set(names).size < names.length) throw new TypeError(`two kinds have one name, of ${names.join(", ")}`);
    if (!CODECS) throw new TypeError(`GREENROOM_CODEC is ${process.env.GREENROOM_CODEC}: write messagepack or json, or leave it unset for both`);
    // Reliable actors are on all shards.
    const lanes = this.#kinds.some((kind) => kind.definition.reliable) ? LANES_ALL : (options.lanes ?? 4);
    this.#hello = {
      name: options.name ?? `${basename(process.argv[1] ?? "node")}-${process.pid}`, sdk: "typescript 0.1.0", lanes,
      codecs: CODECS, seats_max: options.seatsMax ?? 100_000, turns_max: options.turnsMax ?? 1024, bytes_max: 8 << 20,
      weight: options.weight ?? 1, spread: "",
    };
  }

  /**
   * Begins its sessions; once it is done, one of them is open, and what it offers there is taken. It fails by `NotLetIn` if all nodes refuse
   * it, and by `NoNode` if none has taken it in time; both say why of each.
   */
  async start(timeout = 10_000): Promise<this> {
    this.#ways = await find(this.options.node, this.options.token);
    const token = this.#ways.find((way) => way.token)?.token;
    if (token) this.#hello.token = token;
    let alive = this.#ways.length;
    this.#stays = this.#ways.map((way) => this.#stay(way).finally(() => (alive -= 1, this.#tell())));
    const until = performance.now() + timeout;
    while (this.#open().length === 0 && alive > 0 && performance.now() < until) await this.#change(until - performance.now());
    if (this.#open().length === 0) {
      const [refusal, whys] = [this.#refusal, this.#whys()];
      await this.close();
      throw refusal === undefined ? new NoNode(`no node lets this host in: ${whys}`) : new NotLetIn(refusal);
    }
    return this;
  }

  /** Gives all seats back, saved or carried, so that no call fails; waits for it so many milliseconds at most. */
  async drain(timeout = 30_000): Promise<void> {
    this.#isClosing = true;
    const sessions = [...this.sessions.values()].filter((session) => !session.isLost);
    for (const session of sessions) session.drain();
    const late = new AbortController();
    const limit = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeout);
      late.signal.addEventListener("abort", () => clearTimeout(timer));
    });
    await Promise.race([Promise.all(sessions.map((session) => session.over)), limit]);
    late.abort();
  }

  /** Ends its sessions. What runs is abandoned: see `drain`. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const session of this.sessions.values()) if (!session.isLost) session.leave(0, "the host is closed");
    this.#tell();
    await Promise.all(this.#stays);
  }

  /** Serves until it is closed, or no node lets it in any more. */
  async run(): Promise<void> {
    await Promise.all(this.#stays);
    const refusal = this.#refusal;
    if (refusal !== undefined) throw new NotLetIn(refusal);
  }

  override scope(): { seat: undefined; turn: undefined } {
    return { seat: undefined, turn: undefined };
  }

  override laneNow(kind: string, key: string): Lane | undefined {
    const lanes = this.#open().flatMap((session) => [...session.lanes.values()].filter((lane) => !lane.isDead));
    return lanes.length > 1 ? lanes[hash(`${kind}/${key}`) % lanes.length] : lanes[0];
  }

  override async lane(kind: string, key: string): Promise<Lane> {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      const lane = this.laneNow(kind, key);
      if (lane) return lane;
      if (this.#isClosing || performance.now() > until) {
        const reason = this.#isClosing ? "this client is closed" : this.#whys();
        throw new Refused("Unreachable", { node: this.#ways[0]?.url ?? "", reason });
      }
      await this.#change(until - performance.now());
    }
  }

  #open(): Session[] {
    return [...this.sessions.values()].filter((session) => session.isOpen && !session.isOver() && session.isTaken);
  }

  /** Why no node will have it; `undefined` as long as one may. */
  get #refusal(): string | undefined {
    return this.#ways.every((way) => this.#refused.has(way)) ? this.#whys() : undefined;
  }

  /** Of each node, why it has no session there. */
  #whys(): string {
    const whys = this.#ways.map((way) => ({ way, why: this.#ended.get(way) || "no answer" }));
    return whys.map(({ way, why }) => (why.includes(way.url) ? why : `${way.url}: ${why}`)).join("; ");
  }

  #giveUp(way: Way, why: string): void {
    this.#ended.set(way, why);
    this.#refused.add(way);
    console.error(`greenroom: ${way.url} is not dialled again: ${why}`);
    this.#tell();
  }

  /** Waits until something has changed, or so many milliseconds. */
  #change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, Math.min(ms, 50)));
      this.#changed.push(() => (clearTimeout(timer), resolve()));
    });
  }

  #tell(): void {
    for (const tell of this.#changed.splice(0)) tell();
  }

  /** Has a session at a node, and after its loss the next one. */
  async #stay(way: Way): Promise<void> {
    let pause = PAUSE_MIN_MS;
    let ended: Session["ended"];
    while (!this.#isClosing) {
      const session = new Session(way, this.#kinds, ended ? { ...this.#hello, ended } : this.#hello);
      this.sessions.set(way, session);
      await session.open;
      this.#tell();
      if (!session.isLost) {
        pause = PAUSE_MIN_MS;
        if (!session.isTaken) {
          session.leave(0, "none of its kinds is taken");
          return this.#giveUp(way, [...session.offered].map(([kind, { reason }]) => `${kind} is refused: ${reason}`).join("; "));
        }
        if (this.#kinds.length > 0) console.error(`greenroom: serving ${session.taken.join(", ")} at ${way.url}`);
        await session.over;
      }
      ended = session.ended ?? ended;
      this.#ended.set(way, session.why);
      if (session.isRefused) return this.#giveUp(way, session.why);
      if (this.#isClosing) return;
      console.error(`greenroom: ${session.why}; dialling again`);
      await sleep(pause);
      pause = Math.min(2 * pause, PAUSE_MAX_MS);
    }
  }
}

/** A client: `await (await connect()).ref(chatRoom, "lobby").post({ .. })`. Close it. */
export function connect(options: HostOptions = {}): Promise<Host> {
  return new Host([], options).start();
}

/** Serves kinds until SIGTERM, SIGINT or SIGHUP; then gives its seats back, so that no call fails, for 30 s at most. */
export async function serve(kinds: AnyKind[], options: HostOptions = {}): Promise<void> {
  const host = await new Host(kinds, options).start(30_000);
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  // A terminal that has gone may say so more than once.
  process.once("SIGTERM", stop).once("SIGINT", stop).on("SIGHUP", stop);
  await Promise.race([host.run(), stopped]);
  await host.drain();
  await host.close();
  process.off("SIGTERM", stop).off("SIGINT", stop).off("SIGHUP", stop);
}

function hash(text: string): number {
  let found = 7;
  for (let at = 0; at < text.length; at++) found = (found * 31 + text.charCodeAt(at)) >>> 0;
  return found;
}

const PATIENCE_MS = 5_000;
const LANES_ALL = 4096;
