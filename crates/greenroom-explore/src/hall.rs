//! Where schedules are run: one node in a simulated world, which is as new before each of them.

use std::sync::Arc;
use std::time::Duration;

use greenroom::rehearsal::{Digest, Stage};
use greenroom::{Config, Node};
use greenroom_sim::{Faults, Sim, Stepped};
use greenroom_test::{Cluster, Stores, simulation};

use crate::driver::Driver;
use crate::run::Equip;
use crate::states::States;

/// A node whose shard is on a stage.
pub(crate) struct Hall {
    node: Node,
    stage: Stage,
    /// What was on the shard when it was new.
    fresh: Digest,
    /// Tasks that the node itself has.
    spawned: usize,
    /// When the last schedule began.
    began: Duration,
    cluster: Cluster,
    stepped: Stepped,
}

impl Hall {
    /// A new node that hosts what `equip` registers with it, and keeps states in these stores, too, by their names.
    ///
    /// # Panics
    /// If it cannot start.
    pub(crate) fn open(equip: Equip, stores: Arc<[String]>) -> Self {
        let mut faults = Faults::none();
        (faults.clock_drift, faults.clock_offset) = (0.0, Duration::ZERO);
        let stepped = simulation(0, faults).deadline(DEADLINE).stepped();
        let sim = stepped.sim().clone();
        let (cluster, stage) = stepped.run(async move {
            let states = States::default();
            let kept = states.clone();
            let cluster = Cluster::over(&sim, Stores::new(&sim, &[]), move |builder, _| {
                let names = stores.iter().map(String::as_str).chain([""]);
                let builder = names.fold(builder, |builder, name| builder.state_journal(name, Arc::new(kept.clone())));
                equip(builder.configure(|config| config.reliable.partitions = PARTITIONS))
                    .configure(|config| refuse(config))
            });
            Stage::ask();
            cluster.start_all(&[NODE]).await;
            let stage = Stage::take().expect("a node with one shard has one stage");
            stage.forget_states_by(move || states.forget());
            (cluster, stage)
        });
        let (node, fresh, spawned) = (cluster.node(NODE), stage.digest(), stepped.spawned());
        let sim = stepped.sim().clone();
        let now = stepped.run(async move { sim.now() });
        Self { node, stage, fresh, spawned, began: Duration::ZERO, cluster, stepped }.wait_for_a_whole_second(now)
    }

    pub(crate) fn node(&self) -> Node {
        self.node.clone()
    }

    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    pub(crate) fn sim(&self) -> &Sim {
        self.stepped.sim()
    }

    /// Runs a schedule, or a part of one.
    pub(crate) fn run<T: 'static>(&self, part: impl Future<Output = T> + 'static) -> T {
        self.stepped.run(part)
    }

    /// Forgets what `driver` has done. `None` if something of it may be left.
    pub(crate) fn renewed(self, driver: Driver) -> Option<Self> {
        let (stage, sim) = (self.stage.clone(), self.stepped.sim().clone());
        let (is_whole, now) = self.run(async move { (stage.reset(move || drop(driver)), sim.now()) });
        let is_left = !is_whole
            || now > DEADLINE / 2
            || self.stage.digest() != self.fresh
            || self.stepped.spawned() != self.spawned
            || self.cluster.try_node(NODE).is_none();
        (!is_left).then(|| self.wait_for_a_whole_second(now))
    }

    /// Timers are due as the clock's parts say, and so as in every other schedule, if each begins with a second.
    fn wait_for_a_whole_second(mut self, now: Duration) -> Self {
        if now != self.began {
            let sim = self.stepped.sim().clone();
            let left = Duration::from_secs(now.as_secs() + 1) - now;
            let stage = self.stage.clone();
            self.began = self.stepped.run(async move {
                tokio::time::sleep(left).await;
                // By the calendar, too, each schedule begins at the same moment.
                sim.begin_calendars();
                stage.look_at_clock();
                sim.now()
            });
        }
        self
    }
}

/// What a node wants that a stage has not.
///
/// # Panics
/// If it wants something.
fn refuse(config: &Config) {
    let doors = [("http", config.http.is_some()), ("grpc", config.grpc.is_some()), ("geo", config.geo.is_some())];
    for (name, is_wanted) in doors {
        assert!(
            !is_wanted,
            "a stage has no network, and `{name}` wants one: leave it out of what the test registers its kinds by"
        );
    }
}

/// Of reliable actors: each of them is one of its own on a stage.
const PARTITIONS: u32 = 1;
/// The node's name.
const NODE: &str = "a";
/// Virtual time of all schedules together.
const DEADLINE: Duration = Duration::from_secs(9 * 365 * 24 * 60 * 60);
