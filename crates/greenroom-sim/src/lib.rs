//! The simulated world: a cluster of unchanged nodes in one thread, under virtual time, decided by a seed.
//!
//! Each [`SimNode`] is a [`World`](greenroom_world::World): the library, and user code on tokio's clock, runs in it as it
//! does on real machines. The scenario orders faults ([`Sim::crash`], [`Sim::partition`], ..) or leaves that to a
//! nemesis; a failing run is replayed from its seed.
//!
//! ```
//! use std::time::Duration;
//! use greenroom_sim::{Faults, Sim};
//! use greenroom_world::World;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let heard = Sim::builder().seed(7).faults(Faults::none()).run(|sim| async move {
//!     let (a, b) = (sim.node("a"), sim.node("b"));
//!     let mut door = b.listen("b:7000").await.unwrap();
//!     b.spawn_local("echo", async move {
//!         let (mut stream, _from) = door.accept().await.unwrap();
//!         stream.write_all(b"hello, whoever you are").await.unwrap();
//!     });
//!     let mut heard = String::new();
//!     a.connect("b:7000").await.unwrap().read_to_string(&mut heard).await.unwrap();
//!     assert!(sim.now() < Duration::from_secs(1), "virtual time, and little of it");
//!     heard
//! });
//! assert_eq!(heard, "hello, whoever you are");
//! ```
//!
//! # What the seed does not decide
//!
//! Tasks that user code starts with `tokio::spawn` run, under virtual time, but belong to no node: a crash or pause does
//! not stop them. `tokio::select!` without `biased;` and iteration over `HashMap` draw on randomness of their own: two
//! runs of a seed may differ by them. Virtual time moves in steps of tokio's timer, a millisecond.

mod builder;
mod clock;
mod connection;
mod crashes;
mod exclusive;
mod executor;
mod faults;
mod frame;
pub mod history;
mod incarnation;
mod listener;
mod nemesis;
mod node;
mod random;
mod seeds;
mod shared;
mod sim;
mod stepped;
mod store;
mod stream;
mod trace;

pub use builder::Builder;
pub use crashes::Edge;
pub use exclusive::{Entered, Exclusive};
pub use faults::{Faults, StoreFaults};
pub use frame::{Classify, FrameClass, Narrate, Narrator, Sent, Told};
pub use nemesis::{Fault, Nemesis};
pub use node::SimNode;
pub use random::Random;
pub use seeds::{Outcome, Seeds, Violation, expect_violation, seeds, test_name};
pub use sim::Sim;
pub use stepped::Stepped;
pub use store::SimStore;
pub use trace::Log;
