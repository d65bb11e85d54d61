//! Ping-pong: `pairs` of actors talk at once.

use std::time::Duration;

use futures_util::future::try_join_all;
use serde_json::json;

use super::plan::until_ns;
use super::{Outcome, Run};
use crate::cluster::Target;
use crate::kinds::ping_pong::{PingOrder, PingRef};

pub(super) async fn run(run: &mut Run<'_>) -> Result<Outcome, String> {
    let tally = "ping-pong";
    prepare_all(run, tally).await?;
    start_all(run, run.plan.duration).await?;
    let report = run.collect(tally, u64::from(run.plan.pairs)).await?;
    Ok(Outcome::of_talks(&report))
}

/// Lets all pairs know each other, and to whom they report.
pub(super) async fn prepare_all(run: &Run<'_>, tally: &str) -> Result<(), String> {
    let plan = run.plan;
    try_join_all((0..plan.pairs).map(|pair| {
        let order = PingOrder {
            partner: format!("pong-{pair}"),
            style: plan.style,
            window: plan.window,
            payload: plan.payload,
            extent: plan.extent(),
            tally: tally.to_owned(),
        };
        prepare(run, pair, order)
    }))
    .await
    .map(drop)
}

/// Lets all pairs talk for so long, or for as many rounds as are planned.
pub(super) async fn start_all(run: &Run<'_>, length: Option<Duration>) -> Result<(), String> {
    let until_ns = until_ns(length);
    try_join_all((0..run.plan.pairs).map(|pair| start(run, pair, until_ns))).await.map(drop)
}

async fn prepare(run: &Run<'_>, pair: u32, order: PingOrder) -> Result<(), String> {
    let key = key(pair);
    let target = Target { kind: "ping", key: &key, method: "prepare" };
    let arguments = json!({ "order": order });
    run.cluster.ask(target, arguments, async |node| PingRef::of(node, key.as_str()).prepare(order).await).await
}

async fn start(run: &Run<'_>, pair: u32, until_ns: Option<u64>) -> Result<(), String> {
    let key = key(pair);
    let target = Target { kind: "ping", key: &key, method: "start" };
    let arguments = json!({ "until_ns": until_ns });
    run.cluster.ask(target, arguments, async |node| PingRef::of(node, key.as_str()).start(until_ns).await).await
}

fn key(pair: u32) -> String {
    format!("ping-{pair}")
}
