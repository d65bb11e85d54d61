//! The same test over the whole library: several nodes in the simulated world, under seeds that decide all.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom_sim::{Faults, Random, Sim, Violation};
use greenroom_test::{Cluster, Setup};

use crate::explore::Explore;
use crate::run::{Body, Equip, kinds_of};
use crate::search::SCHEDULES;
use crate::world::{Course, Kinds, World};

/// A test over whole clusters: see [`Explore::cluster`].
#[must_use = "it does nothing before `run`"]
#[derive(Clone)]
pub struct Whole {
    equip: Equip,
    setup: Setup,
    seeds: u64,
}

impl Explore {
    /// Runs the test over the whole library instead of one shard: on so many nodes of a simulated cluster, with all that lies between them, under as
    /// many seeds as there are to be [`schedules`](Self::schedules). Seeds draw what a stage chooses, and one takes a thousand times as
    /// long as a schedule: it is for what the stage takes for granted, and for what it refuses.
    ///
    /// Clients call by one of the nodes, which the seed chooses. They and [`World::finally`] say what must be: claims about actors in
    /// memory, monitors and [`World::linearizable`] look at one shard, and are refused.
    ///
    /// # Panics
    /// If there are to be no nodes, or more than 26; if the test asks for faults of a stage, names a schedule, or has set another option of a stage but
    /// [`schedules`](Self::schedules).
    #[track_caller]
    pub fn cluster(self, nodes: usize) -> Whole {
        let remedy = "give the cluster its own: `.cluster(3).faults(Faults::rough())`";
        assert!(
            self.reach.faults.is_empty(),
            "what goes wrong on a stage does not go wrong by itself in a cluster: {remedy}"
        );
        let without_use = self.of_schedules().join("`, `");
        assert!(
            without_use.is_empty(),
            "a cluster has no schedules, and so no use for `{without_use}`: leave that out; how many seeds there are,              `schedules` or GREENROOM_SEEDS say, and GREENROOM_SEED runs one of them"
        );
        let (equip, seeds) = (self.equip, self.search.schedules.unwrap_or(SCHEDULES));
        let equipped = equip.clone();
        let setup = Cluster::of(nodes, move |builder| equipped(builder));
        Whole { equip, setup: self.stores.into_iter().fold(setup, Setup::state_store), seeds }
    }
}

impl Whole {
    /// What goes wrong by itself; nothing by default, and messages take some time.
    pub fn faults(self, faults: Faults) -> Self {
        Self { setup: self.setup.faults(faults), ..self }
    }

    /// Runs `body` under all seeds. `GREENROOM_SEEDS=count` overrides how many; `GREENROOM_SEED=n` runs that one and prints its trace.
    ///
    /// # Panics
    /// When a seed breaks it: with what was violated, the last lines of its trace, and the command that replays it.
    #[track_caller]
    pub fn run<F: Future<Output = ()> + 'static>(self, body: impl Fn(World) -> F + Send + Sync + 'static) {
        self.setup.seeds(self.seeds, scenario(self.equip, body));
    }

    /// Runs `body` until a seed breaks it: what was violated.
    ///
    /// # Panics
    /// When no seed does.
    #[track_caller]
    pub fn expect_violation<F: Future<Output = ()> + 'static>(
        self,
        body: impl Fn(World) -> F + Send + Sync + 'static,
    ) -> Violation {
        self.setup.expect_violation(self.seeds, scenario(self.equip, body))
    }
}

fn scenario<F: Future<Output = ()> + 'static>(
    equip: Equip,
    body: impl Fn(World) -> F + Send + Sync + 'static,
) -> impl Fn(Cluster) -> futures_util::future::LocalBoxFuture<'static, ()> + Sync {
    let body: Body = Arc::new(move |world| Box::pin(body(world)));
    move |cluster| Box::pin(play(cluster, kinds_of(&equip), body.clone()))
}

/// What a seed decides.
struct Seeded {
    sim: Sim,
    random: RefCell<Random>,
}

impl Course for Seeded {
    fn choose(&self, options: usize, _: &str) -> usize {
        self.random.borrow_mut().index(options)
    }

    fn note(&self, text: &str) {
        self.sim.note(text);
    }
}

/// Plays the test once.
async fn play(cluster: Cluster, kinds: Kinds, body: Body) {
    let seeded = Seeded { sim: cluster.sim().clone(), random: RefCell::new(cluster.sim().random()) };
    let names = cluster.names();
    let node = cluster.node(&names[seeded.choose(names.len(), "")]);
    let world = World::new(node, kinds, seeded);
    body(world.clone()).await;
    let claims = !world.claims().is_empty() || world.judges_order();
    assert!(!claims, "claims about actors in memory, monitors and `linearizable` look at one shard: {REMEDY}");
    world.explores(true);
    world.let_crowds_in();
    let clients = join_all(world.take_clients());
    let ended = tokio::time::timeout(PATIENCE, clients).await;
    assert!(ended.is_ok(), "clients wait for something that does not come within {PATIENCE:?}");
    world.explores(false);
    // What was sent and is not awaited.
    tokio::time::sleep(AFTERMATH).await;
    for judge in world.take_finally() {
        judge.await;
    }
    world.take_all();
}

const REMEDY: &str = "let clients and `finally` assert what the cluster is to show, or leave `cluster` out";
/// Virtual time for which clients may wait.
const PATIENCE: Duration = Duration::from_secs(120);
/// The same for what nobody waits for.
const AFTERMATH: Duration = Duration::from_secs(5);
