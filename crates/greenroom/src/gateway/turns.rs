//! Turns of a node that failed or were slow, as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::Door;
use super::path::decode;
use super::problem::Problem;
use crate::here::Here;
use crate::here::built_in::is_built_in;
use crate::here::samples::Sample;

/// Which turns are asked for.
pub(super) struct Wanted {
    slow: bool,
    kind: Option<String>,
    method: Option<String>,
    within: Option<Duration>,
}

/// What the turns of one group have in common: kind, method, how they failed, and what with.
type Group = (&'static str, &'static str, &'static str, Option<String>);

/// How many there are of a group, and when the first and the last were noted.
type Extent = (u64, u64, u64);

impl Wanted {
    /// Reads `?outcome=slow&kind=room&method=post&seconds=60`, of which each may be left out.
    ///
    /// # Errors
    /// Something else is asked for.
    pub(super) fn read(query: Option<&str>) -> Result<Self, Problem> {
        let mut wanted = Self { slow: false, kind: None, method: None, within: None };
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(unclear)?;
            let value = decode(value).map_err(|why| Problem::bad_request(&why))?;
            match (name, value.as_str()) {
                ("outcome", "failed") => wanted.slow = false,
                ("outcome", "slow") => wanted.slow = true,
                ("kind", _) => wanted.kind = Some(value),
                ("method", _) => wanted.method = Some(value),
                ("seconds", _) => {
                    wanted.within = Some(Duration::from_secs(value.parse::<u32>().map_err(|_| unclear())?.into()));
                }
                _ => return Err(unclear()),
            }
        }
        Ok(wanted)
    }
}

fn unclear() -> Problem {
    Problem::bad_request(
        "write which turns are wanted as `?outcome=failed` or `?outcome=slow`, with `&kind=chat_room`, `&method=post` and `&seconds=60` \
         if not all are",
    )
}

/// The turns that are kept of those wanted: grouped, the largest group first; and each, the last or the slowest first.
pub(super) fn list(door: &Door, wanted: &Wanted) -> Value {
    let node = &door.node;
    let now = node.world().now();
    let samples = node.gauges().iter().map(|gauges| gauges.samples());
    let kept = samples.flat_map(|samples| if wanted.slow { samples.slow(now) } else { samples.failed() });
    let mut kept: Vec<_> = kept
        .filter(|one| wanted.within.is_none_or(|within| now.since(one.noted) <= within))
        .map(|one| (method_of(node, &one), one))
        .filter(|(method, one)| {
            let kind = one.actor.kind.name();
            let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
            !is_built_in(kind) && is(&wanted.kind, kind) && is(&wanted.method, method)
        })
        .collect();
    if wanted.slow {
        kept.sort_by_key(|(_, one)| std::cmp::Reverse(one.ran));
    } else {
        kept.sort_by_key(|(_, one)| std::cmp::Reverse(one.noted));
    }
    let mut groups: BTreeMap<Group, Extent> = BTreeMap::new();
    for (method, one) in &kept {
        let group = (one.actor.kind.name(), *method, outcome(one), one.error.clone());
        let (count, first, last) = groups.entry(group).or_insert((0, one.at.0, one.at.0));
        (*count, *first, *last) = (*count + 1, one.at.0.min(*first), one.at.0.max(*last));
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (count, _, last))| std::cmp::Reverse((*count, *last)));
    let groups: Vec<_> = groups
        .into_iter()
        .map(|((kind, method, class, error), (count, first, last))| {
            json!({ "kind": kind, "method": method, "class": class, "error": error, "count": count, "first": first, "last": last })
        })
        .collect();
    let turns: Vec<_> = kept.iter().map(|(method, one)| told(node.name(), method, one)).collect();
    json!({ "node": node.name(), "groups": groups, "turns": turns })
}

fn told(node: &str, method: &str, one: &Sample) -> Value {
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    json!({
        "at": one.at.0, "actor": one.actor.to_string(), "method": method, "caller": one.caller,
        "queued": seconds(one.queued), "ran": seconds(one.ran), "outcome": outcome(one), "error": one.error,
        "trace": one.trace, "node": node,
    })
}

fn outcome(one: &Sample) -> &'static str {
    one.failed.map_or("slow", |class| class.name())
}

fn method_of(node: &Here, one: &Sample) -> &'static str {
    node.kinds().methods_of(one.actor.kind.name()).get(usize::from(one.method)).map_or("other", |method| method.name)
}
