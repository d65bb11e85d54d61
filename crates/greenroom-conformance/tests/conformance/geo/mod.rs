//! Several clusters, one actor system: what holds over a wide area, with and without cuts.

mod adaptive;
mod faults;
mod homes;
mod pages;
mod pairs;
mod reloads;
mod remote;
mod removals;
mod single;
mod state_faults;
mod states;
mod storm;
mod upgrades;
mod wandering;
mod world;
