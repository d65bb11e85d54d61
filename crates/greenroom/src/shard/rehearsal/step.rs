//! Who acts on a stage, and what can happen next there.

use std::fmt;

use super::faults::Fault;
use crate::actor::key::ActorId;

/// Who acts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Party {
    /// A client of the test, by its number.
    Client(u32),
    /// An actor.
    Actor(ActorId),
    /// The runtime.
    Runtime,
}

impl Party {
    /// Tells it from others.
    pub fn hash(&self) -> u64 {
        match self {
            Party::Client(number) => u64::from(*number) + 1,
            Party::Actor(id) => id.stable_hash(),
            Party::Runtime => 0,
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Client(number) => write!(f, "client {number}"),
            Party::Actor(id) => write!(f, "{id}"),
            Party::Runtime => f.write_str("the runtime"),
        }
    }
}

/// Something that can happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Tells it from all others of its run. The same step has the same number in all schedules: it is made of the turn that made it, and
    /// how much that had made before.
    pub number: u64,
    /// What it is.
    pub kind: Kind,
    /// Whom it touches, as a hash.
    pub at: u64,
    /// Who made it, as a hash.
    pub by: u64,
    /// The number of the step that made it.
    pub born: u64,
    /// Whether it begins a turn that lets others go on beside it.
    pub read: bool,
    /// The queue in which it waits, of one sender to one actor; 0 if in none.
    pub queue: u64,
}

/// What a step is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A message comes, and its turn begins.
    Start,
    /// An answer comes, and who waits for it goes on.
    Answer,
    /// An operation on a store is done, and who waits for it goes on.
    Store,
    /// What a turn of a reliable actor has done is committed.
    Commit,
    /// A turn goes on that something else has woken.
    Wake,
    /// A client goes on.
    Client,
    /// A choice of the test's own.
    Choice,
    /// The clock goes on to what is due next.
    Time,
    /// Something goes wrong.
    Fault(Fault),
}

impl Kind {
    /// Whether it has to do with all other steps, whomever they touch.
    pub fn touches_all(self) -> bool {
        matches!(self, Kind::Time | Kind::Fault(_))
    }
}

/// What a step has done, beside what it has done to actors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Performed {
    /// Nothing.
    Whole,
    /// This client is to be polled: that is a part of the step.
    Client(u32),
}

/// Who waits for an answer.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Who.
    pub who: Party,
    /// For whom.
    pub target: ActorId,
    /// For what.
    pub method: &'static str,
}

/// A number made of two.
pub fn mix(one: u64, other: u64) -> u64 {
    let mixed = (one ^ other.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(0x2545_F491_4F6C_DD1D);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
