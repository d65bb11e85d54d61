//! The explorer: runs a test of actors under thousands of *schedules*, finds one that breaks it, makes that short, and tells it.
//!
//! What a cluster leaves open, the explorer chooses: which message begins its turn first, which answer comes first, which turn goes
//! on. All else is the library's own code.
//!
//! ```
//! use greenroom::prelude::*;
//! use greenroom_explore::Explore;
//!
//! #[derive(Default, Actor)]
//! struct Account { balance: i64 }
//!
//! #[actor]
//! impl Account {
//!     pub async fn deposit(&mut self, amount: i64) -> i64 { self.balance += amount; self.balance }
//!     pub async fn balance(&self) -> i64 { self.balance }
//! }
//!
//! // In a test function.
//! Explore::of(|builder| builder.register::<Account>()).schedules(200).run(|world| async move {
//!     for _ in 0..2 {
//!         let account = AccountRef::of(&world, "ada");
//!         world.client(async move { account.deposit(10).await.expect("nobody is lost here"); });
//!     }
//!     world.always("never in debt", |now| now.all::<Account>().all(|(_, account)| account.balance >= 0));
//!     world.finally(|world| async move {
//!         assert_eq!(AccountRef::of(&world, "ada").balance().await, Ok(20));
//!     });
//! });
//! ```
//!
//! What the test itself awaits is set-up, and not explored. Then the clients run beside each other.
//!
//! # What is explored
//!
//! One shard: each order of turns that messages between actors and clients can come in, and of the parts of turns between their
//! suspensions. Messages of one sender to one actor keep their order; nothing else is ordered. Timers and sleeps are over in the order in
//! which they are due, however slow messages are ([`Explore::timers`]); on Linux the standard library's clocks show that time, too, in turns
//! and clients. What may go wrong is chosen, too, where a test asks for it ([`Explore::faults`]): nodes are gone, messages are lost, deadlines
//! pass, idle actors end.
//!
//! # What is found
//!
//! - a property that does not hold: [`World::always`], [`World::eventually`], [`World::finally`];
//! - a client, or a turn, that panics, starts a thread or lets its own sleep (the last two on Linux);
//! - a deadlock: clients wait, and nothing can happen any more;
//! - a test that proves nothing: [`World::sometimes`] was never true.

mod coverage;
mod deviations;
mod driver;
mod explore;
mod failure;
mod hall;
mod judge;
mod now;
mod numbers;
mod quiet;
mod reach;
mod report;
mod run;
mod search;
mod shrink;
mod states;
mod strategy;
mod trace;
mod vigil;
mod watch;
mod whole;
mod world;

pub use crate::explore::{Explore, Explored};
pub use crate::failure::{Failure, Files};
pub use crate::judge::{Event, Monitor, Verdict, What};
pub use crate::now::Now;
pub use crate::strategy::Strategy;
pub use crate::whole::Whole;
pub use crate::world::World;
pub use greenroom_sim::Faults;

/// What most tests need.
pub mod prelude {
    pub use greenroom::Builder;
    pub use greenroom::prelude::*;
    pub use greenroom::rehearsal::explore;

    pub use crate::{Event, Explore, Faults, Monitor, Now, Strategy, Verdict, What, World};
}
