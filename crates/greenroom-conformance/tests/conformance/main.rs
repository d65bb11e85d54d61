//! What the library promises, one named claim a test, under the simulated world: whole clusters in one thread, with faults,
//! decided by a seed. `README.md` lists the claims by area, those of other test programs among them.
//!
//! An area is a file or a folder. Its tests run their scenarios by [`scenario::calm`], [`scenario::rough`] or
//! `greenroom_sim::seeds`, over a [`cluster::Cluster`].

mod blocking;
mod calls;
mod cancellation;
mod chains;
mod chaos;
mod cluster;
mod context;
mod debugging;
mod determinism;
mod exchanges;
mod families;
mod fencing;
mod finding_states;
mod geo;
mod guarded;
mod hosts;
mod interceptors;
mod keeping;
mod lifecycle;
mod locality;
mod locating;
mod looking;
mod membership;
mod meters;
mod observing;
mod operations;
mod overload;
mod pairs;
mod partitions;
mod persistence;
mod pids;
mod placement;
mod recovery;
mod registers;
mod reliable;
mod scenario;
mod security;
mod stage;
mod state_versions;
mod storms;
mod streams;
mod time;
mod topics;
mod turns;
mod versioned;
mod versions;
