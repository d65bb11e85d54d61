/** Which node a program without a word about it dials. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { test } from "node:test";

import { Host } from "../src/host.js";
import { door } from "../src/http.js";
import { NoNode, find } from "../src/ways.js";

test("sockets of dead nodes are none", async () => {
  const base = mkdtempSync("/tmp/greenroom-");
  const directory = join(base, "greenroom");
  const way = (name: string) => `unix:${join(directory, `${name}.sock`)}`;
  const path = (name: string) => way(name).slice("unix:".length);
  mkdirSync(directory);
  process.env.XDG_RUNTIME_DIR = base;
  delete process.env.GREENROOM_HOST;
  const servers: Server[] = [];
  let heard = 0;
  const node = async (name: string) => {
    const server = createServer((socket) => (heard++, socket.end())).listen(path(name));
    servers.push(server);
    await once(server, "listening");
  };
  const refuses = (words: string) => assert.rejects(find(), (error) => error instanceof NoNode && error.message.includes(words) || assert.fail(String(error)));
  try {
    await refuses(`no node has a socket in ${directory}: start one by \`greenroom node\``);
    for (const name of ["a", "b"]) {
      const dies = 'require("node:net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))';
      spawnSync(process.execPath, ["-e", dies, path(name)]);
    }
    await refuses(`no node listens at ${way("a")}, ${way("b")}, which dead ones have left: start one by \`greenroom node\``);
    await assert.rejects(new Host([]).start(), NoNode);
    await node("d");
    assert.deepEqual((await find()).map(({ url }) => url), [way("d")]);
    await node("e");
    await refuses(`several nodes have sockets here: set GREENROOM_HOST to one of ${way("d")}, ${way("e")}, or`);
    // The nodes have heard nothing of it: the first that comes is this one.
    await once(connect(path("d")), "close");
    assert.equal(heard, 1);
  } finally {
    for (const server of servers) server.close();
    rmSync(base, { recursive: true });
  }
});

test("a token goes over TLS or to this machine", async () => {
  for (const url of ["https://db.example.org:7070", "http://127.0.0.1:7070", "http://LOCALHOST:7070", "http://[::1]:7070", "unix:/tmp/x.sock"]) {
    assert.deepEqual((await find(url, "\ufeffsecret\n")).map(({ token }) => token), ["secret"], url);
  }
  for (const url of ["http://db.example.org:7070", "http://10.0.0.1", "http://127.0.0.1.example.org"]) {
    await assert.rejects(find(url, "secret"), (error) => error instanceof NoNode && error.message.includes("others could read the token"), url);
    assert.throws(() => door(url, { token: "secret" }), /others could read the token/);
    assert.deepEqual((await find(url, "")).map(({ token }) => token), [undefined], url);
  }
  await assert.rejects(find("unix:/tmp/x.sock", "two words"), (error) => error instanceof Error && error.message.includes("no token") && !error.message.includes("two words"));
});
