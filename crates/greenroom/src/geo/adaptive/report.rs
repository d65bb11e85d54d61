//! What is said of how many instances an adaptive actor has.

use serde::{Deserialize, Serialize};

/// How many instances an adaptive actor has, as a node knows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Adaptive {
    /// `single` or `per_cluster`.
    pub instances: String,
    /// Where the one instance is to be; `None` for where it is called first, and if there are several.
    pub home: Option<String>,
    /// How often it has switched.
    pub epoch: u64,
    /// Why it is so: what was counted by the cluster of the callers, and what that costs either way.
    pub why: String,
    /// When that was decided, in seconds since 1970 by the wall clock of who has; `None` if it has never switched.
    pub at_unix_seconds: Option<u64>,
    /// What would switch it.
    pub back: String,
    /// The cluster that decides.
    pub decider: String,
}
