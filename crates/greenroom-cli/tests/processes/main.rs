//! Node processes that are killed, stopped and cut off from their store, under load.

mod counters;
#[cfg(feature = "postgres")]
mod deposed;
mod killed;
mod nodes;
#[cfg(feature = "postgres")]
mod postgres;
mod recovery;
