/** The control lane, in a worker of its own: a handler that computes for a minute loses no lease. */

import { inspect } from "node:util";
import { isMainThread, parentPort, workerData } from "node:worker_threads";

import { isObject } from "./errors.js";
import { FRAME_MAX, FrameError, MAGIC, Splitter, T, VERSION, frame, pack, unpack, type Reader } from "./frames.js";
import { Lease, now } from "./lease.js";
import { NotLetIn, Way } from "./ways.js";

/** What a session is. */
export interface Welcome {
  cluster: string;
  node: number | bigint;
  session: number | bigint;
  secret: Uint8Array;
  lease_ms: number;
  shards: number[];
  frame_len_max: number;
  window: number;
  unknown: string[];
  /** Whether reliable turns are run twice. */
  rerun?: boolean;
}

/** What the worker is given. */
export interface Given {
  url: string;
  token: string | undefined;
  hello: Record<string, unknown>;
  /** Describe frames by digest. */
  described: Record<string, Uint8Array>;
  lease: SharedArrayBuffer;
}

/** What the worker tells, in order; last of all `lost` or `refused`. */
export type Told =
  | { what: "welcome"; welcome: Welcome }
  | { what: "offered"; kind: string; status: number; reason: string }
  | { what: "lane lost"; shard: number }
  | { what: "goodbye" | "lost" | "refused"; reason: string };

const GREETING_MS = 5_000;

function live({ url, token, hello, described, lease: shared }: Given, tell: (told: Told) => void): void {
  const lease = new Lease(shared);
  const splitter = new Splitter();
  let beat: NodeJS.Timeout | undefined;
  let over = false;
  let isNode = false;
  let isOpen = false;
  const asked = now();
  const end = (told: Told) => {
    if (over) return;
    over = true;
    clearInterval(beat);
    clearTimeout(greeting);
    tell(told);
    socket.end();
    setTimeout(() => process.exit(0), 500).unref();
    parentPort?.close();
  };
  const greet = frame(T.hello, (body) => body.bytes(Buffer.from(MAGIC)).u8(VERSION).u8(0).u8(VERSION).u8(0).bytes(pack(hello)));
  const hear = (type: number, reader: Reader) => {
    if (type === T.goodbye) {
      const code = reader.u8();
      const reason = reader.text();
      end({ what: code === 5 ? "refused" : isOpen ? "goodbye" : "lost", reason });
    } else if (!isOpen) {
      check(type, reader, url);
      isNode = true;
      const welcome = read(reader);
      isOpen = true;
      clearTimeout(greeting);
      lease.begin(asked, welcome.lease_ms);
      for (const digest of welcome.unknown) if (Object.hasOwn(described, digest)) socket.write(described[digest]!);
      tell({ what: "welcome", welcome });
      const alive = () => {
        if (lease.isOver()) end({ what: "lost", reason: "the lease is over, and was not renewed" });
        else {
          const number = lease.ask();
          socket.write(frame(T.alive, (body) => body.varint(number)));
        }
      };
      beat = setInterval(alive, Math.max(1, Math.floor(welcome.lease_ms / 5)));
      alive();
    } else if (type === T.lease) {
      const number = reader.varint();
      lease.granted(number, reader.varint());
    } else if (type === T.offered) {
      reader.varint();
      tell({ what: "offered", kind: reader.text(), status: reader.u8(), reason: reader.text() });
    } else if (type === T.laneLost) {
      tell({ what: "lane lost", shard: reader.varint() });
    }
  };
  const socket = new Way(url, token).open(
    greet,
    (data) => {
      try {
        splitter.feed(data, (type, reader) => {
          if (!over) hear(type, reader);
        });
      } catch (error) {
        if (!(error instanceof FrameError || error instanceof NotLetIn)) throw error;
        // What comes instead of a Welcome, and is no frame, is somebody else's.
        if (!isNode) end({ what: "refused", reason: error instanceof NotLetIn ? error.message : `${stranger(url)} (${error.message})` });
        else end({ what: error instanceof NotLetIn ? "refused" : "lost", reason: error.message });
      }
    },
    (error) => end({ what: error instanceof NotLetIn ? "refused" : "lost", reason: `${url}: ${error?.message ?? "the node closed the connection"}` }),
  );
  const greeting = setTimeout(() => end({ what: "lost", reason: `${url}: the node does not answer the greeting` }), GREETING_MS);
  parentPort?.on("message", (said: Uint8Array | "close") => {
    if (said === "close") end({ what: "lost", reason: "the session is closed" });
    else socket.write(said);
  });
}

function stranger(url: string): string {
  return `${url} does not speak the host protocol: is it the host socket of a Greenroom node?`;
}

/** Reads what a Welcome begins with. */
function check(type: number, reader: Reader, url: string): void {
  if (type !== T.welcome || reader.bytes(4).toString("latin1") !== MAGIC) {
    throw new NotLetIn(stranger(url));
  }
  const [lowest, highest] = [reader.bytes(2).readUInt16LE(), reader.bytes(2).readUInt16LE()];
  if (lowest > VERSION || highest < VERSION) throw new NotLetIn(`the node speaks version ${highest} of the host protocol, this SDK ${VERSION}`);
}

function read(reader: Reader): Welcome {
  const said = unpack(reader.rest());
  const defaults = { cluster: "", node: 0, shards: [], frame_len_max: FRAME_MAX, window: 1 << 20, unknown: [] };
  const welcome = { ...defaults, ...(isObject(said) ? said : {}) } as unknown as Welcome;
  for (const [name, holds] of Object.entries(HOLDS)) {
    if (!holds(welcome[name as keyof Welcome])) throw new FrameError(`the Welcome's ${name} cannot be: ${inspect(welcome[name as keyof Welcome])}`);
  }
  return { ...welcome, shards: [...new Set(welcome.shards)] };
}

/** What holds of each field of a Welcome. */
const HOLDS: { [name in keyof Welcome]?: (value: unknown) => boolean } = {
  node: isNumber,
  session: isNumber,
  secret: (value) => value instanceof Uint8Array,
  // A longer time no timer takes.
  lease_ms: (value) => isWithin(value, 1, 2 ** 31 - 1),
  shards: (value) => Array.isArray(value) && value.length <= 1024 && value.every((shard) => isWithin(shard, 0, 2 ** 32)),
  frame_len_max: (value) => isWithin(value, 1024, 2 ** 32 - 1),
  window: (value) => isWithin(value, 1, Number.MAX_SAFE_INTEGER),
  unknown: (value) => Array.isArray(value) && value.every((digest) => typeof digest === "string"),
};

function isNumber(value: unknown): boolean {
  return typeof value === "bigint" || isWithin(value, 0, Number.MAX_SAFE_INTEGER);
}

function isWithin(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

if (!isMainThread && (workerData as Given | null)?.lease !== undefined) {
  live(workerData as Given, (told) => parentPort?.postMessage(told));
}
