/** The guide's code, and the example's: it is compiled, and with a program at hand it runs. */

import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Program } from "../src/testing.js";

const sdk = fileURLToPath(new URL("../../", import.meta.url));
const root = join(sdk, "../..");
const skip = !process.env.GREENROOM_BIN && process.env.GREENROOM_LANGUAGES !== "all" && "no program: set GREENROOM_BIN";

/** Compiles the guide's programs and the example in a folder of their own, where `greenroom` is this package. */
function compiled(): string {
  const folder = mkdtempSync(join(sdk, "dist/guide-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(sdk, join(folder, "node_modules/greenroom"));
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  const guide = ["typescript", "hosts"].map((name) => readFileSync(join(root, `docs/guide/${name}.md`), "utf8")).join("");
  const blocks = [...guide.matchAll(/^```ts\n\/\/ (\S+)\n([^]*?)^```/gm)];
  assert.equal(blocks.length, 5);
  for (const [, name, code] of blocks) writeFileSync(join(folder, name!), code!);
  writeFileSync(join(folder, "example.ts"), readFileSync(join(root, "examples/languages/chat.ts"), "utf8"));
  const tsc = join(sdk, "node_modules/.bin/tsc");
  const flags = ["--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "--types", "node", "--typeRoots", join(sdk, "node_modules/@types")];
  const done = spawnSync(tsc, [...flags, ...blocks.map(([, name]) => name!), "example.ts"], { cwd: folder, encoding: "utf8" });
  assert.equal(done.stdout, "");
  return folder;
}

test("the guide's code compiles, and runs", async (t) => {
  const folder = compiled();
  let chat: ChildProcess | undefined;
  let node: Program | undefined;
  try {
    if (skip) return t.diagnostic(skip);
    node = await Program.start();
    const env = { ...process.env, GREENROOM_HOST: node.url };
    chat = spawn(process.execPath, ["chat.js"], { cwd: folder, env, stdio: "inherit" });
    const asked = () => fetch(`${node!.http}/user/ada/may_post`, { method: "POST", body: "{}" });
    while ((await asked()).status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
    const done = spawnSync(process.execPath, ["client.js"], { cwd: folder, env, encoding: "utf8", timeout: 20_000 });
    assert.deepEqual(done.stdout.split("\n"), ["1", "[ 'ada: hello' ]", "NotMember { user: 'bob' }", ""]);
    chat.kill("SIGTERM");
    assert.equal(await new Promise((resolve) => chat!.once("exit", resolve)), 0);
  } finally {
    chat?.kill("SIGKILL");
    await node?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
