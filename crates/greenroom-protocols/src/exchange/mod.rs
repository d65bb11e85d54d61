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
//! Each rule has a switch in `Checks`, and a test that shows what happens without it. The bad traces of the whole optimiser, and the tests that have
//! them: `traces` and `loads` are in `exchange/tests`, `model` is `tests/models/exchange`, the others are in `flows/tests` or named in full.
//!
//! | | trace | tests |
//! |---|---|---|
//! | O1 | a proposer grants too: an actor is promised to two | `traces::o1`, `model::o1` |
//! | O2 | two that talk are scored alone, and pass each other | `traces::o2`, `model::o2`; between shards `gathering::tests` |
//! | O3 | what is given before Confirm follows who has gone | `traces::o3`, `model::o3` |
//! | O4 | an answer comes to an offer that was given up | `traces::o4`, `model::o4` |
//! | O5 | the partner dies behind Accept: all hang | `traces::o5` |
//! | O6 | three nodes fill an empty one at once | `traces::o6`, `model::o6` |
//! | O7 | a goes to where b was | `traces::o7` (two), `model::o7` |
//! | O8 | mutual offers: both wait | `traces::o8` |
//! | O9 | one side is slow, the other gets ahead | `traces::o9`, `model::o9` |
//! | O10 | the partner dies, the lock stays | `traces::o10`, `model::o10` |
//! | O11 | a lock ends before the other side's last order | `traces::o11`, `model::o11` |
//! | O12 | an order by name moves a later activation | `traces::o12`, `model::o12` |
//! | O13 | an offer comes twice and is granted twice | `traces::o13`, `model::o13` |
//! | O14 | an order waits for a long turn | `traces::o14`, `model::o14` |
//! | O15 | one exchange a minute: games are over before two nodes meet | `presence::o15` |
//! | O16 | the last game holds the player for the next | `the_last_game_does_not_hold_a_player_for_the_next_o16` |
//! | O17 | the stride meets the game's rhythm | `a_stride_of_eight_samples_all_players_of_a_game_of_eight_o17` |
//! | O18 | two equal homes: to and fro | `an_actor_with_two_equal_homes_stays_ever_longer_and_without_judgement_goes_to_and_fro_o18` |
//! | O19 | balance empties what locality has filled | `loads::o19`; between shards `gathering::tests` |
//! | O20 | everybody's best place is full | `loads::o20` (two), `whose_best_place_is_full_is_told_of_the_next_o20` |
//! | O21 | balance tears games | `loads::o21` |
//! | O22 | a giver judges by a load from before | `loads::o22` (two); between shards `gathering::tests` |
//! | O23 | the sketch keeps one heavy edge, not a hundred light ones | `a_hundred_local_edges_of_one_outweigh_a_remote_one_of_ten_o23` |
//! | O24 | an idle actor begins at random again | `exchanges::an_actor_that_was_idle_goes_on_where_it_had_moved` of the conformance suite |
//! | O25 | one coarse sample is all that an actor remembers | `coarse_samples_make_nobody_wish_away_from_home_and_without_a_grain_one_alone_does_o25` |
//! | O26 | two exchanges by one survey: partners pass each other | `choice::o26`, `exchanges::an_actor_that_asks_to_stay_stays_so_long_and_says_why_it_moved_then` of the conformance suite |
//! | O27 | a node joins a cluster that has cores to spare: nobody is full, and it stays empty | `loads::o27` |
//! | O28 | a node is filled by several exchanges: after the first it differs too little for the next | `loads::o28` |
//! | O29 | everybody is busy, or has more to give than one exchange takes: each waits for its next round | `presence::o29` |
//! | O30 | an actor that has gone never comes, as it is elsewhere by then: both nodes wait for it, and for nothing else | `traces::o30` |

mod balance;
mod books;
mod checks;
mod choice;
mod hand;
mod machine;
mod message;
mod newcomers;
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
    /// The same if the first has left something to be done: a partner was busy, or there was more than one exchange takes; 1 s by default.
    pub again: Duration,
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
    /// Time after a change of the view in which there is no exchange; 5 s by default.
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
    /// Balance itself empties no node by its share that has less of its cores busy, in millionths; 500,000 by default. By
    /// activations it acts where two differ by 1.5 δ.
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
            again: Duration::from_secs(1),
            jitter: Duration::from_secs(1),
            visits: 8,
            answer_within: Duration::from_millis(500),
            send_for: Duration::from_secs(2),
            lock_slack: Duration::from_millis(100),
            wait_beyond: Duration::from_millis(1_500),
            credit: 32,
            actors_per_s: 500,
            bytes_per_s: 16 << 20,
            quiet: Duration::from_secs(5),
            skip_first: Duration::from_secs(2),
            skip_max: Duration::from_secs(64),
            tolerance: Tolerance::default(),
            checks: Checks::default(),
        }
    }
}
