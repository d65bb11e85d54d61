//! Node processes that are killed, stopped and cut off from their store, under load.

mod adaptive;
mod bank;
mod counters;
#[cfg(feature = "postgres")]
mod deposed;
mod edges;
mod full_disk;
mod geo;
mod healed;
mod killed;
mod looking;
mod moving;
mod namespaces;
mod nodes;
mod parked;
mod per_cluster;
#[cfg(feature = "postgres")]
mod postgres;
mod recovery;
mod reliable;
mod reminders;
mod removals;
mod rolling;
mod score_boards;
mod storm;
mod stuck;
mod two_clusters;

use std::sync::{Mutex, PoisonError};

/// Keeps the other tests of this program away: several clusters on one slow disk lose their leases.
fn alone() -> impl Sized {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
