//! One activation, as who looks into it sees it.

use greenroom_world::Timestamp;
use serde::{Deserialize, Serialize};

use super::chain::Link;
use super::parts::Arrival;
use super::{Shard, Slot};
use crate::geo::adaptive::report::Adaptive;

/// One actor, as [`Node::inspect`](crate::Node::inspect) finds it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Inspection {
    /// Its full name.
    pub actor: String,
    /// The node that it is on.
    pub node: String,
    /// The shard of that node.
    pub shard: u64,
    /// The epoch of its activation; 0 for a stateless worker and a spawned actor.
    pub epoch: u64,
    /// What it is about: `starting`, `ready`, `ending`, or `moving` to another node.
    pub state: String,
    /// Time since it was activated.
    pub age_seconds: f64,
    /// Time since its last turn began, or since it was activated.
    pub idle_seconds: f64,
    /// The turns that have begun and wait for something, the first one first.
    pub turns: Vec<RunningTurn>,
    /// Messages in its mailbox.
    pub waiting: u64,
    /// The first of them; at most 64.
    pub messages: Vec<WaitingMessage>,
    /// How many instances it has over all clusters, and why, if its kind is adaptive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<Adaptive>,
    /// Whence it was brought to this node, if it has moved since it was activated and the optimiser's part of the node knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought: Option<Brought>,
    /// Timers that it has set.
    pub timers: u64,
    /// Actors that it has spawned, and that still are; at most 64.
    pub children: Vec<String>,
    /// How many of its last turns are kept; 0 if [`Config::history`](crate::Config::history) does not name its kind.
    pub history_len_max: u64,
    /// Its last turns that have ended, the last one last.
    pub history: Vec<PastTurn>,
}

/// How an actor came to its node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Brought {
    /// The name of the node that it left.
    pub from: String,
    /// Time since it came.
    pub ago_seconds: f64,
    /// Why, in words.
    pub why: String,
}

/// A turn that has begun and waits for something.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunningTurn {
    /// The method, or the hook.
    pub method: String,
    /// Time since it first waited for something, which is where its beginning is noted.
    pub running_seconds: f64,
    /// Whether others may run beside it.
    pub read: bool,
    /// The actor that waits for it.
    pub caller: Option<String>,
    /// Time until its deadline; `None` without one.
    pub left_seconds: Option<f64>,
}

/// A message in a mailbox.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitingMessage {
    /// The method.
    pub method: String,
    /// How long it has waited.
    pub waited_seconds: f64,
    /// The actor that waits for its reply.
    pub caller: Option<String>,
    /// Time until its deadline; `None` without one.
    pub left_seconds: Option<f64>,
}

/// A turn that has ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PastTurn {
    /// The method.
    pub method: String,
    /// Time since it ended.
    pub ago_seconds: f64,
    /// How long its message waited in the mailbox.
    pub queued_seconds: f64,
    /// Time from its beginning to its end.
    pub took_seconds: f64,
    /// What its caller was told: `ok`, `error`, `broken` or `refused`.
    pub outcome: String,
    /// The actor that waited for it.
    pub caller: Option<String>,
}

/// A message in a mailbox, as its activation knows it.
pub(crate) struct Waiting<'a> {
    pub(super) method: String,
    pub(super) waited: std::time::Duration,
    pub(super) deadline: Timestamp,
    pub(super) link: &'a Link,
}

impl Shard {
    /// Whence the activation in `slot` was brought to this node, if it was.
    pub(crate) fn brought_to(&self, slot: Slot) -> Option<Brought> {
        let activation = self.activation(slot)?;
        let (made, _) = activation.moments();
        let Arrival { from, at, why } = self.brought(activation.id()).filter(|arrival| arrival.at >= made)?;
        Some(Brought { from, ago_seconds: self.clock().since(at).as_secs_f64(), why })
    }

    /// What is known of the activation in `slot`.
    pub(crate) fn inspect(&self, slot: Slot, epoch: u64) -> Option<Inspection> {
        let activation = self.activation(slot)?;
        let now = self.clock();
        let node = &self.port.node;
        let left = |deadline: Timestamp| (deadline != Timestamp::NEVER).then(|| deadline.since(now).as_secs_f64());
        let mut turns: Vec<_> = {
            let turns = self.turns.borrow();
            let ours = turns.iter().filter(|turn| turn.activation.slot() == slot);
            ours.map(|turn| (turn.began, turn.job, turn.link.clone(), turn.deadline)).collect()
        };
        turns.sort_by_key(|(began, ..)| *began);
        let turns = turns.into_iter().map(|(began, job, link, deadline)| RunningTurn {
            method: activation.method_name(job.method),
            running_seconds: now.since(began).as_secs_f64(),
            read: job.access == super::turns::Access::Read,
            caller: self.awaited_by(&link),
            left_seconds: left(deadline),
        });
        let turns = turns.take(LISTED_MAX).collect();
        let mut messages = Vec::new();
        activation.each_message(now, &mut |waiting| {
            if messages.len() < LISTED_MAX {
                messages.push(WaitingMessage {
                    method: waiting.method,
                    waited_seconds: waiting.waited.as_secs_f64(),
                    caller: self.awaited_by(waiting.link),
                    left_seconds: left(waiting.deadline),
                });
            }
        });
        let (made, used) = activation.moments();
        let (history_len_max, history) = node.kinds().history_of(activation.id(), now);
        Some(Inspection {
            actor: activation.id().to_string(),
            node: node.name().to_owned(),
            shard: self.index().into(),
            epoch,
            state: activation.state().to_owned(),
            age_seconds: now.since(made).as_secs_f64(),
            idle_seconds: now.since(used).as_secs_f64(),
            turns,
            waiting: activation.waiting() as u64,
            messages,
            instances: node.parts().find_map(|part| part.instances(activation.id())),
            brought: self.brought_to(slot),
            timers: self.timers.borrow().of(slot) as u64,
            children: self.children_of(slot, LISTED_MAX),
            history_len_max: history_len_max as u64,
            history,
        })
    }
}

/// Turns, messages and children that are listed.
const LISTED_MAX: usize = 64;
