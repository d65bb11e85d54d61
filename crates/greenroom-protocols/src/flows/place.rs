//! Where the other end of a message is.

use std::fmt;

/// Where the other end of a message is, as one shard sees it: that shard itself, another shard of its node, somebody on the node who is no
/// actor, or another node or cluster by the number that the node gives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Place(u16);

/// What lies between an actor and a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Two shards of one node.
    Shards,
    /// Two nodes, or clusters.
    Nodes,
}

impl Place {
    /// The shard that counts.
    pub const NEAR: Self = Self(0);

    /// Who is no actor and on this node: its door, or the program around it. To these one shard is as near as another.
    pub const OUTSIDE: Self = Self(u16::MAX);

    /// Another shard of this node.
    ///
    /// # Panics
    /// If `index` is not below [`PLACES_MAX`].
    pub const fn shard(index: u16) -> Self {
        assert!(index < PLACES_MAX, "a node has no so many shards");
        Self(OF_A_SHARD | index)
    }

    /// Another node or cluster, by its number on this node. Numbers may be used again once [`Flows::lost`](super::Flows::lost)
    /// was told of the place.
    ///
    /// # Panics
    /// If `number` is not below [`PLACES_MAX`].
    pub const fn away(number: u16) -> Self {
        assert!(number < PLACES_MAX, "a node knows no so many places");
        Self(number + 1)
    }

    /// Which moves lead there; `None` for [`Place::NEAR`] and [`Place::OUTSIDE`].
    pub const fn level(self) -> Option<Level> {
        match self.0 {
            0 | u16::MAX => None,
            place if place & OF_A_SHARD == 0 => Some(Level::Nodes),
            _ => Some(Level::Shards),
        }
    }

    /// The index or number that it was made of; 0 for [`Place::NEAR`] and [`Place::OUTSIDE`].
    pub const fn number(self) -> u16 {
        match self.level() {
            None => 0,
            Some(Level::Shards) => self.0 & !OF_A_SHARD,
            Some(Level::Nodes) => self.0 - 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level() {
            None if *self == Self::OUTSIDE => f.write_str("outside"),
            None => f.write_str("near"),
            Some(Level::Shards) => write!(f, "shard {}", self.number()),
            Some(Level::Nodes) => write!(f, "place {}", self.number()),
        }
    }
}

/// Shards, and other nodes and clusters, that there may be.
pub const PLACES_MAX: u16 = OF_A_SHARD - 1;
const OF_A_SHARD: u16 = 1 << 15;
