// Overview: what is wrong, five numbers, the cluster, and what happened.
import { html } from "./lib.js";
import { Spark, Strip } from "./chart.js";
import { ClusterMap } from "./map.js";
import { clock, count, percent, time } from "./format.js";
import { chief, grade, merged } from "./events.js";
import { seen, useAnswer } from "./live.js";
import { to } from "./route.js";

/** Mean of what there was before the last minute, to compare with. */
function was(values) {
  const old = values.slice(0, -60).filter((value) => value !== null);
  return old.length < 10 ? null : old.reduce((a, b) => a + b, 0) / old.length;
}

function Number({ title, values, unit, show, hue }) {
  const old = was(values);
  return html`<div class="card kpi">
    <span class="t">${title}</span>${old === null ? null : html`<span class="d">was ${show(old)}</span>`}
    <span class="v">${show(values.findLast((value) => value !== null))} <small>${unit}</small></span>
    <${Spark} values=${values.slice(-120)} hue=${hue} /></div>`;
}

/** A figure that a finding rests on. */
const figure = ({ name, value, unit }) => html`<span class="chip">${name} ${count(Math.round(value * 10) / 10)} ${unit}</span>`;

export function Findings({ list, at }) {
  return html`<section class="card findings" aria-labelledby="findings">
    <header><h2 id="findings">Findings</h2><span class="more">each node looks every second</span></header>
    ${list.length === 0 ? html`<p class="empty">Nothing is wrong, as far as the nodes that answer know.</p>` : null}
    ${list.map((finding) => html`<article class="finding" key=${finding.id}>
      <span class=${`dot ${finding.level}`} aria-hidden="true"></span>
      <b><span class="vh">${finding.level}: </span>${finding.title}</b><time>${time(Math.max(at - finding.since, 0) / 1000)}</time>
      <p>${finding.text} ${finding.evidence.map(figure)}</p><p>${finding.remedy}</p>
      <p class="sub">${finding.node} says so${finding.page.startsWith("#/") ? html` · <a href=${finding.page}>Look at ${finding.page.slice(2)}</a>` : null}</p></article>`)}
  </section>`;
}

export function Overview() {
  const overview = seen.value;
  const grave = useAnswer("/-/events?level=good&limit=50", 2).body?.events ?? [];
  const lately = useAnswer("/-/events?limit=200", 2).body?.events ?? [];
  if (!overview) return html`<p class="empty" role="status">Asking the door …</p>`;
  const { series, at } = overview;
  const { from, step, calls, failed } = series;
  const share = calls.map((count, index) => (count > 0 ? failed[index] / count : count));
  const points = calls.map((count, index) => ({ at: from + index * step * 1000, calls: count, failed: failed[index] }));
  const events = merged([...lately, ...grave.filter((one) => !lately.some(({ node, number }) => node === one.node && number === one.number))]).filter((one) => one.at >= from);
  const listed = chief(events);
  return html`<div class="over"><h1 class="vh">Overview</h1>
    <div class="kpis">
      <${Number} title="Turns" unit="/s" hue="green" show=${count} values=${calls} />
      <${Number} title="Failed" unit="%" hue="red" show=${percent} values=${share} />
      <${Number} title="p99 of calls from outside" unit="" hue="amber" show=${time} values=${series.p99} />
      <${Number} title="Active actors" unit="" hue="blue" show=${count} values=${series.activations} />
      <${Number} title="Between nodes" unit="%" hue="violet" show=${percent} values=${series.remote} />
    </div>
    <${ClusterMap} overview=${overview} />
    <${Findings} list=${overview.findings} at=${at} />
    <section class="card line" aria-labelledby="happened">
      <header><h2 id="happened">What happened</h2><span class="sub">in the last five minutes, with events as marks</span>
        <span class="more"><span class="good-text">turns/s</span> · <span class="bad-text">failed/s</span></span></header>
      <div class="plot"><${Strip} points=${points} marks=${events} /></div>
      ${listed.length === 0 ? html`<p class="note">Nothing has happened.</p>` : html`<ol class="happened">${listed.map((one) =>
        html`<li><time>${clock(one.at)}</time> ${grade(one.level)} ${one.text}${one.by ? ` (${one.by})` : ""}</li>`)}</ol>`}
      <p class="note"><a href=${to("events")}>${events.length > listed.length ? `${events.length - listed.length} more, and older ones` : "All events"}</a></p>
    </section></div>`;
}
