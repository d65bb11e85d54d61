//! The kinds of events, each with what is said of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use super::Moved;
use crate::actor::spent::Seconds;
use crate::observe::findings::Finding;
use crate::observe::level::Level;
use crate::observe::subject::Subject;

/// Something that has happened.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Happened {
    /// A node has joined the cluster; its own word, or another's.
    Joined { node: String },
    /// A node is about to leave.
    Draining { node: String },
    /// A node has left.
    Left { node: String },
    /// A node was declared dead.
    Died { node: String, why: String },
    /// A node does not answer this one.
    Suspected { node: String },
    /// This node stops as its lease is lost.
    LeaseLost { node: String, why: &'static str },
    /// A host has come in, or has become able to offer more: these kinds of its are taken, with their versions.
    HostCame { host: String, from: String, kinds: Vec<String> },
    /// What a host offers is not taken.
    HostRefused { host: String, kind: String, why: String },
    /// A host's session is over; whether it has said goodbye.
    HostGone { host: String, from: String, why: String, by_itself: bool },
    /// A turn has run for long.
    LongTurn { actor: String, turn: String, ran: Duration, queued: usize },
    /// A method keeps its thread from all other actors.
    Stalls { kind: String, method: String, how: &'static str, each: Duration },
    /// A spawned actor has failed and is made anew.
    Restarted { actor: String, why: String },
    /// A spawned actor has failed and ends.
    Failed { actor: String, why: String },
    /// An actor has gone elsewhere.
    Moved { actor: String, moved: Moved },
    /// The optimiser has moved so many actors within a minute, by the node that they went to, and between shards of this one.
    Optimised { to: BTreeMap<String, u64>, between_shards: u64 },
    /// Another cluster does not answer.
    ClusterSilent { cluster: String },
    /// It answers again.
    ClusterHeard { cluster: String },
    /// A list of clusters is in force.
    ClustersChanged { epoch: u64, clusters: usize },
    /// How many instances an adaptive actor has over the clusters has changed.
    Switched { actor: String, mode: String },
    /// This node owns a partition of reliable actors from now on.
    PartitionTaken { partition: u32, epoch: u64 },
    /// Another node owns it.
    PartitionLost { partition: u32 },
    /// What a reliable actor sends out of the cluster is parked.
    OutputParked { actor: String, to: String, why: String },
    /// Files of certificates, tokens or rules were read again and are in force.
    Renewed { what: String },
    /// They have changed and cannot be used.
    NotRenewed { what: String, why: String },
    /// Something has been wrong for so long that it is a finding; the event is called as its check, and has its level.
    Found { finding: Finding },
    /// It is a finding no more.
    Over { finding: Finding },
    /// A person has changed something, for what they said.
    Changed { what: String, subject: Subject, purpose: Option<String> },
}

/// What is said of an event.
pub(super) struct Said {
    pub(super) event: Cow<'static, str>,
    pub(super) level: Level,
    pub(super) subject: Subject,
    pub(super) text: String,
}

impl Happened {
    /// Whence an actor has gone where, if it has.
    pub(super) fn moved(&self) -> Option<Moved> {
        let Self::Moved { moved, .. } = self else { return None };
        let mut moved = moved.clone();
        [&mut moved.from, &mut moved.to, &mut moved.why].into_iter().for_each(cut);
        Some(moved)
    }

    pub(super) fn said(self) -> Said {
        use Level::{Bad, Good, Hint, Warn};
        let say = |event: &'static str, level, subject, text| Said { event: event.into(), level, subject, text };
        match self {
            Self::Joined { node } => {
                let text = format!("{node} has joined the cluster");
                say("joined", Good, Subject::node(node), text)
            }
            Self::Draining { node } => {
                let text = format!("{node} hands over what it has, and leaves");
                say("draining", Warn, Subject::node(node), text)
            }
            Self::Left { node } => {
                let text = format!("{node} has left the cluster");
                say("left", Warn, Subject::node(node), text)
            }
            Self::Died { node, why } => {
                let text = format!("{node} is dead: {why}");
                say("died", Bad, Subject::node(node), text)
            }
            Self::Suspected { node } => {
                let text = format!("{node} does not answer; the others are asked");
                say("suspected", Warn, Subject::node(node), text)
            }
            Self::LeaseLost { node, why } => {
                say("lease-lost", Bad, Subject::node(node), format!("this node stops: {why}"))
            }
            Self::HostCame { host, from, kinds } => {
                let text = format!("host {host} ({from}) has come in and offers {}", kinds.join(", "));
                say("host-came", Good, Subject::default(), text)
            }
            Self::HostRefused { host, kind, why } => {
                let text = format!("what host {host} offers as {kind} is refused: {why}");
                say("host-refused", Bad, Subject::kind(kind), text)
            }
            Self::HostGone { host, from, why, by_itself } => {
                let level = if by_itself { Hint } else { Warn };
                say("host-gone", level, Subject::default(), format!("host {host} ({from}) is gone: {why}"))
            }
            Self::LongTurn { actor, turn, ran, queued } => {
                let text = format!("{turn} has run for {}, and {queued} messages wait behind it", Seconds(ran));
                say("long-turn", Warn, Subject::actor(actor), text)
            }
            Self::Stalls { kind, method, how, each } => {
                let text = format!(
                    "{kind}.{method} {how} for {each:?} without an await, and its thread runs nobody else meanwhile"
                );
                say("stalls", Warn, Subject::method(kind, method), text)
            }
            Self::Restarted { actor, why } => {
                let text = format!("{actor} has failed and is restarted: {why}");
                say("restarted", Hint, Subject::actor(actor), text)
            }
            Self::Failed { actor, why } => {
                let text = format!("{actor} has failed and ends: {why}");
                say("failed", Warn, Subject::actor(actor), text)
            }
            Self::Moved { actor, moved: Moved { from, to, shards, why } } => {
                let place = |node: &str, shard: Option<u16>| match shard {
                    Some(shard) => format!("thread {shard} of {node}"),
                    None => node.to_owned(),
                };
                let [old, new] = shards.map_or([None; 2], |shards| shards.map(Some));
                let (from, to) = (place(&from, old), place(&to, new));
                let text = format!("{actor} has moved from {from} to {to}: {why}");
                say("moved", Hint, Subject::actor(actor), text)
            }
            Self::Optimised { to, between_shards } => {
                let all = to.values().sum::<u64>() + between_shards;
                let to = to.into_iter().map(|(node, count)| format!("{count} to {node}"));
                let between = (between_shards > 0).then(|| format!("{between_shards} between threads of this node"));
                let ways = to.chain(between).collect::<Vec<_>>().join(", ");
                let text = format!("the optimiser has moved {all} actors within a minute: {ways}");
                say("optimised", Hint, Subject::default(), text)
            }
            Self::ClusterSilent { cluster } => {
                let text = format!("cluster {cluster} does not answer");
                say("cluster-silent", Bad, Subject::cluster(cluster), text)
            }
            Self::ClusterHeard { cluster } => {
                let text = format!("cluster {cluster} answers again");
                say("cluster-heard", Good, Subject::cluster(cluster), text)
            }
            Self::ClustersChanged { epoch, clusters } => {
                let text = format!("list {epoch} of clusters is in force, with {clusters} of them");
                say("clusters-changed", Hint, Subject::default(), text)
            }
            Self::Switched { actor, mode } => {
                let text = format!("{actor} has other instances from now on: {mode}");
                say("switched", Hint, Subject::actor(actor), text)
            }
            Self::PartitionTaken { partition, epoch } => {
                let text = format!("this node owns partition {partition}, in its epoch {epoch}");
                say("partition-taken", Hint, Subject::default(), text)
            }
            Self::PartitionLost { partition } => {
                let text = format!("another node owns partition {partition}");
                say("partition-lost", Hint, Subject::default(), text)
            }
            Self::OutputParked { actor, to, why } => {
                let text = format!("an output of {actor} to {to} is parked: {why}");
                say("parked", Warn, Subject::actor(actor), text)
            }
            Self::Renewed { what } => {
                say("renewed", Good, Subject::default(), format!("{what}: read again, and in force"))
            }
            Self::NotRenewed { what, why } => {
                let text = format!("{what}: changed and of no use, so that the old stay in force: {why}");
                say("not-renewed", Bad, Subject::default(), text)
            }
            Self::Found { finding: Finding { check, level, subject, title, .. } } => {
                Said { event: check, ..say("finding", level, subject, title) }
            }
            Self::Over { finding: Finding { subject, title, .. } } => {
                say("over", Good, subject, format!("no more: {title}"))
            }
            Self::Changed { what, subject, purpose } => {
                let purpose = purpose.map(|purpose| format!(", for: {purpose}")).unwrap_or_default();
                say("changed", Warn, subject, format!("{what}{purpose}"))
            }
        }
    }
}

/// At most so much of what somebody else has said.
pub(super) fn cut(text: &mut String) {
    if text.len() > TEXT_LEN_MAX {
        let end = (0..=TEXT_LEN_MAX - MORE.len()).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(MORE);
    }
}

/// Longest text, name of an actor and name of a person, in bytes.
pub(super) const TEXT_LEN_MAX: usize = 256;
const MORE: &str = "…";
