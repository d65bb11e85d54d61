/** Ways in: the Unix socket of a node, or its HTTP door by `Upgrade`. */

import { readFileSync, readdirSync, statSync } from "node:fs";
import { connect as plain, type Socket } from "node:net";
import { join } from "node:path";
import { connect as secure } from "node:tls";

import { headerToken, isInTheClear, refusal } from "./clear.js";
import { FrameError } from "./frames.js";

/** There is no node to dial; the message says what to start. */
export class NoNode extends Error {}

/** The node refuses the host, or this program is wrong about it: dialling again does not help. */
export class NotLetIn extends Error {}

/** One way in. */
export class Way {
  constructor(readonly url: string, readonly token?: string) {
    if (!/^(unix:.|https?:\/\/.)/.test(url) || !(this.isUnix || URL.canParse(url))) throw new NoNode(`${url} is no way in: write unix:/PATH, or http://HOST:PORT of a node's door`);
    if (token && !this.isUnix && isInTheClear(url)) throw new NoNode(refusal(url));
  }

  get isUnix(): boolean {
    return this.url.startsWith("unix:");
  }

  /** Dials; what comes are frames alone, given to `take`. `ready` is told when the other side takes frames. */
  open(first: Buffer, take: (data: Buffer) => void, closed: (error?: Error) => void, ready = () => {}): Socket {
    const socket = this.#dial();
    socket.setNoDelay(true);
    let head = this.isUnix ? undefined : Buffer.alloc(0);
    socket.write(head ? Buffer.concat([this.#request(), first]) : first);
    if (this.isUnix) socket.once("connect", ready);
    let failed: Error | undefined;
    socket.on("data", (data: Buffer) => {
      if (head !== undefined) {
        head = Buffer.concat([head, data]);
        const end = head.indexOf("\r\n\r\n");
        if (end < 0 && head.length < 16 << 10) return;
        const line = head.toString("latin1", 0, Math.max(0, head.indexOf("\r\n")));
        if (end < 0 || !line.includes(" 101 ")) {
          failed = end < 0 ? new FrameError("the door's answer has no end") : new NotLetIn(`${this.url} does not let hosts in: ${line}`);
          socket.destroy();
          return;
        }
        data = head.subarray(end + 4);
        head = undefined;
        ready();
      }
      if (data.length > 0) take(data);
    });
    socket.on("error", (error: Error) => (failed ??= error));
    socket.on("close", () => closed(failed));
    return socket;
  }

  #dial(): Socket {
    if (this.isUnix) return plain(this.url.slice("unix:".length));
    const { hostname, port, protocol } = new URL(this.url);
    const isTls = protocol === "https:";
    const to = { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || (isTls ? 443 : 80)) };
    return isTls ? secure({ ...to, servername: hostname }) : plain(to);
  }

  #request(): Buffer {
    const token = this.token ? `Authorization: Bearer ${this.token}\r\n` : "";
    const lines = `GET /-/host HTTP/1.1\r\nHost: ${new URL(this.url).host}\r\nConnection: Upgrade\r\nUpgrade: greenroom-host/1\r\n`;
    return Buffer.from(`${lines}${token}\r\n`);
  }
}

/** The ways in: those that are given, those of `GREENROOM_HOST`, or that of the one node that listens at a socket here. */
export async function find(given?: string, secret = process.env.GREENROOM_TOKEN): Promise<Way[]> {
  const token = headerToken(secret);
  const named = given ?? process.env.GREENROOM_HOST ?? "";
  const way = (url: string) => new Way(url.trim(), token);
  if (named) {
    const ways = named.split(",").filter((url) => url.trim()).map(way);
    if (ways.length === 0) throw new NoNode(`${JSON.stringify(named)} names no way in: write unix:/PATH, or http://HOST:PORT of a node's door`);
    return ways;
  }
  const base = process.env.XDG_RUNTIME_DIR;
  const directory = base ? join(base, "greenroom") : `/tmp/greenroom-${uid()}`;
  const all = list(directory).map((path) => `unix:${path}`);
  const alive = await listening(all);
  if (alive.length === 1) return alive.map(way);
  if (alive.length > 1) throw new NoNode(`several nodes have sockets here: set GREENROOM_HOST to one of ${alive.join(", ")}, or to several by commas`);
  const why = all.length > 0 ? `no node listens at ${all.join(", ")}, which dead ones have left` : `no node has a socket in ${directory}`;
  throw new NoNode(
    `${why}: start one by \`greenroom node\`, run this program by \`greenroom run node PROGRAM\`, or set GREENROOM_HOST to unix:/PATH or ` +
      "http://HOST:PORT",
  );
}

function uid(): number {
  return process.geteuid?.() ?? 0;
}

/** The sockets of this user's nodes, or of root's. */
function list(directory: string): string[] {
  const isOurs = (path: string) => {
    const found = statSync(path, { throwIfNoEntry: false });
    return found?.isSocket() && (found.uid === uid() || found.uid === 0);
  };
  try {
    const names = readdirSync(directory).filter((name) => name.endsWith(".sock"));
    return names.sort().map((name) => join(directory, name)).filter(isOurs);
  } catch {
    return [];
  }
}

/**
 * Those at which somebody listens. The kernel says so of those in its list, and their nodes are told nothing; others may be of another
 * network namespace, as a container's that shares the directory: they are dialled.
 */
async function listening(urls: string[]): Promise<string[]> {
  const known = new Set<string>();
  try {
    for (const line of readFileSync("/proc/net/unix", "utf8").split("\n")) {
      const [, flags, path] = /^\S+ \S+ \S+ (\S+) \S+ \S+ +\d+ (.*)$/.exec(line) ?? [];
      if (path && parseInt(flags!, 16) & LISTENS) known.add(path);
    }
  } catch {
    // All are dialled.
  }
  const answers = await Promise.all(urls.map((url) => url.slice("unix:".length)).map((path) => known.has(path) || answersAt(path)));
  return urls.filter((_, at) => answers[at]);
}

function answersAt(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = plain(path);
    const say = (is: boolean) => () => (socket.destroy(), resolve(is));
    socket.once("connect", say(true)).once("error", say(false));
  });
}

/** `__SO_ACCEPTCON`, of the flags in the kernel's list. */
const LISTENS = 0x10000;
