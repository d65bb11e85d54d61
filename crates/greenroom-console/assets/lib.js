// What the pages are written in: preact with hooks and signals, and htm in place of a compiler.
import { h, render } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";

export { render };
export { useEffect, useRef, useState } from "./vendor/hooks.mjs";
export { signal, effect } from "./vendor/signals.mjs";
export const html = htm.bind(h);
