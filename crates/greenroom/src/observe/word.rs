//! What a node says of itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::findings::{Finding, Findings};
use super::history::Point;
use super::{Observed, memory};
use crate::here::Here;
use crate::here::built_in::is_built_in;

/// A node at a glance. Members that are missing, or of a later version, are passed over.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NodeWord {
    pub(crate) version: String,
    /// Seconds since it began.
    pub(crate) uptime: f64,
    /// Activations of the program's own kinds.
    pub(crate) kinds: BTreeMap<String, u64>,
    pub(crate) shards: Vec<ShardWord>,
    /// Bytes of memory: what it has, and what it may have.
    pub(crate) resident: Option<u64>,
    pub(crate) limit: Option<u64>,
    /// Seconds for which it may still act, unless it hears from the table; `None` of one without a lease.
    pub(crate) lease_left: Option<f64>,
    /// What it finds wrong.
    pub(crate) findings: Vec<Finding>,
    /// How many seconds a point of the past stands for.
    pub(crate) step: u32,
    /// The newest last.
    pub(crate) past: Vec<Option<Point>>,
}

/// A shard at a glance.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ShardWord {
    /// How busy it was in the last second: 1 is always.
    pub(crate) busy: f64,
    pub(crate) activations: u64,
    /// What others have handed over and it has not taken up.
    pub(crate) inbox: u64,
    /// Of a thousand calls from outside, how many it turns away.
    pub(crate) shed: u64,
}

impl NodeWord {
    /// What `node` says, with the last `seconds` of its past.
    pub(crate) fn of(node: &Here, seconds: u32) -> Self {
        let observed = node.part::<Observed>();
        let now = node.world().now();
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        for (kind, active) in node.gauges().iter().flat_map(|gauges| gauges.meters().active()) {
            if active > 0 && !is_built_in(kind.name()) {
                *kinds.entry(kind.name().to_owned()).or_default() += active;
            }
        }
        let busy = observed.busy().into_iter().chain(std::iter::repeat(0.0));
        let shards = node.gauges().iter().zip(node.shards()).zip(busy).map(|((gauges, port), busy)| ShardWord {
            busy,
            activations: gauges.activations(),
            inbox: port.waiting() as u64,
            shed: u64::from(gauges.shed().share()),
        });
        let is_real = node.world().thread_time().is_some();
        let (step, past) = observed.last(seconds);
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: observed.uptime(now).as_secs_f64(),
            kinds,
            shards: shards.collect(),
            resident: is_real.then(memory::resident).flatten(),
            limit: is_real.then(memory::limit).flatten(),
            lease_left: node.has_lease().then(|| node.fence_left().as_secs_f64()),
            findings: node.part::<Findings>().last().to_vec(),
            step,
            past,
        }
    }
}
