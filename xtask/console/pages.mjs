// The console in a real browser, before three real nodes: `node pages.mjs GREENROOM MODULES CHROMIUM`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";

import { stage } from "./stage.mjs";

const [program, modules, chromium] = process.argv.slice(2);
const playwright = createRequire(join(modules, "x.js"))("playwright-core");
const axe = readFileSync(join(modules, "node_modules/axe-core/axe.min.js"), "utf8");
const PAGES = ["overview", "stage", "stage?by=talk&colour=heat", "stage?by=table", "kinds", "kinds/chat_room", "actors", "actors?kind=chat_room&order=key", "tail", "tail?outcome=failed", "state", "state/account/self/nobody", "topics", "actor", "actor/chat_room/lobby", "turns", "waits", "spawned", "nodes", "clusters", "events", "events?level=bad&text=dead", "moves", "reliable", "reminders"];
const HOSTILE = "<img src=x onerror=document.title='taken'>";
const PATIENCE = 60_000;

const demo = spawn(program, ["demo", "--port", "0", "--quiet"], { stdio: ["ignore", "pipe", "inherit"] });
let said = "";
demo.stdout.on("data", (text) => { said += text; });
/** Nodes beside those of the demo. */
const again = [];
const wrong = [];
const expect = (holds, what) => { if (!holds) { wrong.push(what); console.log(`WRONG: ${what}`); } };

async function address() {
  for (const until = Date.now() + PATIENCE; Date.now() < until; ) {
    const found = /browser: +(\S+)/.exec(said);
    if (found) return found[1];
    if (demo.exitCode !== null) break;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`the demo names no address: ${said}`);
}

/** A page that notes what its browser complains of. */
async function open(context, url) {
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (message) => {
    // What the door refuses is shown in words; browsers note it besides.
    if (message.type() === "error" && !message.text().includes("the server responded with a status of 4")) page.complaints.push(message.text());
  });
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  await page.goto(url);
  await page.locator("main > *").first().waitFor({ timeout: PATIENCE });
  return page;
}

async function everyPage(browser, console) {
  for (const colorScheme of ["dark", "light"]) {
    for (const width of [1440, 1024, 390]) {
      const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
      for (const at of PAGES) {
        const page = await open(context, `${console}#/${at}`);
        await page.locator("text=Asking").first().waitFor({ state: "detached", timeout: PATIENCE });
        const wide = await page.evaluate(() => [document.documentElement, document.querySelector("main")].some((box) => box.scrollWidth > box.clientWidth + 1));
        await page.evaluate(axe);
        const found = await page.evaluate(() => globalThis.axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id} at ${nodes[0].target}`)));
        const name = `${at}, ${colorScheme}, ${width}`;
        expect(!wide, `${name}: it scrolls sideways`);
        expect(found.length === 0, `${name}: axe finds ${found.join("; ")}`);
        expect(page.complaints.length === 0, `${name}: ${page.complaints.join("; ")}`);
        await page.close();
      }
      await context.close();
    }
  }
}

/** From the Overview to a call, by keys alone. */
async function byKeyboard(context, console) {
  const page = await open(context, console);
  await page.keyboard.press("/");
  await page.keyboard.type("counter/by-keyboard");
  await page.keyboard.press("Enter");
  await page.getByRole("combobox", { name: "Method" }).waitFor({ timeout: PATIENCE });
  for (let n = 0; n < 60; n += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement.closest("label")?.textContent.startsWith("amount") ?? false)) break;
  }
  await page.keyboard.type("7");
  await page.keyboard.press("Enter");
  await page.locator("pre.out b").getByText("200").waitFor({ timeout: PATIENCE });
  await page.close();
}

/** What strangers write stays text. */
async function hostile(context, console) {
  const key = encodeURIComponent(HOSTILE);
  for (const at of [`actor/counter/${key}`, `kinds/${key}`, `actor/${key}/${key}`, key]) {
    const page = await open(context, `${console}#/${at}`);
    await page.locator("main").getByText("<img", { exact: false }).first().waitFor({ timeout: PATIENCE });
    expect((await page.locator("img").count()) === 0, `${at}: text became an element`);
    expect((await page.title()) !== "taken", `${at}: text ran`);
    await page.close();
  }
  const page = await open(context, `${console}#/actor/chat_room/${key}`);
  await page.getByRole("textbox", { name: "user" }).fill(HOSTILE);
  await page.getByRole("textbox", { name: "text" }).fill(HOSTILE);
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.locator("pre.out b").getByText("200").waitFor({ timeout: PATIENCE });
  await page.getByRole("combobox", { name: "Method" }).selectOption("read");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.locator("pre.out").getByText("<img", { exact: false }).first().waitFor({ timeout: PATIENCE });
  expect((await page.locator("img").count()) === 0, "a value became an element");
  await page.close();
}

/** Turns that have failed on the door's node are shown with their errors. */
async function failed(context, console) {
  const page = await open(context, `${console}#/turns`);
  const answers = await page.evaluate((hostile) => Promise.all(Array.from({ length: 40 }, (_, number) => fetch(`/chat_room/${encodeURIComponent(`${number}${hostile}`)}/post`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ user: "ada", text: "" }),
  }).then(({ status }) => status))), HOSTILE);
  expect(answers.every((status) => status === 422), `a room says of an empty message ${answers}`);
  await page.getByRole("link", { name: "chat_room.post" }).first().waitFor({ timeout: PATIENCE });
  await page.getByText('"Empty"').first().waitFor({ timeout: PATIENCE });
  expect((await page.locator("img").count()) === 0, "a key became an element");
  await page.close();
}

/** Whatever an error, a kind, a method or a caller is called stays text: actors of the demo fail with no text of strangers, so the door's answer is written here. */
async function errors(context, console) {
  const page = await context.newPage();
  const one = { at: Date.now(), node: HOSTILE, shard: 0, actor: `${HOSTILE}/${HOSTILE}`, kind: HOSTILE, method: HOSTILE, ran: 1, queued: 1, caller: `${HOSTILE}/${HOSTILE}`, outcome: HOSTILE, class: HOSTILE, error: HOSTILE, count: 1, last: Date.now() };
  await page.route("**/-/live?*", (route) => route.abort());
  await page.route("**/-/turns?*", (route) => route.fulfill({ json: { groups: [one], turns: [one], silent: [{ node: HOSTILE, why: HOSTILE }], left_out: 0 } }));
  await page.goto(`${console}#/turns`);
  await page.getByRole("cell", { name: HOSTILE, exact: true }).nth(4).waitFor({ timeout: PATIENCE });
  expect((await page.locator("img").count()) === 0, "what an error says became an element");
  expect((await page.title()) !== "taken", "what an error says ran");
  await page.close();
}

/** A turn is told when it has ended, and others than those that are meant are not. */
async function tail(context, console) {
  const page = await open(context, `${console}#/tail?kind=counter&key=${encodeURIComponent(HOSTILE)}`);
  await page.getByText(/turns of .*demo-1.* as they end/).waitFor({ timeout: PATIENCE });
  await page.evaluate((key) => fetch(`/counter/${encodeURIComponent(key)}/add`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"amount":1}' }), HOSTILE);
  const row = page.getByRole("row").filter({ hasText: "add" });
  await row.getByText("<img", { exact: false }).first().waitFor({ timeout: PATIENCE });
  expect((await page.getByRole("row").filter({ hasText: "chat_room" }).count()) === 0, "turns are told that are not meant");
  expect((await page.locator("img").count()) === 0, "a key became an element");
  expect(page.complaints.length === 0, `tail: ${page.complaints.join("; ")}`);
  await page.close();
}

/** Active actors are listed page by page, by what their keys begin with. */
async function actors(context, console) {
  const page = await open(context, `${console}#/actors`);
  const called = await page.evaluate(() => Promise.all(Array.from({ length: 120 }, (_, number) => fetch(`/counter/listed-${number}/add`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"amount":1}' }).then(({ status }) => status))));
  expect(called.every((status) => status === 200), `counters answer ${called}`);
  await page.getByRole("combobox", { name: "Kind" }).selectOption("counter");
  await page.getByRole("searchbox", { name: "Key begins with" }).fill("listed-");
  await page.getByText("100 of 120 that are active").waitFor({ timeout: PATIENCE });
  await page.getByRole("button", { name: "Next page" }).click();
  await page.getByText("20 of 120 that are active").waitFor({ timeout: PATIENCE });
  await page.evaluate(async () => { for (let n = 0; n < 40; n += 1) await fetch("/counter/listed-77/add", { method: "POST", headers: { "content-type": "application/json" }, body: '{"amount":1}' }); });
  await page.getByRole("combobox", { name: "First" }).selectOption("most turns");
  await page.locator("tbody tr").first().getByText("counter/listed-77").waitFor({ timeout: PATIENCE });
  expect(page.complaints.length === 0, `actors: ${page.complaints.join("; ")}`);
  await page.close();
}

/** How long it takes from an empty tab until the nodes are drawn, and from a click to another page. */
async function first(context, console) {
  const took = [];
  for (let n = 0; n < 5; n += 1) {
    const page = await context.newPage();
    const begun = performance.now();
    await page.goto(`${console}#/overview`);
    await page.locator(".node canvas").first().waitFor({ timeout: PATIENCE });
    const drawn = performance.now() - begun;
    const clicked = await page.evaluate(async () => {
      const begun = performance.now();
      document.querySelector('a[href="#/kinds"]').click();
      while (!document.querySelector("main h1, main h2")?.textContent.includes("Kinds")) await new Promise(requestAnimationFrame);
      return performance.now() - begun;
    });
    took.push([drawn, clicked]);
    await page.close();
  }
  const middle = (which) => took.map((one) => one[which]).sort((one, other) => one - other)[2].toFixed(0);
  process.stdout.write(`the first picture is there after ${middle(0)} ms, another page ${middle(1)} ms after a click (medians of five)\n`);
}

/** Each disc has as many dots as its node says that it has actors. */
async function dots(context, console) {
  const page = await open(context, `${console}#/overview`);
  await page.locator(".node canvas").nth(2).waitFor({ timeout: PATIENCE });
  const nodes = await page.evaluate(() => [...document.querySelectorAll(".node")].map((node) => {
    const canvas = node.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let inked = 0;
    for (let y = 0; y < canvas.height; y += 1) {
      for (let x = 0; x < canvas.width; x += 1) {
        const far = Math.hypot(x - canvas.width / 2, y - canvas.height / 2);
        if (far < canvas.width / 2 - 8 && data[(y * canvas.width + x) * 4 + 3] === 255) inked += 1;
      }
    }
    return { dots: inked / 16, said: Number.parseInt(node.querySelector(".sub").textContent, 10) };
  }));
  for (const { dots, said } of nodes) expect(dots === said, `${dots} dots stand for ${said} actors`);
  await page.close();
}

/** A node that is killed is the verdict, until it is there again; and an event that is found by its words. */
async function killed(context, console) {
  const page = await open(context, console);
  await page.getByRole("status").getByText("All is well").waitFor({ timeout: PATIENCE });
  const pid = Number(/demo-2 is process (\d+)/.exec(said)[1]);
  const [command, ...words] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  process.kill(pid, "SIGKILL");
  const began = Date.now();
  await page.getByRole("status").getByText("demo-2 is dead").waitFor({ timeout: PATIENCE });
  process.stdout.write(`the page said that the node was dead after ${((Date.now() - began) / 1000).toFixed(1)} s\n`);
  await page.locator(".finding").getByText("Start it again").waitFor({ timeout: PATIENCE });
  again.push(spawn(command, words, { stdio: ["pipe", "ignore", "inherit"], env: { ...process.env, RUST_LOG: "warn" } }));
  await page.getByRole("status").getByText("All is well").waitFor({ timeout: PATIENCE });
  await page.goto(`${console}#/events`);
  const row = page.getByRole("row").filter({ hasText: "demo-2 is dead" });
  await row.first().waitFor({ timeout: PATIENCE });
  await page.getByRole("combobox", { name: "Level" }).selectOption("bad");
  await page.getByRole("row").filter({ hasText: "has joined" }).first().waitFor({ state: "detached", timeout: PATIENCE });
  await page.getByRole("searchbox", { name: "Text" }).fill("nothing of the kind");
  await page.getByText("None of these is meant").waitFor({ timeout: PATIENCE });
  await page.getByRole("searchbox", { name: "Text" }).fill("DEAD");
  await row.first().waitFor({ timeout: PATIENCE });
  expect(page.url().endsWith("#/events?level=bad&text=DEAD"), `what was chosen stands in the address, which is ${page.url()}`);
  expect(page.complaints.length === 0, `events: ${page.complaints.join("; ")}`);
  await page.close();
}

/** Nothing can be changed until that is allowed, and then with what for, which is an event with who. */
async function changed(context, console) {
  const page = await open(context, `${console}#/actor/counter/${encodeURIComponent(HOSTILE)}`);
  const called = await page.evaluate((key) => fetch(`/counter/${encodeURIComponent(key)}/add`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"amount":1}' }).then(({ status }) => status), HOSTILE);
  expect(called === 200, `a counter answers ${called}`);
  await page.locator(".chip").first().waitFor({ timeout: PATIENCE });
  expect((await page.getByRole("button", { name: /^Move/ }).count()) === 0, "it can be moved though changes are not allowed");
  await page.getByRole("button", { name: "Allow changes" }).click();
  await page.getByRole("button", { name: /^Move/ }).click();
  await page.getByRole("textbox", { name: "What for?" }).fill(`to see ${HOSTILE}`);
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id} at ${nodes[0].target}`)));
  expect(found.length === 0, `the dialog of a change: axe finds ${found.join("; ")}`);
  await page.getByRole("dialog").getByRole("button", { name: "Move" }).click();
  await page.getByRole("dialog").waitFor({ state: "hidden", timeout: PATIENCE });
  await page.goto(`${console}#/events?event=changed`);
  const row = page.getByRole("row").filter({ hasText: "is asked to go to" });
  await row.getByText(`for: to see ${HOSTILE}`, { exact: false }).first().waitFor({ timeout: PATIENCE });
  await row.getByText("anybody on this machine").first().waitFor({ timeout: PATIENCE });
  expect((await page.locator("img").count()) === 0, "what a change is for became an element");
  await page.getByRole("button", { name: /^Changes allowed/ }).click();
  await page.getByRole("button", { name: "Allow changes" }).waitFor({ timeout: PATIENCE });
  expect(page.complaints.length === 0, `changes: ${page.complaints.join("; ")}`);
  await page.close();
}

/** What changes often is told on one connection, not asked for again and again. */
async function told(context, console) {
  const page = await open(context, `${console}#/overview`);
  await page.locator(".node canvas").nth(2).waitFor({ timeout: PATIENCE });
  await page.waitForResponse((answer) => answer.url().includes("/-/live?views="), { timeout: PATIENCE }).catch(() => {});
  await new Promise((done) => setTimeout(done, 2000));
  let asked = 0;
  page.on("request", (request) => { if (request.url().includes("/-/overview")) asked += 1; });
  const shown = () => page.evaluate(() => document.querySelector(".strip path.line-green")?.getAttribute("d"));
  const before = await shown();
  for (const until = Date.now() + PATIENCE; Date.now() < until && (await shown()) === before; ) await new Promise((done) => setTimeout(done, 200));
  expect((await shown()) !== before, "the line goes on");
  expect(asked === 0, `the overview was asked for ${asked} times though it is told`);
  await page.close();
}

/** A node alone with a journal shows who owns its partitions, and each of them in the table. */
async function reliable(context) {
  const free = createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const http = `127.0.0.1:${free.address().port}`;
  await new Promise((done) => free.close(done));
  again.push(spawn(program, ["node", "--name", "solo", "--http", http, "--journal", "memory:", "--shards", "1", "--until-stdin-ends"], { stdio: ["pipe", "ignore", "inherit"], env: { ...process.env, RUST_LOG: "warn" } }));
  for (const until = Date.now() + PATIENCE; Date.now() < until; await new Promise((done) => setTimeout(done, 100))) {
    if (await fetch(`http://${http}/readyz`).then(({ ok }) => ok, () => false)) break;
  }
  const page = await open(context, `http://${http}/-/console/#/reliable`);
  await page.getByText("solo: 64").waitFor({ timeout: PATIENCE });
  expect((await page.locator("svg.grid rect").count()) === 64, "each partition is a square");
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run().then(({ violations }) => violations.map(({ id }) => id)));
  expect(found.length === 0 && page.complaints.length === 0, `reliable: ${found.join()} ${page.complaints.join("; ")}`);
  await page.close();
}

let browser;
try {
  const console = await address();
  browser = await playwright.chromium.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  for (const check of [first, dots, byKeyboard, hostile, failed, errors, tail, actors, changed, told]) await check(context, console);
  await stage(context, console, { open, expect, hostile: HOSTILE });
  await everyPage(browser, console);
  await reliable(context);
  await killed(context, console);
} catch (error) {
  expect(false, error.stack);
} finally {
  await browser?.close();
  demo.kill("SIGTERM");
  for (const node of again) node.kill("SIGTERM");
}
console.log(wrong.length === 0 ? "the console is as it should be" : `${wrong.length} things are wrong`);
process.exitCode = wrong.length === 0 ? 0 : 1;
