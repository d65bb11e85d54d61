/** The recipes that the documentation shows: they are compiled, and with a program at hand they run. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { ActorError } from "../src/errors.js";
import type { Host } from "../src/host.js";
import { Program } from "../src/testing.js";

const sdk = fileURLToPath(new URL("../../", import.meta.url));
const recipes = join(sdk, "../../examples/languages/recipes");
const skip = !process.env.GREENROOM_BIN && process.env.GREENROOM_LANGUAGES !== "all" && "no program: set GREENROOM_BIN";

/** Compiles them in a folder of their own, where `greenroom` is this package. */
function compiled(): string {
  const folder = mkdtempSync(join(sdk, "dist/recipes-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(sdk, join(folder, "node_modules/greenroom"));
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  const files = readdirSync(recipes).filter((name) => name.endsWith(".ts"));
  for (const name of files) copyFileSync(join(recipes, name), join(folder, name));
  const flags = ["--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "--types", "node"];
  const roots = ["--typeRoots", join(sdk, "node_modules/@types")];
  const done = spawnSync(join(sdk, "node_modules/.bin/tsc"), [...flags, ...roots, ...files], { cwd: folder, encoding: "utf8" });
  assert.equal(done.stdout, "");
  return folder;
}

test("the recipes compile, and do what their pages say", async (t) => {
  const folder = compiled();
  let node: Program | undefined;
  let host: Host | undefined;
  try {
    if (skip) return t.diagnostic(skip);
    const recipe = (name: string) => import(pathToFileURL(join(folder, `${name}.js`)).href);
    const { bucket } = await recipe("limiter");
    const { job } = await recipe("scheduler");
    node = await Program.start();
    const served = (host = await node.host([bucket, job]));
    const take = (client: string) => served.ref("bucket", client).take!({ count: 10 });
    await take("ada");
    await assert.rejects(take("ada"), (error) => error instanceof ActorError && error.name === "TooMany");
    await take("bob");
    const report = served.ref("job", "report");
    await report.schedule!({ ms: 1000 });
    while (Number(await report.look!({})) < 2) await new Promise((resolve) => setTimeout(resolve, 50));
    await report.stop!({});
  } finally {
    await host?.close();
    await node?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
