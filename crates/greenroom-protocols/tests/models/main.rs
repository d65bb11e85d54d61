//! Models: each protocol that has one, checked exhaustively on small instances, and shown to break without its checks.
//!
//! One program has them all, because each program is linked for itself. `cargo test -p greenroom-protocols --test models
//! membership::` runs one of them.

mod answers;
mod bcas;
mod cluster_list;
mod courses;
mod deaths;
mod delivery;
#[path = "../delivery_world/mod.rs"]
mod delivery_world;
mod directory;
mod exchange;
mod gsi;
mod host;
mod host_reminders;
mod membership;
mod passage;
mod reminders;
mod vlb;

/// Allocates states, which a search makes and drops by the million, faster than the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
