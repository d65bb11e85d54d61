//! Ping-pong: `pairs` of actors talk at once.

use futures_util::future::try_join_all;
use serde_json::json;

use super::{Outcome, Run};
use crate::cluster::Target;
use crate::kinds::ping_pong::{PingOrder, PingRef};

pub(super) async fn run(run: &mut Run<'_>) -> Result<Outcome, String> {
    let plan = run.plan;
    let tally = "ping-pong";
    try_join_all((0..plan.pairs).map(|pair| {
        let order = PingOrder {
            partner: format!("pong-{pair}"),
            style: plan.style,
            payload: plan.payload,
            extent: plan.extent(),
            tally: tally.to_owned(),
        };
        prepare(run, pair, order)
    }))
    .await?;
    let until_ns = plan.until_ns();
    try_join_all((0..plan.pairs).map(|pair| start(run, pair, until_ns))).await?;
    let report = run.collect(tally, u64::from(plan.pairs)).await?;
    Ok(Outcome::of_talks(&report))
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
