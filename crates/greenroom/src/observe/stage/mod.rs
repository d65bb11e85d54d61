//! Who is on a cluster's stage: how many actors of which kinds each thread has, which of them are hot, who talks with whom, and who has
//! moved.
//!
//! All of it is read from what shards count and sample anyway; they are asked for it, each in one go, and only while somebody looks. Nodes say
//! hashes with their edges, as they know no more of the other end; who is to be told and was named by nobody is asked for in a second round.

mod cast;
pub(crate) mod cluster;
pub(crate) mod seats;
mod told;
mod word;

pub(crate) use self::word::{Called, StageWord, Talk};

/// Actors that are told at most, and those that are told if nothing is said.
pub(crate) const TOP_MAX: usize = 2000;
pub(crate) const TOP_DEFAULT: usize = 500;
/// Edges that are told at most.
const EDGES_MAX: usize = 4000;
/// Pairs of kinds that are told at most.
const PAIRS_MAX: usize = 256;
/// Moves that are told one by one.
const MOVES_MAX: usize = 50;
/// So many minutes of moves are counted.
const MINUTES: usize = 60;
