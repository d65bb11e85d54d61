//! GSI: across clusters, at most one owns an actor (Geo §3.1-3.3). Pure: no clock, no I/O, no randomness.
//!
//! One [`Entry`] is one actor's entry in one cluster's directory, kept by the owner of the actor's range. A cluster that
//! has no instance asks all others in a numbered round; it owns the actor if all pass. Departures from the paper:
//!
//! - **Rounds are numbered** (G1), and a re-run from Doubtful is a round like any other, with the instance kept (G2). Round
//!   numbers of a cluster never repeat for one actor: [`Entry::new`] is given a floor that is new with each owner of the range
//!   ([`Round::floor`]), also if the cluster has forgotten all numbers that it ever gave. Numbers above different floors say nothing
//!   of what came first.
//! - **Fail never activates** (G5): only silence leads to Doubtful, and only in [`Mode::Optimistic`].
//! - **Configurations are numbered** (G3): a cluster passes only a question of exactly its own configuration. A leaving
//!   cluster is first drained, then dropped ([`Configuration::change`]). A node must know its cluster's newest
//!   configuration before it owns a range: the reports of the hosts carry the number.
//! - **A cluster is lost** by an operator's word alone, in two steps: nobody owns what was its until the second, which comes when even
//!   one that lives behind a cut has given up, by time, what must be single ([`Event::Fenced`]).
//! - **A range in recovery answers Unknown** (G4), which counts as silence; and in [`Mode::Pessimistic`] so does a cluster with an
//!   instance in doubt, but to those that have one themselves: a doubt that is none must not cost the only instance.
//! - **Ownerships are numbered** (G8): by the round that won them. What is sent to an earlier ownership is
//!   answered [`Body::NotHere`]. Within one ownership the directory may host the actor on one node after another.
//! - **Healing hands over** (G6): the loser stops its instance, sends what the owner has not seen until the owner confirms it, and only then
//!   deactivates. If the owner is gone by then, it starts a round that it may win with its instance.
//! - **The instance that stays reloads** (G9): what it holds may be older than what another instance has saved. It reads its stored state
//!   again when its doubt ends, when it takes in a hand-over, and when an asker reports that an instance of its own ended in doubt.
//!   Calls wait until a hand-over is confirmed, so that a caller sees what its own cluster has saved.
//! - **Homes** may activate without a question, under a lease ([`Home`]).
//! - **The operation travels with the question**: the owner runs it and answers, in one round trip. Each cluster runs or
//!   declines a round's operations when it receives the question that carries them, and says which; a cluster that passes tells the
//!   asker what it has run, so that the next owner declines it. Operations that every cluster declined may be carried again; the
//!   others end as [`End::Unknown`], unless they may be repeated. None runs twice, also if nodes or clusters
//!   that ran them are lost with all that they remember (module `memory`).
//!
//! The machine sends questions and hand-overs again; everything else is sent once, over a transport that may lose but does not
//! duplicate.

mod carry;
mod checks;
mod configuration;
mod entry;
mod healing;
mod home;
mod inquiry;
mod memory;
mod message;
mod question;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use checks::Checks;
pub use configuration::{Acknowledged, Change, ChangeRefused, ConfigEpoch, Configuration, Standing};
pub use entry::Entry;
pub use home::Home;
pub use message::{Body, Carried, Message, Verdict};

use crate::time::Timestamp;

/// A cluster of the multi-cluster; never reused. In a race the higher one has precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterId(pub u16);

/// The number of a round of one cluster about one actor: of two above the same floor, the later one is higher.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Round(pub u64);

impl Round {
    /// Where the rounds of an owner of a range begin: in this tenure of the cluster's, which with all that it knows may be lost and begin
    /// anew, and therefore by 24 bits of chance.
    pub fn floor(tenure: u64, chance: u64) -> Self {
        Self(tenure << (CHANCE_BITS + COUNT_BITS) | (chance & ((1 << CHANCE_BITS) - 1)) << COUNT_BITS)
    }

    /// How many rounds above its floor it is.
    pub fn count(self) -> u64 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }

    /// Whether both are above the same floor, and so can be compared.
    fn is_akin(self, other: Self) -> bool {
        self.0 >> COUNT_BITS == other.0 >> COUNT_BITS
    }

    /// Whether it is known to be later than `other`.
    fn follows(self, other: Self) -> bool {
        self > other && self.is_akin(other)
    }
}

/// An instance of the actor as other clusters know it: the cluster, and the round that activated it there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Instance {
    /// Where it is.
    pub cluster: ClusterId,
    /// The round that activated it.
    pub round: Round,
}

/// The number of a call, unique within the cluster that it came in at: also among those of which nobody there remembers anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u64);

/// A call that came in at this cluster.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call<O> {
    /// Its number.
    pub id: CallId,
    /// What to run.
    pub operation: O,
    /// Whether running it twice does no harm: it is a read, or both sides deduplicate by `id`, at healing too.
    pub repeatable: bool,
    /// When the caller gives up.
    pub deadline: Timestamp,
}

/// How a call ended that no local instance ran.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum End<R> {
    /// The owner ran it.
    Result(R),
    /// It may have run.
    Unknown,
    /// It has not run and will not.
    Refused(Refusal),
}

/// Why a call was refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Refusal {
    /// A cluster is silent that must be asked, or no owner could be established before the deadline; try again later.
    Unreachable,
    /// This cluster is leaving the multi-cluster; call another one.
    Draining,
    /// Too many calls wait for this actor's owner; try again later.
    Full,
}

/// What happens without an answer from every cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// An instance is activated as Doubtful; duplicates are found and handed over later.
    #[default]
    Optimistic,
    /// Nothing is activated: calls are refused when a round ends in silence, and wait for a cluster that cannot tell yet.
    Pessimistic,
}

/// Where an entry stands (Geo §3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum State {
    /// There is no instance here.
    #[default]
    Invalid,
    /// The instance here is the only one that is owned.
    Owned(Round),
    /// There is an instance here that may not be the only one.
    Doubtful(Round),
    /// A round is under way.
    Requested,
    /// A round is under way and has lost: it starts over.
    Loser,
    /// This instance of another cluster is believed to be the owned one.
    Cached(Instance),
}

/// What happened to an entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event<O, R, U> {
    /// The multi-cluster has this configuration; an older one than known is ignored.
    Configuration(Configuration),
    /// A call came in here.
    Call(Call<O>),
    /// A cluster sent this.
    Received(ClusterId, Message<O, R, U>),
    /// The instance ran what [`Action::Run`] gave it for another cluster.
    Ran {
        /// Where the call came in.
        origin: ClusterId,
        /// The call.
        call: CallId,
        /// What came out.
        result: R,
    },
    /// The instance stopped for [`Action::Suspend`]: no turn of it runs.
    Suspended {
        /// The instance.
        instance: Round,
        /// What no owner has seen of it.
        unseen: U,
    },
    /// The instance here has taken in what [`Action::Merge`] gave it.
    Merged {
        /// Where it came from.
        from: ClusterId,
        /// The number of the hand-over.
        number: Round,
    },
    /// The instance has ended and its actor is idle: the ownership is given up.
    Released(Round),
    /// All hosts have reported to an entry made by [`Entry::recovering`]: this instance, or none.
    Recovered(Option<Report>),
    /// All clusters work by this configuration, and own nothing of the kind away from home: the home may activate without a
    /// question.
    Lease(ConfigEpoch),
    /// Whether this cluster has heard no other one for so long that it may be taken for lost, and others may own what it owns soon. It gives
    /// up what must be single, and owns nothing without a question, until it is heard again and the lease is given anew.
    Fenced(bool),
    /// Another cluster calls the owned instance here far more than this one: it is to end. What then waits here leaves that cluster some
    /// time to ask first; whoever asks first owns the actor.
    Yield,
    /// The transport knows this cluster to be unreachable: operations do not travel with questions to it, and no round waits for
    /// its answer.
    Lost(ClusterId),
    /// The transport reaches this cluster again.
    Reached(ClusterId),
    /// The deadline came.
    Tick,
}

/// What the host of an instance remembers of its entry, for the next owner of the range.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Report {
    /// The instance.
    pub instance: Round,
    /// Whether it was owned.
    pub owned: bool,
}

/// What must be done for an entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action<O, R, U> {
    /// Send this to a cluster.
    Send(ClusterId, Message<O, R, U>),
    /// Activate an instance here.
    Activate {
        /// Its number.
        instance: Round,
        /// Whether it may not be the only one.
        doubtful: bool,
    },
    /// The doubtful instance is owned from now on; if it was suspended, it goes on.
    Settle(Round),
    /// The suspended instance goes on, still doubtful.
    Resume(Round),
    /// Have the instance read its stored state again before its next turn: another instance may have saved.
    Reload(Round),
    /// Run this on the instance here; if `origin` is another cluster, say [`Event::Ran`].
    Run {
        /// Where the call came in.
        origin: ClusterId,
        /// What to run.
        call: Carried<O>,
    },
    /// The call is over.
    End(CallId, End<R>),
    /// Stop the instance's turns and say [`Event::Suspended`] with what no owner has seen.
    Suspend(Round),
    /// Give this to the instance here, then say [`Event::Merged`].
    ///
    /// What was handed over before may come again in a later hand-over, if its confirmation was lost: sessions tell.
    Merge {
        /// Where it came from.
        from: ClusterId,
        /// The number of the hand-over.
        number: Round,
        /// What the instance has not seen.
        unseen: U,
    },
    /// End the instance in good order and say [`Event::Released`]: this cluster leaves, or the actor is at home elsewhere, or had better
    /// live there.
    Release(Round),
    /// End the instance: it must not run another turn.
    Deactivate(Round),
    /// Read the configuration again: another cluster has one of this number.
    FetchConfiguration(ConfigEpoch),
}

/// How an entry behaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Without an answer of every cluster.
    pub mode: Mode,
    /// Whether the operation travels with the question. If not, a first call to a remote owner takes two round trips.
    pub carry: bool,
    /// Time after which an unanswered question or hand-over is sent again; 400 ms by default.
    pub resend_after: Duration,
    /// Silence after which a round ends without an answer; 1 s by default.
    pub silent_after: Duration,
    /// Time before a lost round starts over; 50 ms by default.
    pub back_off: Duration,
    /// Time between rounds of a doubtful instance; 10 s by default.
    pub rerun_every: Duration,
    /// Time for which calls wait after an instance has ended for another cluster's sake; 500 ms by default.
    pub yield_for: Duration,
    /// Where the actor is at home, if its kind has homes.
    pub home: Option<Home>,
    /// Calls that may wait here; 4096 by default, as at an activation.
    pub calls_max: usize,
    /// The safety checks in force.
    #[doc(hidden)]
    pub checks: Checks,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            carry: true,
            resend_after: Duration::from_millis(400),
            silent_after: Duration::from_secs(1),
            back_off: Duration::from_millis(50),
            rerun_every: Duration::from_secs(10),
            yield_for: Duration::from_millis(500),
            home: None,
            calls_max: 4096,
            checks: Checks::default(),
        }
    }
}

/// Rounds of one actor that one owner of its range numbers. The next one would seem to be of another owner.
const COUNT_BITS: u32 = 20;
/// Bits that chance gives to a floor.
const CHANCE_BITS: u32 = 24;
