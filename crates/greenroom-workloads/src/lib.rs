//! The papers' benchmark programs, as ordinary users of the library: their actors, and the driver behind `greenroom bench`.
//!
//! A run has actors that work, a [`tally`](kinds::tally) actor that collects what they report, and a driver that starts
//! them and waits for the tally. The driver uses the node's own API where everything is in one process, and the HTTP door
//! where nodes are processes; the messages that are measured go from actor to actor in both.

mod arrivals;
pub mod cli;
mod cluster;
mod dice;
mod driver;
mod far_store;
mod floor;
mod geo;
mod goals;
mod heartbeat;
mod hosts;
pub mod kinds;
mod output;
mod plot;
mod presence;
mod reliable;
pub mod report;
mod store;

pub use far_store::FarStore;
pub use kinds::register;
