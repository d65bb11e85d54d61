//! Reliable actors: a turn commits its state and its messages in one atomic write, and only then do they leave; every
//! message is processed exactly once, whatever crashes (RSM).
//!
//! The actors of all kinds marked `#[actor(reliable)]` hash into the cluster's partitions. A partition is an actor of a
//! built-in kind (`partition.rs`), found, placed and kept single like all others; what makes it safe is its fence in the
//! journal. Its driver (`driver.rs`, `owned.rs`) is the thin loop around the pure machine of `greenroom-protocols::delivery`: it
//! reads and writes the ledger (`errands.rs`), and runs the turns on activations of its own shard (`cast.rs`), which no
//! directory knows (`machine.rs`: as state machines; `hosted.rs`: those whose turns run in hosts). What a turn sends goes into its `Takings`
//! instead of away. `entrance.rs` is the way in: whoever calls a reliable actor calls its partition. `outputs.rs` is the way out of the
//! cluster. In tests, `again` runs each turn twice. Where actors are explored, `company.rs` takes the place of partitions: it commits to memory.

pub(crate) mod admin;
mod again;
mod answers;
mod births;
mod callers;
mod cast;
mod committed;
#[cfg(feature = "rehearsal")]
mod company;
mod counts;
mod driver;
mod entrance;
mod errands;
mod hall;
mod homes;
#[cfg(feature = "http")]
mod hook;
pub(crate) mod hosted;
mod kept;
mod machine;
mod name;
mod outputs;
mod owned;
mod partition;
mod parts;
pub(crate) mod settings;
mod start;
mod suspects;
mod takings;
mod timers;
mod waiting;
mod wishes;

pub use greenroom_reliable::fields::{Map, Queue, Register, Set};

pub use self::committed::{Anything, Awaited};
pub use self::kept::{Kept, collect, kept, load};
pub use self::machine::{defer, ignore, is_known, state, unhandled};
pub(crate) use self::outputs::{Outlets, check_outlets};
pub(crate) use self::partition::Partitions;
pub use self::settings::Reliability;
pub(crate) use self::start::open;
