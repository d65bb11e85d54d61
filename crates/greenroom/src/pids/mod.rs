//! Spawned actors: created, stopped, watched and supervised by other actors, and addressed by a [`Pid`].
//!
//! A pid is an actor's name like any other, a kind and a key, but its key says where the actor is (`key.rs`); so messages,
//! chains and replies know nothing of them, and only who would ask the directory reads the key instead (`way.rs`). What
//! a shard knows of its spawned actors is in `kin.rs`. What shards and nodes tell each other (stop, watch, spawn) are calls
//! of each shard's keeper, an actor itself (`keeper.rs`).

pub(crate) mod dead_letters;
pub(crate) mod ended;
mod keeper;
pub(crate) mod key;
mod kill;
mod kin;
mod listing;
mod pid;
mod spawn;
mod supervise;
mod watch;
mod way;

pub use self::dead_letters::{DeadLetter, DeadLetters};
pub use self::ended::Ended;
pub(crate) use self::keeper::KeeperInterface;
pub use self::listing::Spawned;
pub(crate) use self::listing::list;
pub use self::pid::Pid;
pub use self::spawn::Spawnable;
pub(crate) use self::spawn::Spawners;
