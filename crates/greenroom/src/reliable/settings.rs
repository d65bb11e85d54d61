//! What a node is told of its reliable actors.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_protocols::delivery::Config;
use serde::{Deserialize, Serialize};

use crate::node::config::seconds;

/// Where reliable actors are kept: the table `[reliable]` of a node's configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Reliability {
    /// The journal's URL: `sqlite:PATH`, `postgres://..`, `redis://..`, `etcd://..`, `kafka://..`, or `memory:`, which survives
    /// nothing. The same journal for all nodes of the cluster. Needed by nodes that host reliable kinds.
    pub journal: String,
    /// Number of partitions, the same on all nodes and for ever; 64.
    pub partitions: u32,
    /// Where [outputs](crate::Cx::output) go, by name: the URL of a hook (`https://..`) or of a topic
    /// (`kafka://host/topic`). The same on all nodes.
    pub outlets: BTreeMap<String, String>,
    /// Time for which the answers to calls with idempotency keys are kept, in seconds in files: a repeat gets the recorded
    /// answer for so long, at least; 24 h. The same on all nodes.
    #[serde(with = "seconds")]
    pub answers_keep: Duration,
    /// Bytes of such answers that each partition keeps, about; 512 MiB. When they are reached, calls with new keys are refused
    /// until older answers have had their time: none is forgotten before. So are those of a principal, before that, whose
    /// answers are more than what is left for all others: one alone has half of it, and all calls without a principal are one's.
    /// Each answer takes some 20 bytes of its owner's memory, and 60 where each is another principal's.
    pub answers_bytes_max: u64,
    /// Processes, nodes or hosts, that may die during the turn of a message before it is parked; 3, and at least 2. The same on all
    /// nodes.
    pub deaths_max: u32,
    /// Whether each turn is run a second time before its commit, and fails if it comes to something else with its volatile
    /// fields reset; off. For tests: see [`Node::interference`](crate::Node::interference).
    pub rerun: bool,
}

impl Default for Reliability {
    fn default() -> Self {
        let Config { answers_keep, answers_bytes_max, deaths_max, .. } = Config::default();
        let (journal, outlets) = (String::new(), BTreeMap::new());
        Self { journal, partitions: 64, outlets, answers_keep, answers_bytes_max, deaths_max, rerun: false }
    }
}

impl Reliability {
    /// What cannot be, with the remedy.
    ///
    /// # Errors
    /// The setting that is out of its bounds.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { partitions, answers_keep, answers_bytes_max, deaths_max, .. } = self;
        if !(1..=PARTITIONS_MAX).contains(partitions) {
            return Err(format!("`partitions = {partitions}` is not in 1..={PARTITIONS_MAX}; 64 suits most clusters"));
        }
        if !(KEEP_MIN..=KEEP_MAX).contains(answers_keep) {
            let seconds = answers_keep.as_secs_f64();
            let (least, most) = (KEEP_MIN.as_secs(), KEEP_MAX.as_secs());
            return Err(format!(
                "`answers_keep = {seconds}` is not in {least}..={most} seconds; a day suits most callers"
            ));
        }
        if *answers_bytes_max < ANSWERS_BYTES_MIN {
            return Err(format!(
                "`answers_bytes_max = {answers_bytes_max}` is less than {ANSWERS_BYTES_MIN}, so that hardly any call with an \
                 idempotency key could be answered"
            ));
        }
        if !(DEATHS_MIN..=DEATHS_MAX).contains(deaths_max) {
            return Err(format!(
                "`deaths_max = {deaths_max}` is not in {DEATHS_MIN}..={DEATHS_MAX}; 3 suits most clusters"
            ));
        }
        Ok(())
    }
}

/// Most partitions of a cluster: each costs its owner a fence and a few tables.
const PARTITIONS_MAX: u32 = 4096;
/// Shorter than this, a caller that has lost its answer would hardly have time to ask again.
const KEEP_MIN: Duration = Duration::from_secs(1);
/// Ten years.
const KEEP_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// The first death does not tell which turn has caused it.
const DEATHS_MIN: u32 = 2;
/// More deaths than any operator wants to see.
const DEATHS_MAX: u32 = 1000;
/// A few answers.
const ANSWERS_BYTES_MIN: u64 = 4096;
