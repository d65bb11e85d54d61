//! The options of the geo workloads.

use std::time::Duration;

use super::duration;

/// Two clusters, how far things are from each other, and what is done there.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Geo workloads")]
pub struct GeoOptions {
    /// A round trip between the clusters.
    #[arg(long, value_name = "TIME", default_value = "145ms", value_parser = duration)]
    pub wan_rtt: Duration,
    /// A round trip from the near cluster to the store; the other one is as far from it as from the near cluster.
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration)]
    pub store_rtt: Duration,
    /// How its state is changed (geo-throughput, order).
    #[arg(long, default_value = "versioned")]
    pub api: Api,
    /// What operations wait for (geo-throughput, order).
    #[arg(long, default_value = "linearizable")]
    pub ops: Ops,
    /// How many instances it has (geo-throughput, order).
    #[arg(long, default_value = "single")]
    pub instances: Instances,
    /// How far a single instance is from the store (geo-throughput).
    #[arg(long, default_value = "far")]
    pub at: At,
    /// Clusters with robots: with 1, only the one with the instance has any (geo-throughput).
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub clusters: u8,
    /// The part of operations that change the state (geo-throughput).
    #[arg(long, default_value_t = 0.1)]
    pub updates: f64,
    /// Items of the shop (order).
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub items: u64,
    /// Pieces of each item (order).
    #[arg(long, default_value_t = 20)]
    pub stock: u64,
    /// Time between a robot's steps (order).
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    pub think: Duration,
    /// Kills the cluster that is far from the store in the middle of the run (order).
    #[arg(long)]
    pub kill: bool,
    /// Robots, all clusters together, one run after the other: the best of them counts (geo-throughput, order).
    #[arg(long, value_delimiter = ',')]
    pub robots: Vec<u32>,
}

/// How a state is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Api {
    /// The actor's fields, saved with each change where they are kept.
    Basic,
    /// By updates.
    Versioned,
}

/// What operations wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Ops {
    /// All of them for the latest state of all.
    Linearizable,
    /// None of them for anything (geo-throughput).
    Local,
    /// Those that must not be wrong for the latest state, the others for nothing (order).
    Mixed,
}

/// How many instances of an actor there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Instances {
    /// One in all.
    Single,
    /// One in each cluster.
    PerCluster,
}

/// How far a single instance is from the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum At {
    /// In the cluster near it.
    Close,
    /// In the other one.
    Far,
}
