//! Callers and actors whose versions of an interface do not fit.

use std::fmt;

use greenroom_protocols::versions::{ANY, Offer};
use serde::{Deserialize, Serialize};

use super::error::{Refusal, did_you_mean};
use super::key::ActorId;

/// What a caller speaks, what there is, and how to mend it. Its `Display` says it in words.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct VersionGap {
    /// The kind that was called.
    pub kind: String,
    /// The version of its interface that the caller speaks; 0 if it knows none.
    pub wanted: u16,
    /// What there is: each with a node, the version that it hosts, and the callers that it serves. A few of them, if they are many.
    pub hosts: Vec<String>,
    /// The method, if that is what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Methods that there are with names like it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// The actor, if it is on a node that does not serve the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The state, if it is what a node does not read: `wanted` is then the version of its type that wrote it, and `hosts` says
    /// what nodes read. No retry helps before one reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// What to do.
    pub remedy: String,
}

impl VersionGap {
    /// No node of `hosts` serves callers of `wanted`.
    pub(crate) fn nowhere<'a>(kind: &str, wanted: u16, hosts: impl IntoIterator<Item = (&'a str, Offer)>) -> Self {
        let (mut said, mut newest) = (Vec::new(), 0);
        for (node, offer) in hosts {
            newest = newest.max(offer.version);
            if said.len() < HOSTS_MAX {
                said.push(host(node, offer));
            }
        }
        let remedy = match wanted > newest {
            true => format!("start a node that hosts version {wanted} or later"),
            false => {
                format!("upgrade the caller to version {newest}, or let a node serve version {wanted} (`compatible`)")
            }
        };
        Self { kind: kind.to_owned(), wanted, hosts: said, remedy, ..Self::default() }
    }

    /// The actor `id` is on `node`, which serves other callers only, and stays there.
    pub(crate) fn taken(id: &ActorId, wanted: u16, node: &str, offer: Offer) -> Self {
        let remedy = match wanted > offer.version {
            true => format!("it stays on its node: spawn it anew where version {wanted} is"),
            false => format!("an actor does not go back to an older version: upgrade the caller to {}", offer.version),
        };
        let (kind, hosts, actor) = (id.kind.name().to_owned(), vec![host(node, offer)], Some(id.to_string()));
        Self { kind, wanted, hosts, actor, remedy, ..Self::default() }
    }

    /// The interface on `node` has no such method, and the caller's has.
    pub(crate) fn without(kind: &str, method: &str, near: Vec<String>, wanted: u16, node: &str, offer: Offer) -> Self {
        let remedy = "an interface with new methods needs a new version: `#[actor(interface = ..)]`".to_owned();
        let (kind, hosts, method) = (kind.to_owned(), vec![host(node, offer)], Some(method.to_owned()));
        Self { kind, wanted, hosts, method, near, remedy, ..Self::default() }
    }

    /// None of `hosts`, each with the latest version that it reads, reads the state called `state` of `kind` as it is written.
    pub(crate) fn unread<'a>(
        kind: &str,
        state: &str,
        wrote: u8,
        hosts: impl IntoIterator<Item = (&'a str, u8)>,
    ) -> Self {
        let hosts = hosts.into_iter().take(HOSTS_MAX).map(reader).collect();
        let (kind, state, remedy) = (kind.to_owned(), Some(state.to_owned()), NEWER_PROGRAM.to_owned());
        Self { kind, wanted: wrote.into(), hosts, state, remedy, ..Self::default() }
    }

    /// Its node does not read the state called `state` of the actor `id`, and it was placed there nevertheless.
    pub(crate) fn unread_of(id: &ActorId, state: &str, wrote: u8, host: (&str, u8)) -> Self {
        Self { actor: Some(id.to_string()), ..Self::unread(id.kind.name(), state, wrote, [host]) }
    }
}

impl fmt::Display for VersionGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, wanted, hosts, method, near, actor, state, remedy } = self;
        if let Some(state) = state {
            let of = actor.as_ref().map_or_else(|| format!("actor kind {kind:?}"), |actor| format!("actor {actor}"));
            let hosts = hosts.join(", ");
            return write!(f, "state {state:?} of {of} is written by version {wanted} of its type: {hosts}; {remedy}");
        }
        let there = if hosts.is_empty() { "no node hosts it".to_owned() } else { hosts.join(", ") };
        let caller = match *wanted {
            ANY => "a caller without a version".to_owned(),
            wanted => format!("a caller of version {wanted}"),
        };
        match (method, actor) {
            (Some(method), _) => {
                write!(f, "actor kind {kind:?} has no method {method:?} for {caller} ({there}){}", did_you_mean(near))?;
            }
            (None, Some(actor)) => write!(f, "actor {actor} does not serve {caller}: {there}")?,
            (None, None) => write!(f, "actor kind {kind:?} is served by no node for {caller}: {there}")?,
        }
        write!(f, "; {remedy}")
    }
}

impl From<VersionGap> for Refusal {
    fn from(gap: VersionGap) -> Self {
        Refusal::Version(Box::new(gap))
    }
}

fn host(node: &str, Offer { version, compatible }: Offer) -> String {
    match compatible == version {
        true => format!("node {node} hosts version {version}"),
        false => format!("node {node} hosts version {version} for callers from {compatible} on"),
    }
}

fn reader((node, reads): (&str, u8)) -> String {
    format!("node {node} reads up to version {reads}")
}

const NEWER_PROGRAM: &str = "start nodes of the newer program: no retry helps before";

/// Nodes that are named.
const HOSTS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_names_the_kind_the_versions_and_the_remedy() {
        let (one, two) = (Offer::FIRST, Offer { version: 2, compatible: 2 });
        assert_eq!(
            VersionGap::nowhere("till", 3, [("a", one), ("b", two)]).to_string(),
            "actor kind \"till\" is served by no node for a caller of version 3: node a hosts version 1, node b hosts version \
             2; start a node that hosts version 3 or later"
        );
        assert_eq!(
            VersionGap::without("till", "refund", vec!["fund".into()], 1, "a", one).to_string(),
            "actor kind \"till\" has no method \"refund\" for a caller of version 1 (node a hosts version 1); did you mean \
             \"fund\"?; an interface with new methods needs a new version: `#[actor(interface = ..)]`"
        );
    }

    #[test]
    fn a_state_that_nobody_reads_is_named_with_who_reads_what_and_the_remedy() {
        assert_eq!(
            VersionGap::unread("till", "self", 2, [("a", 1)]).to_string(),
            "state \"self\" of actor kind \"till\" is written by version 2 of its type: node a reads up to version 1; start nodes \
             of the newer program: no retry helps before"
        );
    }

    #[test]
    fn a_gap_names_a_few_nodes_of_many() {
        let names: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let gap = VersionGap::nowhere("till", 2, names.iter().map(|name| (name.as_str(), Offer::FIRST)));
        assert_eq!(gap.hosts.len(), HOSTS_MAX);
    }
}
