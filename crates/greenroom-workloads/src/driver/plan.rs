//! What a run is to do: the command line with its defaults filled in.

use std::path::PathBuf;
use std::time::Duration;

use greenroom::optimiser::OptimiserMode;
use serde_json::{Map, Value};

use crate::cli::{Bench, Durability, GeoOptions, HeartbeatOptions, HostOptions, Mode, PresenceOptions, Workload};
use crate::kinds::{Extent, Style};
use crate::store;
use crate::{heartbeat, hosts};

/// What a run is to do.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) workload: Workload,
    pub(crate) mode: Mode,
    pub(crate) style: Style,
    pub(crate) pairs: u32,
    pub(crate) window: u32,
    pub(crate) payload: usize,
    pub(crate) rounds: u64,
    pub(crate) nodes: u32,
    pub(crate) size: u32,
    pub(crate) actors: u32,
    pub(crate) senders: u32,
    pub(crate) duration: Option<Duration>,
    pub(crate) seed: u64,
    pub(crate) shards: u32,
    pub(crate) sample: u32,
    pub(crate) timeout: Duration,
    pub(crate) dir: PathBuf,
    /// The directory that was asked for.
    pub(crate) dir_given: Option<PathBuf>,
    pub(crate) store: Option<String>,
    pub(crate) journal: Option<String>,
    pub(crate) durability: Durability,
    pub(crate) rate: Option<f64>,
    /// How often each of what is compared is measured.
    pub(crate) repeat: u32,
    pub(crate) geo: GeoOptions,
    pub(crate) presence: PresenceOptions,
    pub(crate) heartbeat: HeartbeatOptions,
    pub(crate) host: HostOptions,
    /// What the nodes' optimisers do; what they do by themselves unless given.
    pub(crate) optimiser: Option<OptimiserMode>,
    /// Whether pairs begin on different shards.
    pub(crate) apart: bool,
    /// Another server that is asked the same.
    pub(crate) beside: Option<PathBuf>,
}

/// The end of a run of that length that starts now.
pub(super) fn until_ns(length: Option<Duration>) -> Option<u64> {
    let length = length.map(|length| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    length.map(|length| crate::report::unix_ns().saturating_add(length))
}

impl Plan {
    /// The plan of a command line.
    ///
    /// # Errors
    /// What does not go together.
    pub(crate) fn of(bench: &Bench) -> Result<Self, String> {
        let workload = bench.workload;
        let asked = bench.nodes.unwrap_or_else(|| workload.nodes_default());
        let apart = asked > 1 || workload == Workload::Door;
        let mode = bench.mode.unwrap_or(if apart { Mode::Virtual } else { Mode::Local });
        let nodes = if mode == Mode::Local { asked.min(1) } else { asked };
        let cores = cores();
        // The host has the other cores.
        let shards = (workload == Workload::Host).then_some(1);
        let clusters = if workload.is_geo() { 2 } else { 1 };
        let plan = Plan {
            workload,
            mode,
            style: bench.style,
            pairs: bench.pairs,
            window: bench.window,
            payload: bench.payload,
            rounds: bench.rounds.unwrap_or_else(|| workload.rounds_default()),
            nodes,
            size: bench.size,
            actors: bench.actors.unwrap_or_else(|| workload.actors_default()),
            senders: bench.senders,
            duration: bench.duration,
            seed: bench.seed,
            shards: bench.shards.or(shards).unwrap_or_else(|| (cores / (nodes * clusters).max(1)).max(1)),
            sample: bench.sample.unwrap_or(if mode != Mode::Local && is_sparse(bench) { 1 } else { 16 }),
            timeout: bench.timeout,
            dir: bench.dir.clone().unwrap_or_else(std::env::temp_dir),
            dir_given: bench.dir.clone(),
            store: bench.store.clone(),
            journal: bench.journal.clone(),
            durability: bench.durability,
            rate: bench.rate,
            repeat: bench.repeat,
            geo: bench.geo.clone(),
            presence: bench.presence.clone(),
            heartbeat: bench.heartbeat.clone(),
            host: bench.host.clone(),
            optimiser: bench.optimiser,
            apart: bench.apart,
            beside: bench.beside.clone(),
        };
        plan.check()?;
        Ok(plan)
    }

    /// Whether it runs reliable actors.
    pub(crate) fn is_reliable(&self) -> bool {
        matches!(
            self.workload,
            Workload::ReliableLatency
                | Workload::ReliableThroughput
                | Workload::ReliableCalls
                | Workload::ReliableCreate
                | Workload::PoolServer
        )
    }

    /// Whether it runs in two clusters.
    pub(crate) fn is_geo(&self) -> bool {
        self.workload.is_geo()
    }

    /// Requests a second.
    pub(crate) fn rate(&self) -> f64 {
        self.rate.unwrap_or(RATE)
    }

    /// How long each leg of presence is.
    pub(crate) fn presence_duration(&self) -> Duration {
        self.duration.unwrap_or(PRESENCE_DURATION)
    }

    /// How many times as fast as the world's the time of games goes.
    pub(crate) fn time_scale(&self) -> f64 {
        let default = if self.workload == Workload::PresenceSim { 1.0 } else { 10.0 };
        self.presence.time_scale.unwrap_or(default)
    }

    /// Whether its actors report to a tally.
    pub(crate) fn is_of_tallies(&self) -> bool {
        !matches!(self.workload, Workload::Store | Workload::Heartbeat | Workload::Host)
            && !self.workload.is_presence()
            && !self.is_reliable()
            && !self.is_geo()
    }

    fn check(&self) -> Result<(), String> {
        let counts = [
            ("--nodes", self.nodes),
            ("--pairs", self.pairs),
            ("--window", self.window),
            ("--actors", self.actors),
            ("--senders", self.senders),
            ("--shards", self.shards),
            ("--sample", self.sample),
            ("--in-flight", self.presence.in_flight.unwrap_or(1)),
        ];
        if self.apart && !(self.workload == Workload::PingPong && self.mode == Mode::Local && self.shards > 1) {
            return Err("--apart is for ping-pong with --mode local and several --shards".to_owned());
        }
        if self.window > 1 && !(self.workload == Workload::PingPong && self.style == Style::Send) {
            return Err("--window is for ping-pong with --style send: who calls waits for the answer".to_owned());
        }
        if self.rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            return Err("--rate is to be a number above 0".to_owned());
        }
        if let Some((option, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(format!("{option} 0 leaves nothing to run; give it 1 or more"));
        }
        if self.workload.is_presence() { self.check_presence() } else { Ok(()) }
    }

    fn check_presence(&self) -> Result<(), String> {
        if self.mode != Mode::Virtual && self.workload == Workload::PresenceSim {
            return Err("presence-sim has 2 --nodes or more, of a simulated world: leave --mode out".to_owned());
        }
        if self.mode == Mode::Distributed {
            return Err("players and games move from node to node: leave --mode distributed out".to_owned());
        }
        if self.duration.is_some_and(|duration| duration < PRESENCE_MIN) {
            return Err(format!("presence is told by the second: give it a --duration of {PRESENCE_MIN:?} or more"));
        }
        if self.rate.is_some() && self.presence.in_flight.is_some() {
            return Err("--rate is for requests at their times, --in-flight for those after answers: give one of them"
                .to_owned());
        }
        let Some(after) = self.presence.join_after else { return Ok(()) };
        if self.mode == Mode::Local {
            return Err("--join-after is for several nodes: leave --mode local out".to_owned());
        }
        let duration = self.presence_duration();
        if after >= duration {
            return Err(format!(
                "--join-after {after:?} is not before the end: give it less than the --duration, {duration:?}"
            ));
        }
        Ok(())
    }

    /// How long each talk lasts; a run by time is given its end when it starts.
    pub(crate) fn extent(&self) -> Extent {
        Extent { rounds: self.rounds, until_ns: None, sample: self.sample }
    }

    /// The end of a run by time that starts now.
    pub(crate) fn until_ns(&self) -> Option<u64> {
        until_ns(self.duration)
    }

    /// What it was run with, as the JSON document says it.
    pub(crate) fn params(&self) -> Map<String, Value> {
        let mut params = Map::new();
        let mut set = |name: &str, value: Value| {
            params.insert(name.to_owned(), value);
        };
        set("seed", self.seed.into());
        if let Some(duration) = self.duration {
            set("duration_s", duration.as_secs_f64().into());
        }
        if self.workload == Workload::Floor {
            return params;
        }
        if self.workload == Workload::Store {
            let named = self.store.as_deref().unwrap_or("sqlite:");
            set("store", greenroom_store::url::redact(named).into());
            set("in_flight", store::IN_FLIGHT.into());
            set("committers", store::COMMITTERS.into());
            set("value_bytes", store::VALUE.len().into());
            return params;
        }
        if self.is_reliable() {
            let journal = match (self.durability, self.journal.as_deref()) {
                (Durability::None, _) => "memory:",
                (Durability::Journal, named) => named.unwrap_or("sqlite:"),
            };
            set("journal", greenroom_store::url::redact(journal).into());
            set("shards", self.shards.into());
            if self.workload == Workload::ReliableCalls {
                set("actors", self.actors.into());
                set("callers", self.pairs.into());
                return params;
            }
            match self.workload {
                Workload::ReliableCreate => set("callers", self.pairs.into()),
                Workload::PoolServer => set("resources", self.actors.into()),
                _ => {
                    set("pairs", self.pairs.into());
                    set("payload", self.payload.into());
                }
            }
            return params;
        }
        if self.is_geo() {
            set("wan_rtt_ms", (self.geo.wan_rtt.as_secs_f64() * 1e3).into());
            set("store_rtt_ms", (self.geo.store_rtt.as_secs_f64() * 1e3).into());
            set("nodes", self.nodes.into());
            set("shards", self.shards.into());
            if self.workload == Workload::GeoLatency {
                set("rounds", self.rounds.into());
                return params;
            }
            set("durability", if self.durability == Durability::None { "volatile" } else { "persistent" }.into());
            set("api", name(self.geo.api).into());
            set("ops", name(self.geo.ops).into());
            set("instances", name(self.geo.instances).into());
            if self.workload == Workload::GeoThroughput {
                set("at", name(self.geo.at).into());
                set("clusters", self.geo.clusters.into());
                set("updates", self.geo.updates.into());
            }
            if self.workload == Workload::Order {
                set("items", self.geo.items.into());
                set("stock", self.geo.stock.into());
                set("think_ms", (self.geo.think.as_secs_f64() * 1e3).into());
                set("kill", self.geo.kill.into());
            }
            return params;
        }
        if self.workload == Workload::Heartbeat {
            heartbeat::params(self, set);
            return params;
        }
        if self.workload == Workload::Host {
            hosts::params(self, set);
            return params;
        }
        if self.workload.is_presence() {
            set("players", self.presence.players.into());
            set("graph", name(self.presence.graph).into());
            set("nodes", self.nodes.into());
            if self.workload == Workload::Presence {
                set("shards", self.shards.into());
            }
            set("time_scale", self.time_scale().into());
            if let Some(after) = self.presence.join_after {
                set("join_after_s", after.as_secs_f64().into());
            }
            match self.presence.in_flight {
                Some(requests) => set("in_flight", requests.into()),
                None => set("rate", self.rate().into()),
            }
            return params;
        }
        set("mode", self.mode.name().into());
        if let Some(mode) = self.optimiser {
            set("optimiser", mode_name(mode).into());
        }
        set("nodes", self.nodes.into());
        set("shards", self.shards.into());
        let style = match self.style {
            Style::Call => "call",
            Style::Send => "send",
        };
        match self.workload {
            Workload::PingPong => {
                set("pairs", self.pairs.into());
                set("style", style.into());
                set("window", self.window.into());
            }
            Workload::Big => {
                set("actors", self.actors.into());
                set("style", style.into());
            }
            Workload::Sort => set("size", self.size.into()),
            Workload::Door => set("pairs", self.pairs.into()),
            Workload::Tell => {
                set("senders", self.senders.into());
                set("actors", self.actors.into());
            }
            _ => set("actors", self.actors.into()),
        }
        if matches!(self.workload, Workload::PingPong | Workload::Big | Workload::Tell) {
            set("payload", self.payload.into());
            set("rounds", self.rounds.into());
        }
        if matches!(self.workload, Workload::PingPong | Workload::Big) {
            set("sample", self.sample.into());
        }
        params
    }
}

/// What an optimiser does, as the command line writes it.
pub(crate) fn mode_name(mode: OptimiserMode) -> &'static str {
    match mode {
        OptimiserMode::Off => "off",
        OptimiserMode::Advise => "advise",
        _ => "on",
    }
}

/// A choice as the command line writes it.
pub(crate) fn name(choice: impl clap::ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Whether so few messages are in flight that reading the clock for each does not slow them down.
fn is_sparse(bench: &Bench) -> bool {
    bench.workload == Workload::PingPong && bench.pairs < SPARSE_PAIRS
}

/// Cores that this process may use.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// How long a run takes.
const PRESENCE_DURATION: Duration = Duration::from_secs(120);
/// Half of a run of presence is steady, and has a second.
const PRESENCE_MIN: Duration = Duration::from_secs(2);
/// Requests a second, unless told otherwise.
const RATE: f64 = 2000.0;
/// Pairs below which a run is about latency rather than rate.
const SPARSE_PAIRS: u32 = 8;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        bench: Bench,
    }

    /// What the line is refused with; nothing, if it is a plan.
    fn refused(line: &str) -> String {
        let bench = Program::parse_from(["bench"].into_iter().chain(line.split(' '))).bench;
        Plan::of(&bench).err().unwrap_or_default()
    }

    #[test]
    fn what_a_heat_map_goes_through_is_refused_without_one() {
        let parsed = |line: &str| Program::try_parse_from(["bench"].into_iter().chain(line.split(' ')));
        for sweep in ["--sweep-threads 1,2", "--sweep-shards 1,2"] {
            let said = parsed(&format!("heartbeat {sweep}")).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.contains("--heat-map"), "{sweep}: {said}");
            assert!(parsed(&format!("heartbeat --heat-map {sweep}")).is_ok());
        }
        assert!(parsed("heartbeat").is_ok());
    }

    #[test]
    fn options_of_presence_that_do_not_go_together_are_refused_by_their_names() {
        for (line, named) in [
            ("presence-sim --nodes 1", "2 --nodes or more"),
            ("presence-sim --nodes 0", "--nodes 0"),
            ("presence --rate 10 --in-flight 4", "give one of them"),
            ("presence --join-after 30s --duration 20s", "--duration, 20s"),
            ("presence --join-after 120s", "--duration, 120s"),
        ] {
            let said = refused(line);
            assert!(said.contains(named), "{line}: {said}");
        }
        for line in ["presence-sim", "presence --join-after 119s", "presence --in-flight 4", "presence-sim --rate 4"] {
            assert_eq!(refused(line), "", "{line}");
        }
    }
}
