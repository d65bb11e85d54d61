// Beside the Stage: which kinds ask which, the share of calls between nodes, the hottest actors, moves; and the last hour's moves by the minute.
import { html } from "./lib.js";
import { Spark } from "./chart.js";
import { clock, count, hue, percent } from "./format.js";
import { seen } from "./live.js";
import { actor } from "./table.js";

const kind = (name) => html`<span class=${`mono hue-${hue(name)}`}>${name}</span>`;

function Pairs({ kinds }) {
  const most = Math.max(...kinds.map(({ rate }) => rate), 1e-9);
  return html`<section class="card" aria-labelledby="pairs"><header><h2 id="pairs">Who asks whom</h2><span class="more">a second · between nodes</span></header>
    ${kinds.length === 0 ? html`<p class="empty">No actor has asked another one of late, as far as messages are sampled.</p>` : html`<ul class="pairs">${kinds.slice(0, SHOWN).map(({ from, to, rate, remote_share: remote }) => html`
      <li>${kind(from)} → ${kind(to)}<span class="n">${count(rate)} · ${percent(remote)} %</span>
        <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="4" /><rect class=${`hue-${hue(from)}`} width=${(100 * rate) / most} height="4" />
          <rect class="far" x=${((100 * rate) / most) * (1 - remote)} width=${((100 * rate) / most) * remote} height="4" /></svg></li>`)}</ul>`}
  </section>`;
}

function Remote() {
  const values = seen.value?.series.remote ?? [];
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return null;
  return html`<section class="card remote" aria-labelledby="remote"><header><h2 id="remote">Messages between nodes</h2><span class="more">${percent(known[0])} % → ${percent(known.at(-1))} %</span></header>
    <${Spark} values=${values} hue="violet" /></section>`;
}

const where = (node, shards, end) => (shards ? `${node}, thread ${shards[end]}` : node);

function Moves({ moves, empty }) {
  return html`<section class="card" aria-labelledby="moves"><header><h2 id="moves">Moves</h2><span class="more">the last first</span></header>
    ${moves.length === 0 ? html`<p class="empty">${empty}</p>` : html`<ul class="moves">${moves.slice(0, SHOWN).map((one) => html`
      <li><time>${clock(one.at)}</time> ${actor(one.actor)}<br /><span class="sub">${where(one.from, one.shards, 0)} → ${where(one.to, one.shards, 1)}: ${one.why}</span></li>`)}</ul>`}
  </section>`;
}

function Hottest({ hot, more }) {
  return html`<section class="card" aria-labelledby="hottest"><header><h2 id="hottest">Hottest actors</h2><span class="more">turns/s</span></header>
    ${hot.length === 0 ? html`<p class="empty">No actor has had turns of late. Call one: <code>greenroom call</code>.</p>` : html`<div class="scroll" tabindex="0" role="group" aria-labelledby="hottest"><table><tbody>${hot.slice(0, SHOWN).map((one) => html`
      <tr><td>${actor(one.actor)}</td><td>${one.node}</td><td class="n">${count(one.turns)}</td></tr>`)}</tbody></table></div>`}
    ${more > 0 ? html`<p class="note">and ${count(more)} more that are known</p>` : null}</section>`;
}

export function Side({ stage, moves, chosen }) {
  return html`<div class="stack"><${Pairs} kinds=${stage.kinds} /><${Remote} /><${Hottest} hot=${stage.hot} more=${stage.hot.length - Math.min(stage.hot.length, SHOWN) + stage.hot_left_out} />
    <${Moves} moves=${moves} empty=${chosen ? "Nobody has moved in that minute." : "Nobody has moved in the last hour."} /></div>`;
}

/** The moves of the last hour by the minute; a minute may be chosen, and its moves are shown.
 * @param {{moved: {from: number, step: number, counts: number[]}, at: number|null, choose: (at: number|null) => void}} props */
export function Scrubber({ moved, at, choose }) {
  const { from, step, counts } = moved;
  const most = Math.max(...counts, 1);
  const chosen = at === null ? counts.length : Math.max(0, Math.min(counts.length - 1, Math.floor((at - from) / (step * 1000))));
  const minute = (n) => clock(from + n * step * 1000);
  const words = chosen === counts.length ? "live" : `${minute(chosen)}, ${counts[chosen]} moves`;
  const slide = (event) => {
    const n = Number(event.currentTarget.value);
    choose(n >= counts.length ? null : from + (n + 0.5) * step * 1000);
  };
  return html`<section class="card scrub" aria-label="Moves of the last hour"><svg viewBox=${`0 0 ${counts.length} 20`} preserveAspectRatio="none" aria-hidden="true">${counts.map((count, n) =>
    html`<rect class=${n === chosen ? "picked" : ""} x=${n + 0.1} width="0.8" y=${20 - Math.max((20 * count) / most, count ? 1.5 : 0.4)} height=${Math.max((20 * count) / most, count ? 1.5 : 0.4)} />`)}</svg>
    <input type="range" min="0" max=${counts.length} step="1" value=${chosen} aria-label="Minute of the last hour" aria-valuetext=${words} onInput=${slide} />
    <span class="words">${words}</span></section>`;
}

const SHOWN = 12;
