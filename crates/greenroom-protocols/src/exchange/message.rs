//! What nodes say to each other about an exchange, and how much of it at most.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::survey::Load;
use crate::directory::Epoch;
use crate::node::NodeId;

/// Names an exchange: its proposer's numbers only rise, and an incarnation of a node never comes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ExchangeId {
    /// Who proposes it.
    pub by: NodeId,
    /// The how manieth of its exchanges.
    pub number: u64,
}

/// What two nodes say to each other. It may be lost, late, doubled and overtaken.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The proposer has these.
    Offer(Offer),
    /// The other side has chosen. It gives nothing before [`Message::Confirm`].
    Accept(Accept),
    /// The other side is in another exchange, or takes part in none.
    Busy {
        /// Which offer.
        x: ExchangeId,
        /// When it may be asked again.
        wait: Duration,
    },
    /// The proposer holds to the choice.
    Confirm {
        /// Which exchange.
        x: ExchangeId,
        /// Which of the given ones would not come to the partners that they were given for.
        stale: Vec<u64>,
    },
    /// The sender sends no more.
    Done {
        /// Which exchange.
        x: ExchangeId,
        /// How many of its actors have moved.
        sent: u16,
    },
}

/// Actors that wish to be on the other node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// The exchange.
    pub x: ExchangeId,
    /// What would go.
    pub side: Side,
}

/// One side of an exchange: what may go to the other one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Side {
    /// The node's load, with all that it has given and taken.
    pub load: Load,
    /// The actors, at most [`CANDIDATES_MAX`].
    pub candidates: Vec<Candidate>,
    /// Those that go together, by their indices in `candidates`; at most [`SETS_MAX`] sets.
    pub sets: Vec<Vec<u16>>,
    /// What the candidates say to each other, each pair once.
    pub among: Vec<Among>,
}

/// An actor that may go.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Candidate {
    /// Names the actor.
    pub hash: u64,
    /// Of its activation: no other one is moved.
    pub epoch: Epoch,
    /// All its messages, a minute.
    pub flow: u32,
    /// Those with the other node less those with its own, a minute.
    pub score: i64,
    /// Whether it may go by its own wish.
    pub ready: bool,
    /// What its move costs, in messages.
    pub cost: u32,
    /// µs of CPU a second.
    pub cpu: u32,
    /// What its move carries.
    pub bytes: u32,
    /// Edges that should lead to the other node, at most [`EDGES_MAX`].
    pub ties: Vec<Tie>,
}

/// An edge to an actor of the other node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Tie {
    /// That actor.
    pub partner: u64,
    /// Messages a minute.
    pub flow: u32,
}

/// An edge between two candidates of one side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Among {
    /// Index of the one.
    pub one: u16,
    /// Index of the other.
    pub other: u16,
    /// Messages a minute.
    pub flow: u32,
}

/// What was chosen of both sides.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Accept {
    /// The exchange.
    pub x: ExchangeId,
    /// The proposer's actors that go, in the order of choice.
    pub take: Vec<u64>,
    /// The chooser's, in the order of choice.
    pub give: Vec<Given>,
    /// The proposer's candidates whose partners are not where it thinks.
    pub stale: Vec<u64>,
    /// The chooser's load, before this exchange.
    pub load: Load,
}

/// An actor that the chooser gives.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Given {
    /// The actor.
    pub hash: u64,
    /// Of its activation.
    pub epoch: Epoch,
    /// How many of the taken ones were chosen before it.
    pub after: u16,
    /// µs of CPU a second.
    pub cpu: u32,
    /// Edges that should lead to the proposer, at most [`EDGES_MAX`].
    pub ties: Vec<Tie>,
}

/// A message that no node of this version sends: it is dropped. Its sender is at fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// More than may be in a message.
    #[error("a message about an exchange has more {what} than the {max} that there may be")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// It contradicts itself.
    #[error("a message about an exchange contradicts itself: {what}")]
    Inconsistent {
        /// In what.
        what: &'static str,
    },
}

impl Message {
    /// Checks that the message is within its bounds and names only what is in it.
    ///
    /// # Errors
    /// [`Malformed`], whose sender is no node of this version; the message is to be dropped.
    pub fn check(&self) -> Result<(), Malformed> {
        match self {
            Self::Offer(offer) => offer.side.check(),
            Self::Accept(accept) => accept.check(),
            Self::Confirm { stale, .. } => bounded(stale, CANDIDATES_MAX, "stale actors"),
            Self::Busy { .. } | Self::Done { .. } => Ok(()),
        }
    }

    /// The exchange that it is about.
    pub fn x(&self) -> ExchangeId {
        match self {
            Self::Offer(Offer { x, .. }) | Self::Accept(Accept { x, .. }) => *x,
            Self::Busy { x, .. } | Self::Confirm { x, .. } | Self::Done { x, .. } => *x,
        }
    }
}

impl Side {
    fn check(&self) -> Result<(), Malformed> {
        let Self { candidates, sets, among, .. } = self;
        bounded(candidates, CANDIDATES_MAX, "candidates")?;
        bounded(sets, SETS_MAX, "sets")?;
        bounded(among, CANDIDATES_MAX * EDGES_MAX, "edges among its candidates")?;
        for candidate in candidates {
            bounded(&candidate.ties, EDGES_MAX, "edges of an actor")?;
            if candidate.score.unsigned_abs() > u64::from(u32::MAX) {
                return Err(Malformed::Inconsistent { what: "a score is no difference of two flows" });
            }
        }
        distinct(candidates.iter().map(|candidate| candidate.hash), "a candidate is in it twice")?;
        distinct(sets.iter().flatten(), "an actor is in two sets")?;
        let known = |index: &u16| usize::from(*index) < candidates.len();
        let pairs = among.iter().all(|Among { one, other, .. }| known(one) && known(other) && one != other);
        if !pairs || !sets.iter().flatten().all(known) || sets.iter().any(Vec::is_empty) {
            return Err(Malformed::Inconsistent { what: "it names a candidate that is not in it" });
        }
        Ok(())
    }
}

impl Accept {
    fn check(&self) -> Result<(), Malformed> {
        let Self { take, give, stale, .. } = self;
        bounded(take, CANDIDATES_MAX, "taken actors")?;
        bounded(give, CANDIDATES_MAX, "given actors")?;
        bounded(stale, CANDIDATES_MAX, "stale actors")?;
        for given in give {
            bounded(&given.ties, EDGES_MAX, "edges of an actor")?;
        }
        let hashes = take.iter().chain(stale).copied().chain(give.iter().map(|given| given.hash));
        distinct(hashes, "an actor is in it twice")?;
        let after = give.iter().map(|given| usize::from(given.after));
        if !after.clone().is_sorted() || after.max().is_some_and(|last| last > take.len()) {
            return Err(Malformed::Inconsistent { what: "it says no order" });
        }
        Ok(())
    }
}

fn bounded<T>(list: &[T], max: usize, what: &'static str) -> Result<(), Malformed> {
    if list.len() <= max { Ok(()) } else { Err(Malformed::TooMany { what, max }) }
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>, what: &'static str) -> Result<(), Malformed> {
    let mut seen = BTreeSet::new();
    if items.into_iter().all(|item| seen.insert(item)) { Ok(()) } else { Err(Malformed::Inconsistent { what }) }
}

/// Actors that one side offers.
pub const CANDIDATES_MAX: usize = 512;
/// Sets that one side offers.
pub const SETS_MAX: usize = 32;
/// Edges that are told of an actor.
pub const EDGES_MAX: usize = 4;
