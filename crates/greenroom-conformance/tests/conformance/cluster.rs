//! A cluster of the test kit, as this suite's scenarios have it: one store for the table and for states, no journal but their
//! own, and nodes that may be missing.

use std::sync::Arc;
use std::time::Duration;

use greenroom::{Builder, Node};
use greenroom_sim::{Sim, SimStore};
use greenroom_store::memory::MemoryStore;
use greenroom_test::Stores;

/// A simulated world in which frames of Greenroom's protocol are lost, repeated and reordered.
pub(crate) use greenroom_test::simulation as sim;

/// Nodes by name. Clones are the same cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) sim: Sim,
    pub(crate) store: SimStore,
    kit: greenroom_test::Cluster,
}

impl Cluster {
    /// A cluster whose nodes `build` equips.
    pub(crate) fn new(sim: &Sim, build: impl Fn(Builder, &str) -> Builder + 'static) -> Self {
        let store = SimStore::new(sim, "store", Arc::new(MemoryStore::new()));
        let kit = greenroom_test::Cluster::over(sim, Stores::table(store.clone()), move |builder, name| {
            build(builder.configure(|config| config.call_timeout = CALL_TIMEOUT), name)
        });
        Self { sim: sim.clone(), store, kit }
    }

    /// Starts all of `names`, one after the other, and waits until each knows the others.
    pub(crate) async fn start_all(&self, names: &[&str]) {
        self.kit.start_all(names).await;
    }

    /// Waits until each of `names` knows these members and no others.
    pub(crate) async fn settled(&self, names: &[&str]) {
        while !self.kit.know_each_other(names) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The nodes `a`, `b` and `c`, in a scenario that has crashed none of them.
    pub(crate) fn three(&self) -> [Node; 3] {
        ["a", "b", "c"].map(|name| self.node(name).expect("it was started and not crashed"))
    }

    /// Starts the node called `name`, and tries again for as long as it takes.
    pub(crate) async fn start(&self, name: &str) {
        self.kit.start(name).await;
    }

    /// Takes the node called `name` away, which nobody starts again but who [restarts](Self::restart) it.
    pub(crate) fn stop(&self, name: &str) {
        self.kit.kill(name);
    }

    /// Starts the node called `name` in the background.
    pub(crate) fn restart(&self, name: &str) {
        self.kit.start_soon(name);
    }

    /// A node that was started and not crashed since, if there is one.
    pub(crate) fn node(&self, name: &str) -> Option<Node> {
        self.kit.process(name)
    }

    /// Keeps nodes that stopped by themselves going: an operator's process supervisor.
    pub(crate) fn supervise(&self) {
        self.kit.supervise();
    }
}

/// Shorter than the default: scenarios wait for many calls that come to nothing.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
