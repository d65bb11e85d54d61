// The clusters that are one multi-cluster, as the door's node sees them.
import { html } from "./lib.js";
import { count, time } from "./format.js";
import { seen, useAnswer } from "./live.js";
import { Table } from "./table.js";

export function Clusters() {
  const { body, error } = useAnswer("/-/clusters", 2);
  if (!body) return html`<section class="card"><header><h1>Clusters</h1></header><p class="empty">${error ?? "Asking …"}</p></section>`;
  const { clusters, epoch, actors, counts } = body;
  const behind = clusters.some((cluster) => cluster.acknowledged && cluster.acknowledged < epoch);
  return html`<div class="stack">
    ${body.fenced ? html`<p class="problem" role="alert">No other cluster answers, so that this one may be taken for lost: actors that may be there once alone are refused.</p>` : null}
    ${body.list_trouble ? html`<p class="problem" role="alert">The list of clusters is not looked at: ${body.list_trouble}</p>` : null}
    <${Table} title="Clusters" sub=${`as ${seen.value?.here ?? "this node"} sees them, by list ${epoch}`} heads=${["cluster", "answers", "round trip", "works by list", "stands", "its clock", "gateways", "trouble"]} empty="The list is empty."
      note=${behind ? "A change of the list is complete once all clusters work by it." : null}
      rows=${clusters.map((cluster) => [html`<b>${cluster.name}</b>${cluster.own ? html` <span class="badge">this one</span>` : null}`,
        html`<span class=${cluster.answers ? "good-text" : "bad-text"}>${cluster.answers ? "yes" : "no"}</span>`, cluster.own ? "–" : time(cluster.round_trip_ms === null ? null : cluster.round_trip_ms / 1000),
        cluster.acknowledged || "not known", standing(cluster), ahead(cluster.clock_ahead_s), html`<span class="mono">${cluster.gateways.join(", ") || "none"}</span>`, cluster.trouble ?? ""])} />
    <${Table} title="Who owns what" sub="actors of the part of the directory that this node keeps" heads=${["where they stand", "actors"]} empty=""
      note=${body.leases.length ? `Kinds that are activated at home without a question: ${body.leases.join(", ")}` : null}
      rows=${Object.entries(OWNED).map(([name, what]) => [what, count(actors[name])])} />
    <${Table} title="Counted" sub="by this node since it started" heads=${["what", "how many"]} empty=""
      note=${body.lost_of.length ? `Confirmed updates were lost of: ${body.lost_of.join(", ")}` : null}
      rows=${Object.entries(COUNTED).map(([name, what]) => [what, html`<span class=${ILL.has(name) && counts[name] ? "bad-text" : ""}>${count(counts[name])}</span>`])} /></div>`;
}

const standing = ({ lost, joining, draining, empty }) => (lost ? "taken out as lost" : joining ? "is to join" : draining ? "gives up what it has" : empty ? "takes part, has no actor" : "takes part");
const ahead = (seconds) => (seconds ? html`<span class="warn-text">${time(Math.abs(seconds))} ${seconds > 0 ? "ahead" : "behind"}</span>` : "–");

const OWNED = { owned: "owned by this cluster", doubtful: "here, and perhaps elsewhere too", asking: "others are being asked", elsewhere: "owned by other clusters" };
const COUNTED = {
  questions: "questions to other clusters", forwarded: "calls that went to other clusters", answered: "calls of other clusters that ran here", activated: "actors activated here",
  doubtful: "of them, perhaps not the only ones", duplicates_found: "duplicates found here", duplicates_ended: "of them, ended", duplicates_merged: "duplicates elsewhere, taken over",
  updates_lost: "confirmed updates that ended with a duplicate", switches: "switches of adaptive actors", yielded: "actors given to the cluster that calls them most", dropped: "messages that found no room",
};
/** What should not be counted. */
const ILL = new Set(["updates_lost", "dropped"]);
