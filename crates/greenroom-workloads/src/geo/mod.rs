//! The geo workloads: two clusters of node processes, far from each other, and a store that is near one of them.

mod latency;
mod order;
mod sites;
mod throughput;

use crate::cli::Workload;
use crate::driver::{Outcome, Plan};

pub(crate) use self::latency::table;

/// Runs the workload of `plan`.
///
/// # Errors
/// What kept it from its end.
pub(crate) async fn run(plan: &Plan) -> Result<Outcome, String> {
    match plan.workload {
        Workload::GeoLatency => latency::run(plan).await,
        Workload::GeoThroughput => throughput::run(plan).await,
        Workload::Order => order::run(plan).await,
        other => Err(format!("{} is none of the geo workloads", other.name())),
    }
}
