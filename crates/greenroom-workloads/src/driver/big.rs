//! Big: `actors` actors talk to each other.

use futures_util::future::try_join_all;
use serde_json::json;

use super::{Outcome, Run};
use crate::cluster::Target;
use crate::kinds::big::{self, BigARef, BigBRef, BigCRef, BigOrder, ROLES};

pub(super) async fn run(run: &mut Run<'_>) -> Result<Outcome, String> {
    let plan = run.plan;
    let tally = "big";
    let roles = plan.nodes.min(u32::from(ROLES)) as u8;
    let order = |here| BigOrder {
        here,
        actors: plan.actors,
        roles,
        prefix: "big".into(),
        style: plan.style,
        payload: plan.payload,
        extent: plan.extent(),
        tally: tally.into(),
    };
    try_join_all((0..plan.actors).map(|place| meet(run, order(place)))).await?;
    let until_ns = plan.until_ns();
    try_join_all((0..plan.actors).map(|place| start(run, order(place), until_ns))).await?;
    let report = run.collect(tally, u64::from(plan.actors)).await?;
    Ok(Outcome::of_talks(&report))
}

async fn meet(run: &Run<'_>, order: BigOrder) -> Result<(), String> {
    let key = big::key(&order.prefix, order.here);
    let role = big::role(order.here, order.roles);
    let target = Target { kind: KINDS[usize::from(role)], key: &key, method: "meet" };
    let arguments = json!({ "order": order });
    let here = async |node: &greenroom::Node| match role {
        0 => BigARef::of(node, key.as_str()).meet(order).await,
        1 => BigBRef::of(node, key.as_str()).meet(order).await,
        _ => BigCRef::of(node, key.as_str()).meet(order).await,
    };
    run.cluster.ask(target, arguments, here).await
}

async fn start(run: &Run<'_>, order: BigOrder, until_ns: Option<u64>) -> Result<(), String> {
    let key = big::key(&order.prefix, order.here);
    let role = big::role(order.here, order.roles);
    let target = Target { kind: KINDS[usize::from(role)], key: &key, method: "start" };
    let arguments = json!({ "until_ns": until_ns });
    let here = async |node: &greenroom::Node| match role {
        0 => BigARef::of(node, key.as_str()).start(until_ns).await,
        1 => BigBRef::of(node, key.as_str()).start(until_ns).await,
        _ => BigCRef::of(node, key.as_str()).start(until_ns).await,
    };
    run.cluster.ask(target, arguments, here).await
}

/// The kinds by role.
const KINDS: [&str; ROLES as usize] = ["big_a", "big_b", "big_c"];
