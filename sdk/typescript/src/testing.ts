/** Tests of actors against the real program: a node of its own, and the test's kinds in the test's process. */

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Host, type HostOptions } from "./host.js";
import type { AnyKind } from "./kind.js";
import { sleep } from "./session.js";

/** A node: a process of the program of `GREENROOM_BIN`, or of `greenroom` in `PATH`, which ends with the test's. */
export class Program {
  readonly directory = mkdtempSync(join(tmpdir(), "greenroom-"));
  readonly url = `unix:${join(this.directory, "greenroom", "node.sock")}`;
  process!: ChildProcess;

  private constructor(readonly http: string, private readonly flags: string[]) {}

  static async start(...flags: string[]): Promise<Program> {
    const program = new Program(`http://127.0.0.1:${await freePort()}`, flags);
    await program.#start();
    return program;
  }

  async #start(): Promise<void> {
    const flags = ["node", "--name", "node", "--http", this.http.slice("http://".length), "--without-examples", "--until-stdin-ends", ...this.flags];
    const env = { RUST_LOG: "warn", ...process.env, XDG_RUNTIME_DIR: this.directory };
    this.process = spawn(process.env.GREENROOM_BIN ?? "greenroom", flags, { stdio: ["pipe", "inherit", "inherit"], env });
    for (let left = 3000; !existsSync(this.url.slice("unix:".length)); left--) {
      if (left === 0 || this.process.exitCode !== null) throw new Error(`greenroom ${flags.join(" ")} did not open ${this.url}`);
      await sleep(10);
    }
  }

  /** A host of kinds in this process. */
  host(kinds: AnyKind[], options: HostOptions = {}): Promise<Host> {
    return new Host(kinds, { ...options, node: this.url }).start();
  }

  /** A client. */
  client(): Promise<Host> {
    return this.host([]);
  }

  /** Ends it at once, as a machine's failure does. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
    rmSync(this.url.slice("unix:".length), { force: true });
  }

  /** Starts it again, with the same flags. */
  async restart(): Promise<void> {
    await this.kill();
    await this.#start();
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    rmSync(this.directory, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill(signal);
    await ended;
  }
}

/** A free port, from below those that systems give to connections: one is still there for a node that comes back. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const port = 20_000 + Math.floor(Math.random() * 12_768);
    const server = createServer().once("error", () => resolve(freePort()));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(port)));
  });
}
