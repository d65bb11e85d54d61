//! VLB: versioned state in memory, with a leader (Geo §3.5). Pure: no clock, no I/O, no randomness.
//!
//! The [`Leader`] holds the latest version; each instance, the leader's own too, is a [`Participant`]. A participant has at most
//! one submission under way, which carries everything that it has pending. Departures from the paper:
//!
//! - **Versions are (epoch, number)** (V2), the epoch rising with each leader. Who has met an epoch ignores earlier ones,
//!   and a leader that meets a later one retires (V3). Whoever appoints leaders makes the epoch rise.
//! - **Updates are numbered per participant** (V1), for ever: the state holds the highest applied number of each, and an update is
//!   applied once however often it is submitted. Every answer tells these numbers; that is how the leader asks for what is missing (V4).
//!   A gap is accepted only if the participant had settled what is missing under an earlier leader, with which it was lost.
//! - **A new leader collects** the latest version from all instances that answer before it accepts anything. If the only one that
//!   has not answered is one that joins, the leader answers it as if that one had nothing of any leader; who has met one since
//!   takes no such answer, and the leader accepts the join only once it knows ([`Note::Assumed`]).
//! - **Sessions are collected.** Of each cluster only the last [`SESSIONS_MAX`] that were heard are remembered, and the last one is
//!   told of new versions. A submission of one that is not known counts only if its sender has seen a version from after the
//!   forgetting ([`Snapshot::floors`]): a late copy from one that was forgotten has not.
//! - **What a doubtful leader confirms is kept** by its participant, and submitted anew to the leader that stays.
//! - **The first access carries its updates**: a submission is also the join and the refresh (V5).
//! - **A notification trims** the pending updates as an acknowledgement does (V6).

mod leader;
mod participant;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use leader::{Leader, SESSIONS_MAX};
pub use participant::{Action, Event, Participant};

pub use crate::bcas::{Applied, Session, Versioned, Waiter};
use crate::gsi::ClusterId;

/// The number of a leader: a later one has a higher one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaderEpoch(pub u64);

/// The place of a state among all: of two the higher one is the later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Version {
    /// The leader.
    pub epoch: LeaderEpoch,
    /// Updates so far.
    pub number: u64,
}

/// A state and what is in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot<S> {
    /// The state's version.
    pub version: Version,
    /// The state.
    pub state: S,
    /// For each participant that is remembered, the number of its last update in the state.
    pub applied: BTreeMap<Session, u64>,
    /// For each cluster of which participants are no longer remembered, the version at the last forgetting.
    pub floors: BTreeMap<ClusterId, Version>,
}

impl<S> Snapshot<S> {
    /// How many updates of `participant` the state has.
    pub fn applied(&self, participant: Session) -> u64 {
        self.applied.get(&participant).copied().unwrap_or(0)
    }
}

/// What a participant sends to the leader: a join, its updates, a refresh.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Submission<U> {
    /// The leader that it is for; 0 from who has met none yet: whoever leads.
    pub epoch: LeaderEpoch,
    /// The sender.
    pub from: Session,
    /// The sender's number of this submission.
    pub request: u64,
    /// The number of the first update.
    pub first: u64,
    /// The leader under which all updates before the first one were settled.
    pub settled_under: LeaderEpoch,
    /// The last version that the sender has seen.
    pub seen: Version,
    /// The updates, in order.
    pub updates: Vec<U>,
}

/// What an update came to, by its number.
pub type Numbered<O, E> = (u64, Applied<O, E>);

/// What the leader sends to a participant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Note<S: Versioned> {
    /// The latest version, when the submission of this number was handled, and what its updates came to, by their numbers.
    Answer(u64, Snapshot<S>, Vec<Numbered<S::Output, S::Error>>),
    /// The same to one that joins, if that one has nothing of any leader.
    Assumed(u64, Snapshot<S>, Vec<Numbered<S::Output, S::Error>>),
    /// The latest version, after another participant's updates.
    Notify(Snapshot<S>),
    /// A new leader asks for the latest version that you have, or hold as the leader until now.
    Collect(LeaderEpoch),
}

/// How the protocol is timed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Silence after which a submission is sent again; 1 s by default.
    pub resend_after: Duration,
    /// Silence after which a new leader begins without those that have not answered; 1 s by default.
    pub collect_for: Duration,
    /// Most that the updates in one submission [weigh](Versioned::weight), but for one update alone; no bound by default.
    pub submission_weight_max: usize,
    /// The safety checks in force.
    #[doc(hidden)]
    pub checks: Checks,
}

impl Default for Config {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self { resend_after: second, collect_for: second, submission_weight_max: usize::MAX, checks: Checks::default() }
    }
}

/// Which safety checks are in force; all of them, unless a test says otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Checks {
    /// An update is applied once (V1).
    pub numbers: bool,
    /// Who has met an epoch ignores earlier ones (V2, V3).
    pub epoch: bool,
    /// A new leader collects before it accepts.
    pub collect: bool,
    /// A leader accepts only what comes next (V4).
    pub next_only: bool,
    /// Who has met a leader since it joined takes no answer that assumes that it has not.
    pub assume: bool,
    /// A submission from one that is not known counts only if it has seen the last forgetting.
    pub floors: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self { numbers: true, epoch: true, collect: true, next_only: true, assume: true, floors: true }
    }
}
