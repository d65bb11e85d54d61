//! Several clusters, one actor system: what holds over a wide area, with and without cuts.

mod faults;
mod single;
mod world;
