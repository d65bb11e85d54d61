//! The command line of `greenroom bench`.

use std::path::PathBuf;
use std::time::Duration;

use greenroom::optimiser::OptimiserMode;

use super::{GeoOptions, HeartbeatOptions, HostOptions, PresenceOptions};
use crate::floor::Peer;
use crate::kinds::Style;

/// Runs one of the papers' workloads and reports its figures.
#[derive(Clone, Debug, clap::Args)]
pub struct Bench {
    /// The workload.
    pub workload: Workload,
    /// Where actors live; `virtual` when there are several nodes, else `local`.
    #[arg(long)]
    pub mode: Option<Mode>,
    /// How actors talk.
    #[arg(long, default_value = "call")]
    pub style: Style,
    /// Pairs of actors (ping-pong, reliable-latency, reliable-throughput), callers (reliable-calls, reliable-create), or
    /// connections (door).
    #[arg(long, default_value_t = 64)]
    pub pairs: u32,
    /// Messages that each pair has in flight (ping-pong with `--style send`).
    #[arg(long, default_value_t = 1)]
    pub window: u32,
    /// Bytes that each message carries (ping-pong, big, tell, reliable-latency, reliable-throughput).
    #[arg(long, default_value_t = 0)]
    pub payload: usize,
    /// Messages that each actor sends to each of its partners; 7500 in ping-pong, 5000 in big, 10000 in tell. In geo-latency,
    /// accesses of each cell; 50.
    #[arg(long)]
    pub rounds: Option<u64>,
    /// Node processes; 2 in ping-pong, 3 in sort and big, 4 in presence, 10 in presence-sim, 1 in the others. In the geo workloads, those of each cluster.
    #[arg(long)]
    pub nodes: Option<u32>,
    /// Numbers to sort (sort).
    #[arg(long, default_value_t = 8000)]
    pub size: u32,
    /// Actors; 24 in big, 1000000 in idle, 1000 in tell and reliable-calls, 10000 in heartbeat. In pool-server, resources; 10000.
    #[arg(long)]
    pub actors: Option<u32>,
    /// Senders (tell).
    #[arg(long, default_value_t = 2)]
    pub senders: u32,
    /// Time to run, such as `10s` or `500ms`: wins over the number of rounds.
    #[arg(long, value_parser = duration)]
    pub duration: Option<Duration>,
    /// Seed of what is random in the workload.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Writes the figures as JSON into this file; `-` for standard output, where nothing else is printed then.
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,
    /// Writes a self-contained HTML page of plots.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Threads that run actors, a node; all cores shared among the nodes unless given, and one in host.
    #[arg(long)]
    pub shards: Option<u32>,
    /// One round trip in so many is timed; 16, and 1 in ping-pong of fewer than 8 pairs between processes.
    #[arg(long)]
    pub sample: Option<u32>,
    /// Time after which a run is given up.
    #[arg(long, default_value = "300s", value_parser = duration)]
    pub timeout: Duration,
    /// Directory for files that are written (floor, store) and for the nodes' table; the system's temporary one unless given.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Store to measure (store), or to save in (host); a file of its own, and memory, unless given.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Journal of the reliable actors; a file of its own unless given.
    #[arg(long, value_name = "URL")]
    pub journal: Option<String>,
    /// What actors survive (reliable-latency, reliable-throughput, geo-throughput, order).
    #[arg(long, default_value = "journal")]
    pub durability: Durability,
    /// What the nodes' optimisers do, in workloads of actors that report to a tally (ping-pong, sort, big, tell, idle).
    #[arg(long, value_name = "off|advise|on", value_parser = optimiser)]
    pub optimiser: Option<OptimiserMode>,
    /// Begins with the two of each pair on different shards of one node, and measures without the optimiser and with it
    /// (ping-pong).
    #[arg(long)]
    pub apart: bool,
    /// Program that prints the address of an HTTP server and serves what it is asked, to be measured in turn (door).
    #[arg(long, value_name = "PROGRAM")]
    pub beside: Option<PathBuf>,
    /// Requests a second, whether they are answered or not (presence, presence-sim, heartbeat).
    #[arg(long)]
    pub rate: Option<f64>,
    /// How often each of what is compared is measured, in turn (presence, presence-sim, heartbeat).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    #[command(flatten)]
    #[doc(hidden)]
    pub geo: GeoOptions,
    #[command(flatten)]
    #[doc(hidden)]
    pub heartbeat: HeartbeatOptions,
    #[command(flatten)]
    #[doc(hidden)]
    pub host: HostOptions,
    #[command(flatten)]
    #[doc(hidden)]
    pub presence: PresenceOptions,
    /// Serves as the other end of `floor`.
    #[arg(long, hide = true)]
    pub peer: Option<Peer>,
}

/// A workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Workload {
    /// Pairs of actors, one message in flight each.
    PingPong,
    /// Merge sort: each split activates two actors.
    Sort,
    /// Everybody talks to everybody.
    Big,
    /// One-way messages from a few to many.
    Tell,
    /// Calls through the HTTP door of one node, each connection with one in flight.
    Door,
    /// A million actors that wait: memory.
    Idle,
    /// What this machine does without Greenroom: loopback, mailboxes, disk.
    Floor,
    /// An engine as a store, beside its raw client.
    Store,
    /// The time of a message between reliable actors.
    ReliableLatency,
    /// The rate of messages between reliable actors.
    ReliableThroughput,
    /// The time of single accesses in two clusters: Geo's Fig. 8.
    GeoLatency,
    /// One hot actor accessed from two clusters: Geo's Figs. 9 and 10.
    GeoThroughput,
    /// Orders from two clusters: Geo's Fig. 11.
    Order,
    /// Calls of reliable actors through the HTTP door, each with an idempotency key.
    ReliableCalls,
    /// Creations of reliable actors.
    ReliableCreate,
    /// Pools of resources, each a reliable actor.
    PoolServer,
    /// Beats that come whether they are answered or not, some of which block their thread: ActOp's Figs. 5 and 11(a).
    Heartbeat,
    /// Players and games that come and go, with the optimiser and without it: ActOp's Fig. 10.
    Presence,
    /// The same in a simulated world, whose time passes as fast as this machine can work: more nodes than it has cores.
    PresenceSim,
    /// Calls of actors in a host, in any language, beside a bare echo of its language.
    Host,
}

impl Workload {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Workload::PingPong => "ping-pong",
            Workload::Sort => "sort",
            Workload::Big => "big",
            Workload::Tell => "tell",
            Workload::Door => "door",
            Workload::Idle => "idle",
            Workload::Floor => "floor",
            Workload::Store => "store",
            Workload::ReliableLatency => "reliable-latency",
            Workload::ReliableThroughput => "reliable-throughput",
            Workload::GeoLatency => "geo-latency",
            Workload::GeoThroughput => "geo-throughput",
            Workload::Order => "order",
            Workload::ReliableCalls => "reliable-calls",
            Workload::ReliableCreate => "reliable-create",
            Workload::PoolServer => "pool-server",
            Workload::Heartbeat => "heartbeat",
            Workload::Presence => "presence",
            Workload::PresenceSim => "presence-sim",
            Workload::Host => "host",
        }
    }

    /// Whether it runs in two clusters.
    pub(crate) fn is_geo(self) -> bool {
        matches!(self, Workload::GeoLatency | Workload::GeoThroughput | Workload::Order)
    }

    /// Whether players play.
    pub(crate) fn is_presence(self) -> bool {
        matches!(self, Workload::Presence | Workload::PresenceSim)
    }

    pub(crate) fn rounds_default(self) -> u64 {
        match self {
            Workload::PingPong => 7500,
            Workload::Big => 5000,
            Workload::Tell => 10_000,
            Workload::ReliableLatency => 500,
            Workload::GeoLatency => 50,
            _ => 1,
        }
    }

    pub(crate) fn nodes_default(self) -> u32 {
        match self {
            Workload::PingPong => 2,
            Workload::Sort | Workload::Big => 3,
            Workload::Presence => 4,
            Workload::PresenceSim => 10,
            _ => 1,
        }
    }

    pub(crate) fn actors_default(self) -> u32 {
        match self {
            Workload::Idle => 1_000_000,
            Workload::Tell | Workload::ReliableCalls => 1000,
            Workload::PoolServer | Workload::Heartbeat => 10_000,
            _ => 24,
        }
    }
}

/// What actors survive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Durability {
    /// Nothing: what they are kept in is memory.
    #[value(alias = "volatile")]
    None,
    /// What their journal or their store survives.
    #[value(alias = "persistent")]
    Journal,
}

/// Where actors live.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Mode {
    /// All in this process.
    Local,
    /// On node processes, each of which hosts every kind.
    Virtual,
    /// On node processes, each role on its own.
    Distributed,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Local => "local",
            Mode::Virtual => "virtual",
            Mode::Distributed => "distributed",
        }
    }
}

fn optimiser(text: &str) -> Result<OptimiserMode, String> {
    text.parse()
}

/// A time with its unit, as options are given it.
///
/// # Errors
/// What to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is no duration; write 20us, 500ms, 10s, 2m or 1h");
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic()).ok_or_else(bad)?;
    let (number, unit) = text.split_at(unit_at);
    let seconds_a_unit = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(bad()),
    };
    let number: f64 = number.trim().parse().map_err(|_| bad())?;
    Duration::try_from_secs_f64(number * seconds_a_unit).ok().filter(|duration| !duration.is_zero()).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_are_above_zero() {
        assert_eq!(duration("20us"), Ok(Duration::from_micros(20)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for bad in ["", "10", "s", "-1s", "0s", "1week", "1e30h"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
    }
}
