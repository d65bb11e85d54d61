//! What a node is told of its optimiser.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the optimiser works: the table `[optimiser]` of a node's configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Optimiser {
    /// What it does: it is on by default.
    pub mode: OptimiserMode,
    /// Actors that the node gives to others in a second, in the long run; 500 by default, at least one.
    pub moves_per_s: u32,
    /// Whether it moves actors between the shards of the node, too, where its mode is [`On`](OptimiserMode::On); true by default.
    pub shards: bool,
}

impl Default for Optimiser {
    fn default() -> Self {
        Self { mode: OptimiserMode::default(), moves_per_s: 500, shards: true }
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
