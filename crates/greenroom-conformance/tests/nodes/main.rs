//! Promises that are tested on single nodes, and on a few of them: actors, their states, reliable actors, moves between shards,
//! security, and the examples.
//!
//! One program has these tests, a folder for each subject, because each program is linked for itself.
//! `cargo test -p greenroom-conformance --test nodes reliable::` runs those of one subject.

#[path = "../actors/mod.rs"]
mod actors;
mod examples;
#[path = "../reliable/mod.rs"]
mod reliable;
#[path = "../security/mod.rs"]
mod security;
#[path = "../shards/mod.rs"]
mod shards;
#[path = "../state/mod.rs"]
mod state;
