//! What a node is told of its optimiser.

use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// How the optimiser works: the table `[optimiser]` of a node's configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table: write `[optimiser]` and below it `mode = \"off\"` or so")]
#[non_exhaustive]
pub struct Optimiser {
    /// What it does: it is on by default.
    pub mode: OptimiserMode,
    /// Actors that the node gives to others in a second, in the long run; 500 by default, at least one.
    #[serde(deserialize_with = "at_least_one")]
    pub moves_per_s: u32,
    /// Whether it moves actors between the shards of the node, too, where its mode is [`On`](OptimiserMode::On); true by default.
    pub shards: bool,
}

impl Default for Optimiser {
    fn default() -> Self {
        Self { mode: OptimiserMode::default(), moves_per_s: 500, shards: true }
    }
}

/// Refuses a pace that is none: who wants no moves has a mode for it.
fn at_least_one<'de, D: Deserializer<'de>>(text: D) -> Result<u32, D::Error> {
    match u32::deserialize(text)? {
        0 => Err(D::Error::custom("write a number from 1; with `mode = \"advise\"` nobody is moved")),
        moves => Ok(moves),
    }
}

/// What the optimiser does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OptimiserMode {
    /// Nothing: no message is sampled.
    Off,
    /// It finds out who talks with whom, and says which actors would do better elsewhere.
    Advise,
    /// It moves them there, too.
    #[default]
    On,
}

impl FromStr for OptimiserMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "advise" => Ok(Self::Advise),
            "on" => Ok(Self::On),
            _ => Err("write `off`, `advise` or `on`".to_owned()),
        }
    }
}

#[cfg(feature = "flags")]
#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration file, as far as it is about this.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct File {
        optimiser: Optimiser,
    }

    #[test]
    fn a_pace_of_none_and_a_mode_without_its_table_are_refused_with_what_to_write() {
        let read = |text: &str| toml::from_str::<File>(text).map(|file| file.optimiser);
        let said = |text: &str| read(text).expect_err("it is refused").to_string();
        assert!(said("[optimiser]\nmoves_per_s = 0").contains("`mode = \"advise\"`"));
        assert!(said("optimiser = \"off\"").contains("write `[optimiser]`"), "{}", said("optimiser = \"off\""));
        assert_eq!(read("[optimiser]\nmoves_per_s = 1").map(|read| read.moves_per_s), Ok(1));
        assert_eq!(read("").map(|read| read.moves_per_s), Ok(500));
    }
}
