//! Node processes that are killed, stopped and cut off from their store, under load.

mod counters;
mod killed;
mod nodes;
mod recovery;
