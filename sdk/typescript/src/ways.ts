/** Ways in: the Unix socket of a node, or its HTTP door by `Upgrade`. */

import { readdirSync, statSync } from "node:fs";
import { connect as plain, type Socket } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { connect as secure } from "node:tls";

import { FrameError } from "./frames.js";

/** There is no node to dial; the message says what to start. */
export class NoNode extends Error {}

/** The node refuses the host, or this program is wrong about it: dialling again does not help. */
export class NotLetIn extends Error {}

/** One way in. */
export class Way {
  constructor(readonly url: string, readonly token?: string) {
    if (!/^(unix:.|https?:\/\/.)/.test(url)) throw new NoNode(`${url} is no way in: write unix:/PATH, or http://HOST:PORT of a node's door`);
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

/** The ways in: those that are given, those of `GREENROOM_HOST`, or the one node's that has a socket. */
export function find(given?: string, token = process.env.GREENROOM_TOKEN): Way[] {
  const named = given ?? process.env.GREENROOM_HOST ?? "";
  const way = (url: string) => new Way(url.trim(), token);
  if (named) return named.split(",").filter((url) => url.trim()).map(way);
  const base = process.env.XDG_RUNTIME_DIR;
  const directory = base ? join(base, "greenroom") : join(tmpdir(), `greenroom-${userInfo().uid}`);
  const sockets = list(directory).map((name) => `unix:${join(directory, name)}`);
  if (sockets.length === 1) return sockets.map(way);
  if (sockets.length > 1) throw new NoNode(`several nodes have sockets here: set GREENROOM_HOST to one of ${sockets.join(", ")}, or to several by commas`);
  throw new NoNode(
    `no node has a socket in ${directory}: start one by \`greenroom node\`, run this program by \`greenroom run node PROGRAM\`, or set ` +
      "GREENROOM_HOST to unix:/PATH or http://HOST:PORT",
  );
}

function list(directory: string): string[] {
  try {
    const { uid } = userInfo();
    return readdirSync(directory).filter((name) => {
      const found = statSync(join(directory, name));
      return name.endsWith(".sock") && found.isSocket() && (found.uid === uid || found.uid === 0);
    });
  } catch {
    return [];
  }
}
