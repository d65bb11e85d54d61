//! How much something matters to who looks after a node.

use serde::{Deserialize, Serialize};

/// How much an event or a finding matters: a later one matters more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Level {
    /// It is good to know.
    Hint,
    /// Something is well again, or better than before.
    Good,
    /// Something will be wrong if nobody does anything, or is wrong for few.
    Warn,
    /// Something is wrong.
    Bad,
}

impl Level {
    const ALL: [Self; 4] = [Self::Hint, Self::Good, Self::Warn, Self::Bad];

    /// Its name in JSON and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    /// The level of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}
