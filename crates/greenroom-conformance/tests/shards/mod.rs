//! Actors that go from one shard of their node to another: in the simulated world, and on real threads.

mod cycles;
mod ledger;
mod passages;
mod threads;
mod together;
