//! A simulated cluster: nodes that can be started again, and their table in a simulated store.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom::{Builder, Config, Node};
use greenroom_sim::{Faults, FrameClass, Sim, SimStore};
use greenroom_store::memory::MemoryStore;

/// How a node of the scenario is put together.
type Build = Rc<dyn Fn(Builder, &str) -> Builder>;

/// Nodes by name. Clones are the same cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) sim: Sim,
    pub(crate) store: SimStore,
    build: Build,
    nodes: Rc<RefCell<BTreeMap<String, Node>>>,
}

impl Cluster {
    /// A cluster whose nodes `build` equips.
    pub(crate) fn new(sim: &Sim, build: impl Fn(Builder, &str) -> Builder + 'static) -> Self {
        let store = SimStore::new(sim, "store", Arc::new(MemoryStore::new()));
        Self { sim: sim.clone(), store, build: Rc::new(build), nodes: Rc::default() }
    }

    /// Starts all of `names`, one after the other, and waits until each knows the others. One that stops by itself
    /// meanwhile, as the store may be bad, is started again.
    pub(crate) async fn start_all(&self, names: &[&str]) {
        for name in names {
            self.start(name).await;
        }
        while !self.is_settled(names) {
            for name in names.iter().filter(|name| self.node(name).is_none_or(|node| node.is_stopped())) {
                self.sim.crash(name);
                self.start(name).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until each of `names` knows these members and no others.
    pub(crate) async fn settled(&self, names: &[&str]) {
        while !self.is_settled(names) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn is_settled(&self, names: &[&str]) -> bool {
        let knows = |name: &&str| {
            self.node(name).is_some_and(|node| {
                let members = node.members();
                members.len() == names.len() && names.iter().all(|name| members.iter().any(|member| member == name))
            })
        };
        names.iter().all(knows)
    }

    /// The nodes `a`, `b` and `c`, in a scenario that has crashed none of them.
    pub(crate) fn three(&self) -> [Node; 3] {
        ["a", "b", "c"].map(|name| self.node(name).expect("it was started and not crashed"))
    }

    /// Starts the node called `name`, and tries again for as long as it takes.
    pub(crate) async fn start(&self, name: &str) {
        while !self.try_start(name).await {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    async fn try_start(&self, name: &str) -> bool {
        let world = self.sim.node(name);
        let mut config = Config::default();
        config.name = name.to_owned();
        config.listen = format!("{name}:0");
        config.insecure_listen = true;
        config.shards = 1;
        config.call_timeout = Duration::from_secs(5);
        let builder = Node::builder().config(config).world(world).store(self.store.seen_by(name));
        match (self.build)(builder, name).start().await {
            Ok(node) => {
                self.sim.note(format_args!("{name} is a member"));
                self.nodes.borrow_mut().insert(name.to_owned(), node);
                true
            }
            Err(error) => {
                self.sim.note(format_args!("{name} could not start: {error}"));
                false
            }
        }
    }

    /// Starts the node called `name` in the background.
    pub(crate) fn restart(&self, name: &str) {
        let (this, name) = (self.clone(), name.to_owned());
        self.nodes.borrow_mut().remove(&name);
        self.sim.spawn(async move { this.start(&name).await });
    }

    /// A node that was started and not crashed since, if there is one.
    pub(crate) fn node(&self, name: &str) -> Option<Node> {
        self.nodes.borrow().get(name).filter(|_| self.sim.is_alive(name)).cloned()
    }

    /// Keeps nodes that stopped by themselves going: an operator's process supervisor.
    pub(crate) fn supervise(&self, names: &'static [&'static str]) {
        for name in names {
            let this = self.clone();
            self.sim.spawn(async move {
                loop {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    let Some(node) = this.node(name) else { continue };
                    if node.is_stopped() && this.sim.is_alive(name) {
                        this.sim.note(format_args!("{name} has stopped and is started again"));
                        this.sim.crash(name);
                        this.restart(name);
                    }
                }
            });
        }
    }
}

/// A simulated world in which frames of Greenroom's protocol are lost, repeated and reordered.
pub(crate) fn sim(seed: u64, faults: Faults) -> greenroom_sim::Builder {
    Sim::builder().seed(seed).faults(faults).classify(|frame| match greenroom_wire::classify(frame) {
        greenroom_wire::FrameClass::Essential => FrameClass::Essential,
        greenroom_wire::FrameClass::User => FrameClass::User,
        greenroom_wire::FrameClass::Control => FrameClass::Control,
    })
}
