//! What a scenario runs over, and under which seeds.

use std::sync::Arc;
use std::time::Duration;

use greenroom::Builder;
use greenroom_sim::{Faults, FrameClass, Outcome, Seeds, Sim, Violation, test_name};

use crate::cluster::Cluster;
use crate::narrator::Names;
use crate::stores::Stores;
use crate::turns::Turns;

/// What a node hosts, by its name.
type Equip = Arc<dyn Fn(Builder, &str) -> Builder + Send + Sync>;

/// A cluster to be: see [`Cluster::of`].
#[must_use = "it does nothing before `seeds`"]
#[derive(Clone)]
pub struct Setup {
    nodes: Vec<String>,
    equip: Equip,
    stores: Vec<String>,
    faults: Faults,
    deadline: Duration,
}

impl Cluster {
    /// A cluster of so many nodes, called `a`, `b`, `c` and so on, each of which hosts what `equip` registers with it. What it
    /// is configured with, too: `|builder| builder.register::<Counter>().configure(|config| config.idle = ..)`.
    ///
    /// # Panics
    /// If there are to be none, or more than 26.
    pub fn of(nodes: usize, equip: impl Fn(Builder) -> Builder + Send + Sync + 'static) -> Setup {
        assert!((1..=NODES_MAX).contains(&nodes), "a test's cluster has 1 to {NODES_MAX} nodes, not {nodes}");
        let names: Vec<String> = ('a'..='z').take(nodes).map(String::from).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Self::named(&names, move |builder, _| equip(builder))
    }

    /// A cluster of nodes with these names; `equip` is told which node it is for.
    ///
    /// # Panics
    /// If there are none.
    pub fn named(nodes: &[&str], equip: impl Fn(Builder, &str) -> Builder + Send + Sync + 'static) -> Setup {
        assert!(!nodes.is_empty(), "a cluster without a node can do nothing: name one");
        Setup {
            nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
            equip: Arc::new(equip),
            stores: Vec::new(),
            faults: Faults::none(),
            deadline: DEADLINE_DEFAULT,
        }
    }
}

impl Setup {
    /// What goes wrong by itself; [`Faults::none`] by default: messages take some time, and clocks drift.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// A bad day: [`Faults::rough`]. Messages are late and lost, connections break, stores do not always answer; nodes may stop
    /// by themselves when they cannot renew their leases, so see [`Cluster::supervise`].
    pub fn rough(self) -> Self {
        self.faults(Faults::rough())
    }

    /// Virtual time after which a scenario that has not ended fails; 10 minutes by default, the start of the nodes included.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Lets kinds keep their states in a store called `name`: `#[actor(persistent, store = "name")]`.
    pub fn state_store(mut self, name: impl Into<String>) -> Self {
        self.stores.push(name.into());
        self
    }

    /// Runs `scenario` under so many seeds, or under these, on as many threads as there are cores: each over a cluster of its
    /// own, whose nodes all know each other. It may return a `Result`, whose error fails the seed.
    ///
    /// `GREENROOM_SEEDS=count` overrides how many; `GREENROOM_SEED=n` runs that one and prints all of its trace.
    ///
    /// # Panics
    /// When a seed fails: with what failed, the last lines of its trace, and the command that replays it.
    #[track_caller]
    pub fn seeds<F>(self, seeds: impl Into<Seeds>, scenario: impl Fn(Cluster) -> F + Sync)
    where
        F: Future + 'static,
        F::Output: Outcome + 'static,
    {
        greenroom_sim::seeds(&test_name(), seeds, |seed| self.run(seed, &scenario));
    }

    /// Checks a check: under one of the seeds `within` (the first so many, or a range), `scenario` must fail. Gives the first that
    /// was found, with what failed and its trace.
    ///
    /// # Panics
    /// When no seed fails.
    #[track_caller]
    pub fn expect_violation<F>(self, within: impl Into<Seeds>, scenario: impl Fn(Cluster) -> F + Sync) -> Violation
    where
        F: Future + 'static,
        F::Output: Outcome + 'static,
    {
        greenroom_sim::expect_violation(&test_name(), within, |seed| self.run(seed, &scenario))
    }

    /// Runs `scenario` under one seed, and gives what it returns.
    ///
    /// # Panics
    /// When the scenario does, when a node cannot start, and when virtual time passes the deadline.
    pub fn run<F>(&self, seed: u64, scenario: impl FnOnce(Cluster) -> F) -> F::Output
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        simulation(seed, self.faults.clone()).deadline(self.deadline).run(|sim: Sim| {
            let (equip, of) = (self.equip.clone(), sim.clone());
            let cluster = Cluster::over(&sim, Stores::new(&sim, &self.stores), move |builder, node| {
                let turns = Turns { sim: of.clone(), node: node.to_owned() };
                let builder = builder.intercept(turns).configure(|config| config.reliable.partitions = PARTITIONS);
                equip(builder, node)
            });
            let (nodes, scenario) = (self.nodes.clone(), scenario(cluster.clone()));
            async move {
                let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
                cluster.start_all(&nodes).await;
                sim.note("the scenario begins");
                scenario.await
            }
        })
    }
}

/// A simulated world in which frames of Greenroom's protocol are lost, repeated and reordered, and have names in the trace: for
/// scenarios that need more than one cluster.
pub fn simulation(seed: u64, faults: Faults) -> greenroom_sim::Builder {
    Sim::builder().seed(seed).faults(faults).narrator(Names::narrator).classify(|frame| match greenroom_wire::classify(
        frame,
    ) {
        greenroom_wire::FrameClass::Essential => FrameClass::Essential,
        greenroom_wire::FrameClass::User => FrameClass::User,
        greenroom_wire::FrameClass::Control => FrameClass::Control,
    })
}

/// Enough for several nodes to own some, and few enough to keep a scenario fast and its trace short.
const PARTITIONS: u32 = 8;
const DEADLINE_DEFAULT: Duration = Duration::from_secs(600);
/// One for each letter.
const NODES_MAX: usize = 26;
