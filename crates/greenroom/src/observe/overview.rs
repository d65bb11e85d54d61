//! A cluster at a glance: what its nodes say of themselves, added up.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_protocols::node::{End, NodeId};
use serde_json::{Value, json};

use super::findings::together;
use super::history::Point;
use super::look::{self, Whom};
use super::question::Question;
use super::standing::standing;
use super::word::NodeWord;
use crate::here::Here;
use crate::here::meter::Distribution;

/// The cluster at a glance, with the last `seconds` of the nodes that are asked.
pub(crate) async fn overview(here: &Arc<Here>, seconds: u32, whom: &Whom) -> Value {
    let heard = look::ask(here, &Question::Overview { seconds }, whom).await;
    heard.with_silent(told(here, seconds, &heard.said))
}

/// What the nodes have said of themselves that answered, with the last `seconds` of their past.
fn told(here: &Here, seconds: u32, said: &BTreeMap<NodeId, NodeWord>) -> Value {
    let view = here.view();
    let nodes = view.view.members.iter().map(|(id, member)| {
        let mut node = json!({
            "name": member.name,
            "id": id.0,
            "status": standing(&view.view, *id, member),
            "why": view.view.ends.get(id).map(End::to_string),
            "address": member.address,
            "http": member.http,
            "answers": said.contains_key(id),
        });
        if let Some(word) = said.get(id) {
            more(&mut node, word);
        }
        node
    });
    let cluster = json!({ "name": here.config().cluster, "answers": true, "nodes": nodes.collect::<Vec<_>>() });
    let step = said.get(&here.me()).map_or(1, |word| word.step.max(1));
    let past = added(said.values().filter(|word| word.step == step).map(|word| &*word.past), (seconds / step) as usize);
    let now = here.wall().0;
    json!({
        "at": now,
        "here": here.name(),
        "system": here.config().cluster,
        "clusters": [cluster],
        "totals": totals(said, step, &past),
        "series": series(now, step, &past),
        "findings": together(said.values().flat_map(|word| word.findings.iter().cloned())),
    })
}

fn more(node: &mut Value, word: &NodeWord) {
    let shards = word.shards.iter().map(|shard| {
        json!({ "busy": shard.busy, "activations": shard.activations, "inbox": shard.inbox, "shed": shard.shed })
    });
    for (name, value) in [
        ("version", json!(word.version)),
        ("uptime", json!(word.uptime)),
        ("kinds", json!(word.kinds)),
        ("shards", shards.collect()),
        ("resident", json!(word.resident)),
        ("limit", json!(word.limit)),
        ("lease_left", json!(word.lease_left)),
    ] {
        node[name] = value;
    }
}

/// The last `len` points of the nodes, each with those of the same time: they end at the same moment, and may begin at others.
fn added<'a>(pasts: impl Iterator<Item = &'a [Option<Point>]>, len: usize) -> Vec<Option<Point>> {
    // The newest first.
    let mut sums: Vec<Option<Point>> = Vec::new();
    for past in pasts {
        let known = past.len().min(len);
        sums.resize(sums.len().max(known), None);
        for (sum, point) in sums.iter_mut().zip(past.iter().rev()) {
            if let Some(point) = point {
                let sum = sum.get_or_insert_default();
                sum.add(point);
                sum.activations = sum.activations.saturating_add(point.activations);
            }
        }
    }
    sums.reverse();
    sums
}

/// What there is now, and what has happened in the time that the points are of.
fn totals(said: &BTreeMap<NodeId, NodeWord>, step: u32, past: &[Option<Point>]) -> Value {
    let mut sum = Point::default();
    past.iter().flatten().for_each(|point| sum.add(point));
    let shards = said.values().flat_map(|word| &word.shards);
    json!({
        "seconds": past.iter().flatten().count() as u64 * u64::from(step),
        "calls": sum.calls,
        "failed": sum.failed,
        "outside": { "p50": quantile(&sum.outside, 0.5), "p99": quantile(&sum.outside, 0.99) },
        "activations": shards.fold(0_u64, |sum, shard| sum.saturating_add(shard.activations)),
        "remote_share": remote_share(&sum),
    })
}

/// The points as lists, with `null` for a time of which nothing is known; counts by the second.
fn series(now: u64, step: u32, past: &[Option<Point>]) -> Value {
    let list = |of: &dyn Fn(&Point) -> Value| -> Value {
        past.iter().map(|point| point.as_ref().map_or(Value::Null, of)).collect()
    };
    let rate = |count: u64| json!(count as f64 / f64::from(step));
    json!({
        "step": step,
        "from": now.saturating_sub(past.len() as u64 * u64::from(step) * 1_000),
        "calls": list(&|point| rate(point.calls)),
        "failed": list(&|point| rate(point.failed)),
        "p99": list(&|point| json!(quantile(&point.outside, 0.99))),
        "activations": list(&|point| json!(point.activations)),
        "remote": list(&|point| json!(remote_share(point))),
    })
}

fn quantile(of: &Distribution, share: f64) -> Option<f64> {
    of.quantile(share).map(|bound| bound.as_secs_f64())
}

/// The part of the messages between actors that went between nodes; `None` if there were none.
fn remote_share(point: &Point) -> Option<f64> {
    let all = point.near.saturating_add(point.far);
    (all > 0).then(|| point.far as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::here::meter::Histogram;

    fn point(calls: u64, took: Duration) -> Point {
        let outside = Histogram::default();
        (0..calls).for_each(|_| outside.add_shared(took));
        Point { calls, activations: 10, near: calls, far: calls, outside: outside.read(), ..Point::default() }
    }

    #[test]
    fn the_past_of_nodes_is_added_from_its_end() {
        let (quick, slow) = (Duration::from_millis(1), Duration::from_secs(1));
        let old = [Some(point(1, quick)), None, Some(point(98, quick))];
        let young = [Some(point(2, slow))];
        let past = added([&old[..], &young[..]].into_iter(), 3);
        let seen = series(10_000, 1, &past);
        assert_eq!((&seen["calls"], &seen["from"]), (&json!([1.0, null, 100.0]), &json!(7_000)), "{seen}");
        assert_eq!(seen["activations"], json!([10, null, 20]));
        assert!(seen["p99"][2].as_f64() >= Some(1.0), "buckets are added before they are divided: {seen}");
        let all = totals(&BTreeMap::new(), 1, &past);
        assert_eq!(
            (&all["seconds"], &all["calls"], &all["remote_share"]),
            (&json!(2), &json!(101), &json!(0.5)),
            "{all}"
        );
        assert!(all["outside"]["p50"].as_f64() < Some(0.01), "{all}");
    }

    #[test]
    fn a_node_that_says_more_than_it_is_asked_is_cut_off() {
        let long: Vec<_> = (0..1_000).map(|calls| Some(point(calls % 3, Duration::ZERO))).collect();
        assert_eq!(added(std::iter::once(&long[..]), 60).len(), 60);
        assert!(added(std::iter::empty(), 60).is_empty());
    }
}
