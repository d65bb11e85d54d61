// Overview: what is wrong, five numbers, the cluster, and what happened.
import { html } from "./lib.js";
import { Spark, Strip } from "./chart.js";
import { ClusterMap } from "./map.js";
import { clock, count, percent, time } from "./format.js";
import { seen } from "./live.js";

/** Mean of what was seen before the last minute, to compare with. */
function was(points, of) {
  const old = points.slice(0, -60).map(of).filter((value) => value !== null);
  return old.length < 10 ? null : old.reduce((a, b) => a + b, 0) / old.length;
}

function Number({ title, values, unit, show, hue, points, of }) {
  const old = was(points, of);
  return html`<div class="card kpi">
    <span class="t">${title}</span>${old === null ? null : html`<span class="d">was ${show(old)}</span>`}
    <span class="v">${show(values.at(-1))} <small>${unit}</small></span>
    <${Spark} values=${values} hue=${hue} /></div>`;
}

const lately = (points, of) => points.slice(-120).map(of);

export function Findings({ list, at }) {
  return html`<section class="card findings" aria-labelledby="findings">
    <header><h2 id="findings">Findings</h2><span class="more">checked every second</span></header>
    ${list.length === 0 ? html`<p class="empty">Nothing is wrong: every node answers, no thread is overloaded, no turn hangs.</p>` : null}
    ${list.map((finding) => html`<article class="finding" key=${finding.id}>
      <span class=${`dot ${finding.level}`} aria-hidden="true"></span>
      <b><span class="vh">${finding.level}: </span>${finding.title}</b><time>${time((at - finding.since) / 1000)}</time>
      <p>${finding.text}</p><p><a href=${finding.page}>${finding.look}</a></p></article>`)}
  </section>`;
}

export function Overview() {
  const overview = seen.value;
  if (!overview) return html`<p class="empty" role="status">Asking the door …</p>`;
  const { points, moves, at } = overview;
  const share = (point) => (point.calls > 0 ? point.failed / point.calls : 0);
  const opened = at - overview.status.node.uptime_seconds * 1000;
  const happened = moves.slice(-200).map((move) => ({ at: opened + move.at_s * 1000, text: `${move.actor} moved from ${move.from} to ${move.to}: ${move.why}` }));
  return html`<div class="over"><h1 class="vh">Overview</h1>
    <div class="kpis">
      <${Number} title="Turns here" unit="/s" hue="green" show=${count} values=${lately(points, (p) => p.calls)} points=${points} of=${(p) => p.calls} />
      <${Number} title="Failed" unit="%" hue="red" show=${percent} values=${lately(points, share)} points=${points} of=${share} />
      <${Number} title="p99 of a turn" unit="" hue="amber" show=${time} values=${lately(points, (p) => p.p99)} points=${points} of=${(p) => p.p99} />
      <${Number} title="Active actors" unit="" hue="blue" show=${count} values=${lately(points, (p) => p.active)} points=${points} of=${(p) => p.active} />
      <${Number} title="To other nodes" unit="%" hue="violet" show=${percent} values=${lately(points, (p) => p.away)} points=${points} of=${(p) => p.away} />
    </div>
    <${ClusterMap} overview=${overview} />
    <${Findings} list=${overview.findings} at=${at} />
    <section class="card line" aria-labelledby="happened">
      <header><h2 id="happened">What happened</h2><span class="sub">since the page was opened; figures of ${overview.here}, moves of actors as marks</span>
        <span class="more"><span class="good-text">turns/s</span> · <span class="bad-text">failed/s</span></span></header>
      <div class="plot"><${Strip} points=${points} marks=${happened} /></div>
      ${happened.length === 0 ? html`<p class="note">The optimiser has moved no actor.</p>` : html`<ol class="happened">${happened.slice(-4).reverse().map((one) =>
        html`<li><time>${clock(one.at)}</time> ${one.text}</li>`)}</ol>`}
    </section></div>`;
}
