//! Which of a shard's messages are sampled, for who wants to know which actors talk with each other.
//!
//! A message costs one load, one store and one branch. Nothing is sampled before a part of the shard has asked for it.

use std::cell::Cell;

use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::node::NodeId;

use super::{Shard, ShardId};
use crate::actor::key::ActorId;

/// The ways on which messages are counted down, each for itself: what stays on the shard is far more.
#[derive(Default)]
pub(super) struct Sampling {
    near: Countdown,
    far: Countdown,
}

/// Counts messages down to the next that is sampled.
#[derive(Default)]
struct Countdown(Cell<u32>);

/// A message that is sampled.
pub(crate) struct Sample<'a> {
    /// The actor whose turn sends it; `None` if it comes from elsewhere.
    pub(crate) from: Option<&'a ActorId>,
    /// The actor that it is for.
    pub(crate) to: &'a ActorId,
    /// Where the other end is of an actor of this shard.
    pub(crate) place: Place,
    /// Whether it is answered, which is a message of its own.
    pub(crate) awaited: bool,
}

impl Sample<'_> {
    /// The messages that it is: a question and its answer, or one alone.
    pub(crate) fn messages(&self) -> u32 {
        1 + u32::from(self.awaited)
    }
}

/// Where the other end of a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// On this shard.
    Near,
    /// On another shard of this node.
    Shard(ShardId),
    /// On another node.
    Node(NodeId),
    /// In another cluster.
    Cluster(ClusterId),
    /// Beside all actors, on this node.
    Outside,
}

impl Place {
    /// Whether it is none of this cluster.
    pub(crate) fn is_beyond(self) -> bool {
        matches!(self, Self::Cluster(_) | Self::Outside)
    }
}

impl Countdown {
    /// Counts a message; whether it is to be sampled.
    #[inline]
    fn message(&self) -> bool {
        let left = self.0.get().wrapping_sub(1);
        self.0.set(left);
        left == 0
    }
}

impl Shard {
    /// Samples messages from the next one on.
    pub(crate) fn begin_sampling(&self) {
        self.sampling.near.0.set(1);
        self.sampling.far.0.set(1);
    }

    /// Samples the message behind the next `left - 1`: of those that stay here, or of the others.
    pub(crate) fn sample_after(&self, near: bool, left: u32) {
        let countdown = if near { &self.sampling.near } else { &self.sampling.far };
        countdown.0.set(left);
    }

    /// Counts a message of the current turn that stays on this shard. Whether it is awaited is asked for samples alone.
    #[inline]
    pub(super) fn count_near(&self, to: &ActorId, awaited: impl FnOnce() -> bool) {
        if self.sampling.near.message() {
            self.sample_own(&self.sampling.near, to, Place::Near, awaited());
        }
    }

    /// Counts a message of the current turn that goes elsewhere.
    #[inline]
    pub(super) fn count_out(&self, to: &ActorId, place: Place, awaited: impl FnOnce() -> bool) {
        if self.sampling.far.message() {
            self.sample_own(&self.sampling.far, to, place, awaited());
        }
    }

    /// Counts a message that comes from elsewhere to an actor of this shard: from where, and whether it is awaited.
    #[inline]
    pub(super) fn count_in(&self, to: &ActorId, whence: impl FnOnce() -> (Place, bool)) {
        if self.sampling.far.message() {
            let (place, awaited) = whence();
            self.sample(&self.sampling.far, Some(&Sample { from: None, to, place, awaited }));
        }
    }

    /// Counts a message that came as bytes to an actor of this shard: from `sender` of this shard, whose turn runs elsewhere, or
    /// from where `whence` says.
    pub(super) fn count_raw(
        &self,
        sender: Option<&ActorId>,
        to: &ActorId,
        awaited: bool,
        whence: impl FnOnce() -> Place,
    ) {
        match sender {
            Some(from) if self.sampling.near.message() => {
                self.sample_from(&self.sampling.near, Some(from), to, Place::Near, awaited);
            }
            Some(_) => {}
            None => self.count_in(to, || (whence(), awaited)),
        }
    }

    /// Counts a message of an actor of this shard, whose turn runs elsewhere, that goes to another shard or node.
    pub(super) fn count_out_of(&self, from: &ActorId, to: &ActorId, place: Place, awaited: bool) {
        if self.sampling.far.message() {
            self.sample_from(&self.sampling.far, Some(from), to, place, awaited);
        }
    }

    #[cold]
    fn sample_own(&self, countdown: &Countdown, to: &ActorId, place: Place, awaited: bool) {
        let activation = self.current_activation();
        let from = activation.as_ref().map(|activation| activation.id());
        self.sample_from(countdown, from, to, place, awaited);
    }

    #[cold]
    fn sample_from(&self, countdown: &Countdown, from: Option<&ActorId>, to: &ActorId, place: Place, awaited: bool) {
        let sample = match from {
            Some(from) => (from != to).then_some(Sample { from: Some(from), to, place, awaited }),
            // Who is no actor has nowhere to go.
            None => (place == Place::Near).then_some(Sample { from: None, to, place: Place::Outside, awaited }),
        };
        self.sample(countdown, sample.as_ref());
    }

    fn sample(&self, countdown: &Countdown, sample: Option<&Sample<'_>>) {
        let near = std::ptr::eq(countdown, &self.sampling.near);
        // With nobody to tell, the next one comes after four billion others.
        let gap = self.parts.iter().find_map(|part| part.sampled(self, near, sample));
        countdown.0.set(gap.unwrap_or(0));
    }
}
