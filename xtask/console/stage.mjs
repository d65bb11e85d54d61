// The Stage in a real browser: its pixels against what the door says, by pointer and by keys, and what a frame costs.

const PATIENCE = 60_000;

/** The pages' modules, as the page itself has them. */
const MODULES = `((name) => import(document.querySelector("script[type=module]").src.replace("main.js", name)))`;

/** The pixels of each hue within the discs, and as many as the door says that there are to be. */
const COUNTED = `(async () => {
  const load = ${MODULES};
  const [{ byPlace }, { pixel }, { hue, colour }] = await Promise.all(["stage-scene.js", "stage-paint.js", "format.js"].map(load));
  const stage = await (await fetch("/-/stage?top=300")).json();
  const canvas = document.querySelector(".stage-picture canvas");
  const scene = byPlace(stage, canvas.width, canvas.height, devicePixelRatio);
  const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  const hues = [...new Set(scene.kinds.map(hue))];
  const counted = Object.fromEntries(hues.map((name) => [name, { pixels: 0, said: 0 }]));
  const names = new Map(hues.map((name) => [pixel(colour(name)), name]));
  for (const { x, y, radius } of scene.discs) {
    for (let row = Math.ceil(y - radius); row <= y + radius; row += 1) {
      for (let column = Math.ceil(x - radius); column <= x + radius; column += 1) {
        const name = names.get(pixels[row * canvas.width + column]);
        if (name && Math.hypot(column - x, row - y) <= radius) counted[name].pixels += 1;
      }
    }
  }
  for (const { shards } of stage.nodes) {
    for (const { counts } of shards) {
      for (const [kind, count] of Object.entries(counts)) counted[hue(kind)].said += Math.ceil(count / scene.per) * scene.size ** 2;
    }
  }
  return counted;
})()`;

/** Where dots are many some touch. @param {{pixels: number, said: number}[]} counted */
const fits = (counted) => counted.every(({ pixels, said }) => said > 0 && Math.abs(pixels - said) <= said / 100);

/** Milliseconds of a frame with 100,000 dots and 4,000 arcs that is painted anew, and of one in which only comets fly: the least of sixty, as others
 * use the machine, too. */
const MEASURED = `(async () => {
  const load = ${MODULES};
  const [{ byPlace }, { paint }] = await Promise.all(["stage-scene.js", "stage-paint.js"].map(load));
  const shards = () => Array.from({ length: 4 }, () => ({ busy: 0.5, counts: { player: 2000, match: 500, inbox: 278 } }));
  const nodes = Array.from({ length: 9 }, (_, n) => ({ node: "n" + n, shards: shards() }));
  const hot = Array.from({ length: 2000 }, (_, n) => ({ actor: "player/" + n, node: "n" + (n % 9), shard: n % 4, turns: 2000 - n, failed: 0 }));
  const edges = Array.from({ length: 4000 }, (_, n) => [n % 2000, (n * 7919 + 13) % 2000, 4000 - n, 2]);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [1100, 620];
  const pen = canvas.getContext("2d");
  const scene = byPlace({ nodes, hot, edges }, canvas.width, canvas.height, 1);
  const inks = { ground: 0xff000000, kinds: [0xff00ff00, 0xffff0000, 0xff0000ff], hot: (at) => ({ ink: 0xff00ffff, glow: 1 - at / 2000 }), dim: null, plain: false };
  const timed = (count, each) => Math.min(...Array.from({ length: count }, () => { const begun = performance.now(); each(); return performance.now() - begun; }));
  const image = new ImageData(canvas.width, canvas.height);
  const anew = () => { paint(new Uint32Array(image.data.buffer), scene, inks); pen.putImageData(image, 0, 0); };
  return { dots: scene.dots.length, arcs: scene.links.length, anew: timed(60, anew), flying: timed(60, () => pen.putImageData(image, 0, 0)) };
})()`;

const frames = (page) => page.evaluate(() => Number(document.querySelector(".stage-picture canvas").dataset.frames));

/** @param {import("playwright-core").BrowserContext} context @param {string} console @param {{open: Function, expect: Function}} with_ */
export async function stage(context, console, { open, expect, hostile }) {
  const page = await open(context, `${console}#/overview`);
  for (let n = 0; n < 20; n += 1) {
    await page.evaluate((key) => fetch(`/counter/${encodeURIComponent(key)}/add`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"amount":1}' }), hostile);
  }
  await page.locator("main").focus();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.locator(".stage-picture canvas[data-frames]").waitFor({ timeout: PATIENCE });

  await page.getByRole("button", { name: "Dots alone", exact: true }).click();
  // Actors come and go meanwhile: at some moment both say the same.
  let counted;
  for (const until = Date.now() + PATIENCE; Date.now() < until; ) {
    counted = await page.evaluate(COUNTED);
    if (Object.values(counted).length > 1 && fits(Object.values(counted))) break;
  }
  expect(fits(Object.values(counted)), `dots in pixels, and what is said: ${JSON.stringify(counted)}`);

  // Who is hottest is named where it is drawn, and in the lists; what its name is stays text.
  const hottest = page.locator("section[aria-labelledby=hottest] a").first();
  await hottest.waitFor({ timeout: PATIENCE });
  await page.getByRole("button", { name: "Live", exact: true }).click();
  const at = await page.evaluate(`(async () => {
    const canvas = document.querySelector(".stage-picture canvas");
    const box = canvas.getBoundingClientRect();
    for (let y = 4; y < box.height; y += 4) {
      for (let x = 4; x < box.width; x += 4) {
        canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y, bubbles: true }));
        await Promise.resolve();
        if (document.querySelector(".tip")) return document.querySelector(".tip b").textContent;
      }
      await new Promise(requestAnimationFrame);
      if (document.querySelector(".tip")) return document.querySelector(".tip b").textContent;
    }
    return null;
  })()`);
  expect(at?.includes("/"), `who is pointed at is named, and not ${at}`);

  // Circles stay circles while the page takes another size, before anything is drawn anew.
  const oval = await page.evaluate(() => {
    const [picture, canvas] = [document.querySelector(".stage-picture"), document.querySelector(".stage-picture canvas")];
    picture.style.height = `${picture.clientHeight + 150}px`;
    const { width, height } = canvas.getBoundingClientRect();
    picture.style.height = "";
    return Math.abs(width / height - canvas.width / canvas.height);
  });
  expect(oval < 0.01, `the picture is drawn out by ${oval}`);

  // Nothing is drawn while nothing happens.
  const before = await frames(page);
  await page.evaluate(async () => { for (let n = 0; n < 60; n += 1) await new Promise(requestAnimationFrame); });
  expect((await frames(page)) - before <= 0, `${(await frames(page)) - before} frames were drawn of a page that is stopped`);
  await page.getByRole("button", { name: "Stopped", exact: true }).click();

  // A minute of the last hour, by keys.
  await page.getByRole("slider", { name: "Minute of the last hour" }).focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => /[?&]at=\d+/.test(location.hash), null, { timeout: PATIENCE });
  await page.keyboard.press("End");
  await page.waitForFunction(() => !/[?&]at=/.test(location.hash), null, { timeout: PATIENCE });

  for (const name of ["By talk", "Table"]) {
    await page.getByRole("button", { name, exact: true }).click();
    await page.waitForFunction((by) => location.hash.includes(`by=${by}`), name === "Table" ? "table" : "talk", { timeout: PATIENCE });
  }
  await page.getByRole("link", { name: `counter/${hostile}`, exact: false }).first().waitFor({ timeout: PATIENCE });
  expect((await page.locator("img").count()) === 0, "a name became an element");
  const { dots, arcs, anew, flying } = await page.evaluate(MEASURED);
  process.stdout.write(`a frame with ${dots} dots and ${arcs} arcs takes ${anew.toFixed(1)} ms if painted anew, ${flying.toFixed(1)} ms while only comets fly\n`);
  expect(page.complaints.length === 0, `stage: ${page.complaints.join("; ")}`);
  await page.close();
}
