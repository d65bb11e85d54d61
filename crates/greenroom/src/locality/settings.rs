//! What a node is told of its optimiser.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the optimiser works: the table `[optimiser]` of a node's configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Optimiser {
    /// What it does.
    pub mode: OptimiserMode,
}

/// What the optimiser does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OptimiserMode {
    /// Nothing: no message is sampled.
    #[default]
    Off,
    /// It finds out who talks with whom, and says which actors would do better elsewhere.
    Advise,
}

impl FromStr for OptimiserMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "advise" => Ok(Self::Advise),
            _ => Err("write `off` or `advise`".to_owned()),
        }
    }
}
