//! The exchange: pairs of nodes agree which actors move between them (ActOp §4.2).
//! Pure: no clock, no I/O, no randomness.
//!
//! One [`Exchange`] a node. It is in one exchange at a time: proposing, granting or moving, else idle. Every 2 to 3 s an idle
//! node visits up to 8 partners, one after the other, those first where its actors wish to be most:
//!
//! ```text
//! p → q  Offer     actors of p that would do better at q, and what balance lets go
//! q → p  Accept    which of them it takes, which of its own it gives        or  Busy
//! p → q  Confirm   both move what was chosen, in the order of choice; at the end both say Done
//! ```
//!
//! It is an adviser: what it decides late, twice or wrongly costs time and never safety, for each actor goes by the
//! directory's [moves](crate::directory), which leave one activation or none. What it keeps true:
//!
//! - no actor is promised to two nodes, and an exchange's moves stay between its two;
//! - a node is filled up to the mean and δ, a pair made to differ by δ, but for what was so before; on the way by 2·[`Config::credit`]
//!   more at most;
//! - in a graph that does not change each exchange lowers the flow between nodes, but for what balance moves;
//! - every lock ends, whoever dies and whatever is lost, and not before the other side's last order.
//!
//! Each rule has a switch in `Checks`, and a test that shows what happens without it.

mod balance;
mod books;
mod checks;
mod choice;
mod hand;
mod machine;
mod message;
mod pace;
mod partners;
mod side;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

#[doc(hidden)]
pub use self::checks::Checks;
pub use self::machine::Exchange;
pub use self::message::{
    Accept, Among, CANDIDATES_MAX, Candidate, EDGES_MAX, ExchangeId, Given, Malformed, Message, Offer, SETS_MAX, Side,
    Tie,
};
pub(crate) use self::side::{wishes, worth};
pub use self::survey::{Actor, Edge, Load, Measured, Roster, Set, Survey};
use crate::directory::Epoch;
use crate::node::NodeId;
use crate::time::Timestamp;

/// What happened to a node's machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Who may be exchanged with: active nodes with an optimiser that neither drain nor are apart. Nobody, if this node drains
    /// or its optimiser is off or paused.
    Partners {
        /// The version of the view that says so.
        view: u64,
        /// They, without this node.
        may: BTreeSet<NodeId>,
    },
    /// A node said this.
    Received {
        /// Which node.
        from: NodeId,
        /// What.
        message: Message,
    },
    /// An order, an [`Action::Move`] of this machine, has ended. Said once of each.
    Settled {
        /// Its exchange.
        x: ExchangeId,
        /// Its actor.
        hash: u64,
        /// How it ended.
        end: OrderEnd,
    },
    /// An actor has come by a move of this exchange, and is active here.
    Arrived {
        /// The exchange.
        x: ExchangeId,
        /// The actor.
        hash: u64,
    },
    /// The deadline came.
    Tick {
        /// Any 64 random bits.
        random: u64,
    },
}

/// How an order ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OrderEnd {
    /// The actor is no longer here, and has not come back.
    Moved,
    /// The actor left and was taken back.
    Back,
    /// The actor never left: its turn did not end in time, it may not move now, or another activation is there, or none.
    Withdrawn,
}

/// What must be done for a node's machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Send this. It may be lost.
    Send {
        /// To whom.
        to: NodeId,
        /// What.
        message: Message,
    },
    /// Move an actor of this node. How that ends is told by [`Event::Settled`].
    Move {
        /// The actor.
        hash: u64,
        /// The activation: another one stays where it is.
        epoch: Epoch,
        /// Where to.
        to: NodeId,
        /// An order that has not begun by then is withdrawn.
        until: Timestamp,
        /// The exchange, which travels along.
        x: ExchangeId,
    },
    /// What is known of this actor's messages with that node is wrong: forget that part.
    Clear {
        /// The actor, of this node.
        hash: u64,
        /// Its activation.
        epoch: Epoch,
        /// The node.
        toward: NodeId,
    },
    /// An exchange is over, for people and metrics.
    Ended {
        /// Which.
        x: ExchangeId,
        /// The other node.
        with: NodeId,
        /// Actors of this node that have moved.
        moved: u16,
        /// Actors that have come.
        arrived: u16,
        /// How it ended.
        how: Outcome,
    },
}

/// How an exchange ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Outcome {
    /// Both sides have done what they agreed, or as much of it as was in time.
    Done,
    /// The other node chose nothing.
    Nothing,
    /// The other node was in another exchange, or took part in none.
    Busy,
    /// The other node did not answer in time.
    Silent,
    /// The other node's own offer stood.
    Yielded,
    /// The lock ended before the other node said that it was through.
    Overdue,
    /// The other node left the partners.
    Gone,
}

/// How a machine behaves. The same on all nodes of a cluster: locks rest on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Time between two rounds of visits; 2 s by default.
    pub round: Duration,
    /// What is added to it at random; up to 1 s by default.
    pub jitter: Duration,
    /// Partners visited in a round; 8 by default.
    pub visits: usize,
    /// Time after which an offer is forgotten; 500 ms by default.
    pub answer_within: Duration,
    /// Time in which orders are given and begin; 2 s by default.
    pub send_for: Duration,
    /// What a lock lasts longer than what the other side may send; 100 ms by default.
    pub lock_slack: Duration,
    /// How long beyond its lock a node waits for what was promised; 1.5 s by default.
    pub wait_beyond: Duration,
    /// How many moves a node may be ahead of what it has seen arrive or settle; 32 by default.
    pub credit: usize,
    /// Actors that a node gives in a second, in the long run; 500 by default. A tenth of that may go at once.
    pub actors_per_s: u64,
    /// Bytes that it gives in a second, in the long run; 16 MiB by default.
    pub bytes_per_s: u64,
    /// Time after a change of the view in which there is no exchange; 10 s by default.
    pub quiet: Duration,
    /// For how long a fruitless partner is skipped; 2 s by default, twice as long with each time.
    pub skip_first: Duration,
    /// At most for so long; 64 s by default.
    pub skip_max: Duration,
    /// How far nodes may differ.
    pub tolerance: Tolerance,
    /// Which rules are in force.
    #[doc(hidden)]
    pub checks: Checks,
}

/// How far nodes may differ: δ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tolerance {
    /// In the share of cores that are busy, in millionths; 50,000 by default.
    pub share: u64,
    /// In activations, in hundredths of the mean; 25 by default.
    pub count_percent: u64,
    /// In activations, at least; 32 by default.
    pub count_min: u64,
    /// Balance itself empties no node by its share that has less of its cores busy, in millionths; 500,000 by default. By its
    /// activations none that is not 2δ above the mean.
    pub full_share: u64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { share: 50_000, count_percent: 25, count_min: 32, full_share: 500_000 }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            round: Duration::from_secs(2),
            jitter: Duration::from_secs(1),
            visits: 8,
            answer_within: Duration::from_millis(500),
            send_for: Duration::from_secs(2),
            lock_slack: Duration::from_millis(100),
            wait_beyond: Duration::from_millis(1_500),
            credit: 32,
            actors_per_s: 500,
            bytes_per_s: 16 << 20,
            quiet: Duration::from_secs(10),
            skip_first: Duration::from_secs(2),
            skip_max: Duration::from_secs(64),
            tolerance: Tolerance::default(),
            checks: Checks::default(),
        }
    }
}
