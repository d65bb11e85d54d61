// Tables, and the cells that several pages have.
import { html } from "./lib.js";
import { to } from "./route.js";

/** A card with a table, of which 500 rows are drawn; the cells of the column `wrap` may have several lines. */
export function Table({ title, sub, heads, rows, empty, note, wrap, children }) {
  const id = `title-${title.toLowerCase().replaceAll(" ", "-")}`;
  return html`<section class="card" aria-labelledby=${id}><header><h1 id=${id}>${title}</h1><span class="sub">${sub}</span></header>${children}
    ${rows.length === 0 ? html`<p class="empty">${empty}</p>` : html`<div class="scroll" tabindex="0" role="group" aria-labelledby=${id}><table>
      <thead><tr>${heads.map((head) => html`<th>${head}</th>`)}</tr></thead>
      <tbody>${rows.slice(0, 500).map((row) => html`<tr>${row.map((cell, at) => html`<td class=${at === wrap ? "wrap" : ""}>${cell}</td>`)}</tr>`)}</tbody></table></div>`}
    ${rows.length > 500 ? html`<p class="note">500 of ${rows.length}</p>` : null}
    ${note ? html`<p class="note">${note}</p>` : null}</section>`;
}

/** An actor's name as a link to its page. */
export function actor(name) {
  const cut = String(name).indexOf("/");
  return cut > 0 ? html`<a class="mono" href=${to("actor", name.slice(0, cut), name.slice(cut + 1))}>${name}</a>` : String(name ?? "");
}

/** One of several, or all of them. */
export function Choice({ name, value, pick, all, options }) {
  return html`<label>${name}<select value=${value} onChange=${(event) => pick(event.currentTarget.value)}><option value="">${all}</option>
    ${options.map(([id, text]) => html`<option value=${id} selected=${id === value}>${text}</option>`)}</select></label>`;
}

/** Who gave no answer, in words; nothing if all did. @param {{node: string, why: string}[]|undefined} silent */
export const silence = (silent) => (silent?.length ? silent.map(({ node, why }) => `${node} gave no answer: ${why}`).join("; ") : null);
