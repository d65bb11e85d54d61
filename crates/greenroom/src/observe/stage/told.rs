//! The stage of a cluster: what its nodes say of theirs, put together.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::cast::{Cast, Edge};
use super::word::{HotWord, StageWord};
use super::{EDGES_MAX, MINUTES, MOVES_MAX, PAIRS_MAX};

/// What nodes have said, each with its name, as `GET /-/stage` tells it at the Unix millisecond `now`: the actors of `cast`, of whom each node has
/// named these `seats` when it was asked.
pub(super) fn told(
    now: u64,
    cluster: &str,
    said: &[(&str, &StageWord)],
    cast: &Cast<'_>,
    seats: &[&[HotWord]],
) -> Value {
    let nodes = said.iter().map(|(node, word)| {
        let shards = word.shards.iter().map(|seats| {
            json!({ "busy": round(seats.busy), "counts": seats.counts, "answers": seats.answers, "samples": seats.samples })
        });
        json!({ "node": node, "cluster": cluster, "shards": shards.collect::<Vec<_>>() })
    });
    let told = cast.told(seats);
    let (edges, drawn) = edges(cast, &told.hot);
    let edges_left_out =
        said.iter().map(|(_, word)| word.edges_left_out).sum::<u64>() + (cast.edges.len() - drawn) as u64;
    let (called, pairs_left_out) = called(said);
    let list = told.hot.iter().map(|(node, hot)| {
        json!({
            "actor": hot.actor, "node": said[*node].0, "shard": hot.shard, "turns": round(hot.turns), "failed": round(hot.failed),
        })
    });
    json!({
        "at": now,
        "nodes": nodes.collect::<Vec<_>>(),
        "hot": list.collect::<Vec<_>>(),
        "hot_left_out": told.left_out,
        "edges": edges,
        "edges_left_out": edges_left_out,
        "kinds": called,
        "kinds_left_out": pairs_left_out,
        "moves": moves(said),
        "moved": minutes(now, said),
    })
}

/// Edges between actors that are told: two indices, messages a second, and how far apart they are: 0 on one thread, 1 on one node, 2 on two; and
/// how many they are.
fn edges(cast: &Cast<'_>, hot: &[(usize, &HotWord)]) -> (Vec<Value>, usize) {
    let mut index: HashMap<u64, usize> = HashMap::with_capacity(hot.len());
    for (at, (_, hot)) in hot.iter().enumerate() {
        index.entry(hot.hash).or_insert(at);
    }
    let mut edges: Vec<(usize, usize, f64, u8)> = Vec::new();
    for Edge { ends: (one, other), told } in &cast.edges {
        let (Some(&one), Some(&other)) = (index.get(one), index.get(other)) else { continue };
        let (a, b) = (one.min(other), one.max(other));
        let ((one_node, one), (other_node, other)) = (hot[a], hot[b]);
        edges.push(match (one_node == other_node, one.shard == other.shard) {
            // Both ends have counted what stayed on their thread; of what did not, each has what it has sent.
            (true, true) => (a, b, told[0].max(told[1]), 0),
            (true, false) => (a, b, told[0] + told[1], 1),
            (false, _) => (a, b, told[0] + told[1], 2),
        });
    }
    edges.sort_by(|a, b| b.2.total_cmp(&a.2));
    edges.truncate(EDGES_MAX);
    let drawn = edges.len();
    (edges.into_iter().map(|(a, b, rate, distance)| json!([a, b, round(rate), distance])).collect(), drawn)
}

/// Which kinds ask which, how often, and the part of it that goes between nodes.
fn called(said: &[(&str, &StageWord)]) -> (Vec<Value>, usize) {
    let mut pairs: BTreeMap<(&str, &str), [f64; 4]> = BTreeMap::new();
    for one in said.iter().flat_map(|(_, word)| &word.called) {
        let sums = pairs.entry((&one.from, &one.to)).or_default();
        sums.iter_mut().zip(one.rates).for_each(|(sum, rate)| *sum += rate);
    }
    let mut pairs: Vec<_> = pairs.into_iter().map(|(pair, rates)| (pair, rates.iter().sum::<f64>(), rates)).collect();
    pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
    let left_out = pairs.len().saturating_sub(PAIRS_MAX);
    let told = pairs.into_iter().take(PAIRS_MAX).filter(|(_, rate, _)| *rate > 0.0).map(|((from, to), rate, rates)| {
        json!({ "from": from, "to": to, "rate": round(rate), "remote_share": round((rates[2] + rates[3]) / rate) })
    });
    (told.collect(), left_out)
}

/// The last moves, the last one first.
fn moves(said: &[(&str, &StageWord)]) -> Vec<Value> {
    let mut moves: Vec<_> = said.iter().flat_map(|(_, word)| &word.moves).collect();
    moves.sort_by_key(|one| std::cmp::Reverse(one.at));
    let told = moves.into_iter().take(MOVES_MAX).map(|one| {
        let mut told = json!(one.moved);
        told["at"] = one.at.into();
        told["actor"] = one.actor.as_str().into();
        told
    });
    told.collect()
}

/// How many moves there were in each minute of the last hour, the last one last.
fn minutes(now: u64, said: &[(&str, &StageWord)]) -> Value {
    let mut counts = [0_u64; MINUTES];
    for (_, word) in said {
        counts.iter_mut().rev().zip(&word.minutes).for_each(|(sum, count)| *sum += u64::from(*count));
    }
    json!({ "step": 60, "from": now.saturating_sub(MINUTES as u64 * 60_000), "counts": counts.to_vec() })
}

/// As many digits as somebody reads.
fn round(value: f64) -> f64 {
    if value >= 100.0 { value.round() } else { (value * 1000.0).round() / 1000.0 }
}

#[cfg(test)]
mod tests {
    use super::super::word::{Called, MoveWord};
    use super::*;
    use crate::observe::events::Moved;

    fn hot(hash: u64, shard: u16, turns: f64) -> HotWord {
        HotWord { hash, actor: format!("room/{hash}"), shard, turns, failed: 0.0 }
    }

    fn seen(said: &[(&str, &StageWord)], top: usize) -> Value {
        told(7_200_000, "main", said, &Cast::of(said, top), &[])
    }

    #[test]
    fn an_edge_is_told_once_and_its_messages_are_not_counted_twice() {
        let a = StageWord {
            hot: vec![hot(1, 0, 9.0), hot(2, 0, 8.0), hot(3, 1, 7.0)],
            // On one thread both ends have all of it; elsewhere each end has what it has sent.
            edges: vec![(1, 2, 10.0), (2, 1, 10.0), (1, 3, 4.0), (3, 1, 2.0), (1, 4, 3.0), (2, 99, 50.0)],
            ..StageWord::default()
        };
        let b = StageWord { hot: vec![hot(4, 0, 6.0)], edges: vec![(4, 1, 5.0)], ..StageWord::default() };
        let seen = seen(&[("a", &a), ("b", &b)], 10);
        let names: Vec<_> = seen["hot"].as_array().unwrap().iter().map(|hot| &hot["actor"]).collect();
        assert_eq!(names, ["room/1", "room/2", "room/3", "room/4"]);
        assert_eq!(seen["edges"], json!([[0, 1, 10.0, 0], [0, 3, 8.0, 2], [0, 2, 6.0, 1]]), "{seen}");
        assert_eq!(seen["edges_left_out"], 1, "the one to somebody who is not hot");
    }

    #[test]
    fn what_is_left_out_is_said() {
        let word = StageWord {
            hot: (0..10).map(|hash| hot(hash, 0, hash as f64)).collect(),
            hot_left_out: 5,
            edges: (1..10).map(|hash| (0, hash, 1.0)).collect(),
            ..StageWord::default()
        };
        let seen = seen(&[("a", &word)], 2);
        assert_eq!((seen["hot"].as_array().unwrap().len(), &seen["hot_left_out"]), (2, &json!(13)), "{seen}");
        assert_eq!(seen["hot"][0]["actor"], "room/9", "the hottest stay");
        assert_eq!((&seen["edges"], &seen["edges_left_out"]), (&json!([]), &json!(9)), "{seen}");
    }

    #[test]
    fn what_kinds_ask_of_each_other_is_added_before_it_is_divided() {
        let called = |rates| vec![Called { from: "user".to_owned(), to: "room".to_owned(), rates }];
        let a = StageWord { called: called([80.0, 10.0, 0.0, 0.0]), ..StageWord::default() };
        let b = StageWord { called: called([0.0, 0.0, 8.0, 2.0]), ..StageWord::default() };
        let seen = seen(&[("a", &a), ("b", &b)], 2);
        assert_eq!(seen["kinds"], json!([{ "from": "user", "to": "room", "rate": 100.0, "remote_share": 0.1 }]));
    }

    #[test]
    fn moves_of_all_nodes_stand_in_one_order_and_each_minute_has_its_number() {
        let [from, to, why] = ["a", "b", "it was asked for"].map(str::to_owned);
        let moved = Moved { from, to, shards: None, why };
        let word = |at: u64| StageWord {
            moves: vec![MoveWord { at, actor: format!("room/{at}"), moved: moved.clone() }],
            minutes: vec![1, 0, 2],
            ..StageWord::default()
        };
        let seen = seen(&[("a", &word(1)), ("b", &word(2))], 1);
        assert_eq!((&seen["moves"][0]["actor"], &seen["moves"][1]["at"]), (&json!("room/2"), &json!(1)), "{seen}");
        assert_eq!(seen["moves"][0]["why"], "it was asked for");
        let counts = seen["moved"]["counts"].as_array().unwrap();
        assert_eq!(
            (counts.len(), &counts[57..], &seen["moved"]["from"]),
            (60, &[json!(4), json!(0), json!(2)][..], &json!(3_600_000))
        );
    }
}
