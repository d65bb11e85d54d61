//! Node processes that are killed, stopped and cut off from their store, under load.

mod counters;
#[cfg(any(feature = "postgres", feature = "stores"))]
mod deposed;
mod killed;
mod nodes;
#[cfg(any(feature = "postgres", feature = "stores"))]
mod postgres;
mod recovery;
