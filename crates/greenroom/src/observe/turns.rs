//! Turns of nodes that failed or were slow.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::here::Here;
use crate::here::built_in::is_built_in;
use crate::here::samples::Sample;

/// Which turns are asked for.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    /// The slowest, and not those that failed.
    pub(crate) slow: bool,
    pub(crate) kind: Option<String>,
    pub(crate) method: Option<String>,
    /// Those of the last seconds.
    pub(crate) seconds: Option<u32>,
}

/// A turn that failed or was slow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TurnWord {
    /// When it was noted, in Unix milliseconds.
    at: u64,
    actor: String,
    kind: String,
    method: String,
    caller: Option<String>,
    /// Seconds that its message had waited, and that it had run.
    queued: Option<f64>,
    ran: Option<f64>,
    outcome: String,
    error: Option<String>,
    trace: Option<String>,
}

/// What the turns of one group have in common: kind, method, how they failed, and what with.
type Group<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

/// The turns of `node` that are kept of those wanted.
pub(super) fn of_node(node: &Here, wanted: &Wanted) -> Vec<TurnWord> {
    let now = node.world().now();
    let within = wanted.seconds.map(|seconds| Duration::from_secs(seconds.into()));
    let samples = node.gauges().iter().map(|gauges| gauges.samples());
    let kept = samples.flat_map(|samples| if wanted.slow { samples.slow(now) } else { samples.failed() });
    let words = kept.filter(|one| within.is_none_or(|within| now.since(one.noted) <= within)).filter_map(|one| {
        let (kind, method) = (one.actor.kind.name(), method_of(node, &one));
        let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
        let wanted = !is_built_in(kind) && is(&wanted.kind, kind) && is(&wanted.method, method);
        wanted.then(|| TurnWord::of(&one, method, "slow"))
    });
    words.collect()
}

/// The turns of several nodes: grouped, the largest group first; and each with its node's name, the last or the slowest first.
pub(crate) fn told<'a>(slow: bool, said: impl IntoIterator<Item = (&'a str, &'a TurnWord)>) -> (Value, Value) {
    let mut turns: Vec<(&str, &TurnWord)> = said.into_iter().collect();
    if slow {
        let ran = |word: &TurnWord| word.ran.unwrap_or_default();
        turns.sort_by(|(_, one), (_, other)| ran(other).total_cmp(&ran(one)));
    } else {
        turns.sort_by_key(|(_, word)| std::cmp::Reverse(word.at));
    }
    // How many there are of each, and when the first and the last were noted.
    let mut groups: BTreeMap<Group<'_>, (u64, u64, u64)> = BTreeMap::new();
    for (_, word) in &turns {
        let group = (&*word.kind, &*word.method, &*word.outcome, word.error.as_deref());
        let (count, first, last) = groups.entry(group).or_insert((0, word.at, word.at));
        (*count, *first, *last) = (*count + 1, word.at.min(*first), word.at.max(*last));
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (count, _, last))| std::cmp::Reverse((*count, *last)));
    let groups = groups.into_iter().map(|((kind, method, class, error), (count, first, last))| {
        json!({ "kind": kind, "method": method, "class": class, "error": error, "count": count, "first": first, "last": last })
    });
    (groups.collect(), turns.into_iter().map(|(node, word)| word.told(node)).collect())
}

impl TurnWord {
    /// What the turn failed with is told to nobody.
    pub(crate) fn keep_error_to_itself(&mut self) {
        self.error = None;
    }

    /// When it was noted, in Unix milliseconds.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// As JSON, with the node that says it.
    pub(crate) fn told(&self, node: &str) -> Value {
        json!({
            "at": self.at, "actor": self.actor, "method": self.method, "caller": self.caller, "queued": self.queued,
            "ran": self.ran, "outcome": self.outcome, "error": self.error, "trace": self.trace, "node": node,
        })
    }

    /// One that somebody follows, of `node`.
    pub(super) fn ended(node: &Here, one: &Sample) -> Self {
        Self::of(one, method_of(node, one), "ok")
    }

    fn of(one: &Sample, method: &str, else_it: &str) -> Self {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        Self {
            at: one.at.0,
            actor: one.actor.to_string(),
            kind: one.actor.kind.name().to_owned(),
            method: method.to_owned(),
            caller: one.caller.clone(),
            queued: seconds(one.queued),
            ran: seconds(one.ran),
            outcome: one.failed.map_or(else_it, |class| class.name()).to_owned(),
            error: one.error.clone(),
            trace: one.trace.clone(),
        }
    }
}

fn method_of(node: &Here, one: &Sample) -> &'static str {
    node.kinds().methods_of(one.actor.kind.name()).get(usize::from(one.method)).map_or("other", |method| method.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_of_all_nodes_stand_in_one_order_and_in_groups() {
        let turn = |at: u64, ran: f64, error: &str| TurnWord {
            at,
            kind: "room".to_owned(),
            ran: Some(ran),
            error: Some(error.to_owned()),
            ..TurnWord::default()
        };
        let (old, new, slow) = (turn(1, 0.1, "full"), turn(3, 0.2, "full"), turn(2, 0.3, "gone"));
        let said = || [("a", &old), ("a", &slow), ("b", &new)];
        let order = |turns: &Value| -> Vec<u64> {
            turns.as_array().into_iter().flatten().filter_map(|turn| turn["at"].as_u64()).collect()
        };
        let (groups, turns) = told(false, said());
        assert_eq!((order(&turns), &turns[0]["node"]), (vec![3, 2, 1], &json!("b")));
        let first = &groups[0];
        assert_eq!((&first["error"], &first["count"]), (&json!("full"), &json!(2)), "{groups}");
        assert_eq!((&first["first"], &first["last"]), (&json!(1), &json!(3)), "{groups}");
        assert_eq!(order(&told(true, said()).1), [2, 3, 1]);
    }
}
