//! Tests of actors: a whole cluster in one test, under virtual time, with faults, decided by a seed.
//!
//! ```
//! use greenroom::prelude::*;
//! use greenroom_test::Cluster;
//!
//! #[derive(Default, Actor)]
//! struct Counter { count: u64 }
//!
//! #[actor]
//! impl Counter {
//!     pub async fn add(&mut self, more: u64) -> u64 { self.count += more; self.count }
//! }
//!
//! // In a test function.
//! Cluster::of(3, |builder| builder.register::<Counter>()).seeds(20, |cluster| async move {
//!     let (a, b) = (cluster.node("a"), cluster.node("b"));
//!     assert_eq!(CounterRef::of(&a, "visits").add(1).await, Ok(1));
//!     assert_eq!(CounterRef::of(&b, "visits").add(1).await, Ok(2), "it is one actor, whoever calls");
//! });
//! ```
//!
//! The nodes `a`, `b`, `c`, .. know each other when a scenario begins. Their membership table, their states and the journal of
//! their reliable actors are stores of the simulated world: they outlive all crashes. What chance decides is decided by the
//! seed, and a seed that fails prints what failed, the last lines of its trace with the names of messages and turns, and the
//! command that replays it.
//!
//! A scenario kills nodes ([`Cluster::kill`]), cuts them off ([`Cluster::cut`]), has them die at a chosen moment
//! ([`Cluster::crash_at`]), or lets chance do so ([`Cluster::nemesis`]). The guide's page "Testing" goes through it.
//!
//! # What the seed does not decide
//!
//! See [`greenroom_sim`]. There is no HTTP door in the simulated world: call actors by their references.

mod cluster;
mod faults;
mod moment;
mod narrator;
mod setup;
mod stores;
mod turns;

pub use greenroom_sim::{
    Entered, Exclusive, Fault, Faults, Nemesis, Outcome, Random, Seeds, Sim, SimStore, StoreFaults, Violation, history,
};

pub use crate::cluster::Cluster;
pub use crate::moment::Moment;
pub use crate::setup::{Setup, simulation};
pub use crate::stores::Stores;
