/** Which nodes let a host in, where there are several, against scripted ones. */

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { Host, NoNode, NotLetIn, actor } from "../src/index.js";
import { pause, room, users } from "./actors.js";
import { Peer } from "./peer.js";

/** Nodes, each with its reason to refuse all kinds, if any. */
async function peers(t: TestContext, ...refusals: string[]): Promise<Peer[]> {
  t.mock.method(console, "error", () => {});
  const found = refusals.map((why) => Object.assign(new Peer(), { refuses: why }));
  for (const peer of found) await peer.listen();
  t.after(() => found.forEach((peer) => peer.stop()));
  return found;
}

test("a host has started as soon as one node takes what it offers", async (t) => {
  const [refuses, takes] = (await peers(t, "it is another team's", "")) as [Peer, Peer];
  let go = () => {};
  takes.waits = new Promise((resolve) => (go = resolve));
  const host = new Host([room], { node: `${refuses.url},${takes.url}` });
  let hasStarted = false;
  const starts = host.start(60_000).then(() => (hasStarted = true));
  while (refuses.controlSocket?.destroyed !== true) await pause();
  assert.ok(!hasStarted, "one refusal is no end, and no start");
  go();
  await starts;
  const runs = host.run();
  await takes.joined();
  await takes.seat();
  await host.close();
  await runs;
});

test("a host that all nodes refuse fails with each reason", async (t) => {
  const [one, other] = (await peers(t, "here not", "nor here")) as [Peer, Peer];
  await assert.rejects(new Host([room, users], { node: `${one.url},${other.url}` }).start(60_000), (error) => {
    assert.ok(error instanceof NotLetIn);
    assert.ok(error.message.includes(`${one.url}: chat_room is refused: here not; user is refused: here not`), error.message);
    assert.ok(error.message.includes(`${other.url}: chat_room is refused: nor here`), error.message);
    return true;
  });
});

test("a host that one node refuses and none takes in time names both", async (t) => {
  const [one] = (await peers(t, "here not")) as [Peer];
  const whys = [`${one.url}: chat_room is refused: here not`, `${one.url}.none: connect ENOENT`];
  let said = "";
  // As long as it takes a busy machine to hear both.
  for (let timeout = 250; timeout < 120_000 && !whys.every((why) => said.includes(why)); timeout *= 2) {
    const error: unknown = await new Host([room], { node: `${one.url},${one.url}.none` }).start(timeout).catch((error: unknown) => error);
    assert.ok(error instanceof NoNode);
    said = error.message;
  }
  for (const why of whys) assert.ok(said.includes(why), said);
});

test("what is no way in is refused before anybody is dialled", async () => {
  for (const node of [",", " , ", "http://localhost:99999", "http://:80", "http://localhost:x", "ftp://x", "unix:"]) {
    await assert.rejects(new Host([actor("odd", { methods: { run: () => 1 } })], { node }).start(), (error) => {
      assert.ok(error instanceof NoNode, node);
      assert.match(error.message, /write unix:\/PATH, or http:\/\/HOST:PORT/);
      return true;
    });
  }
});
