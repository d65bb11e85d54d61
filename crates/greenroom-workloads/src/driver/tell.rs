//! Tell: `senders` actors send one-way messages to `actors` others.

use futures_util::future::try_join_all;
use serde_json::json;

use super::{Outcome, Run, output_rate};
use crate::cluster::Target;
use crate::kinds::tell::{TellOrder, TellerRef};

pub(super) async fn run(run: &mut Run<'_>) -> Result<Outcome, String> {
    let plan = run.plan;
    let tally = "tell";
    let mut extent = plan.extent();
    // The listeners are there before the clock starts. Each teller asks for its share of them first, as activations may be
    // placed near who asks first.
    try_join_all((0..plan.senders).map(|place| heard(run, place, plan.senders))).await?;
    extent.until_ns = plan.until_ns();
    let order = |here| TellOrder {
        here,
        senders: plan.senders,
        actors: plan.actors,
        prefix: PREFIX.into(),
        payload: plan.payload,
        extent,
        tally: tally.into(),
    };
    try_join_all((0..plan.senders).map(|place| start(run, order(place)))).await?;
    let report = run.collect(tally, u64::from(plan.senders)).await?;
    let heard = heard(run, 0, 1).await?;
    let mut outcome = Outcome::of(&report);
    outcome.set("messages", heard);
    // What was sent is what the tellers count; what did not arrive is lost.
    outcome.set("lost", report.lost + report.messages.saturating_sub(heard));
    outcome.set("messages_per_s", output_rate(heard as f64 / report.elapsed().as_secs_f64().max(1e-9)));
    Ok(outcome)
}

async fn start(run: &Run<'_>, order: TellOrder) -> Result<(), String> {
    let key = teller(order.here);
    let target = Target { kind: "teller", key: &key, method: "start" };
    let arguments = json!({ "order": order });
    run.cluster.ask(target, arguments, async |node| TellerRef::of(node, key.as_str()).start(order).await).await
}

async fn heard(run: &Run<'_>, first: u32, step: u32) -> Result<u64, String> {
    let actors = run.plan.actors;
    let key = teller(first);
    let target = Target { kind: "teller", key: &key, method: "heard" };
    let arguments = json!({"prefix": PREFIX, "actors": actors, "first": first, "step": step});
    let here =
        async |node: &greenroom::Node| TellerRef::of(node, key.as_str()).heard(PREFIX, actors, first, step).await;
    run.cluster.ask(target, arguments, here).await
}

fn teller(place: u32) -> String {
    format!("teller-{place}")
}

/// What the listeners' keys begin with.
const PREFIX: &str = "listener";
