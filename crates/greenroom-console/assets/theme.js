// Dark or light: as the system says, until somebody chooses.
import { effect, signal } from "./lib.js";

const light = matchMedia("(prefers-color-scheme: light)");
export const theme = signal(light.matches ? "light" : "dark");
light.addEventListener("change", () => { theme.value = light.matches ? "light" : "dark"; });
effect(() => { document.documentElement.dataset.theme = theme.value; });

export function turn() { theme.value = theme.value === "dark" ? "light" : "dark"; }
