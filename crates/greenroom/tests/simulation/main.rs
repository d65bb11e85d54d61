//! The library under the simulated world: whole clusters in one thread, with faults, decided by a seed.

mod actors;
mod cluster;
mod determinism;
mod fencing;
mod persistence;
mod placement;
mod recovery;
