//! A running cluster: its nodes, and how they are started.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom::{Builder, Config, Error, Node};
use greenroom_sim::{Sim, SimNode, SimStore};

use crate::stores::Stores;

/// A cluster in the simulated world, as its scenario sees it. Clones are the same cluster.
///
/// Methods that take a node's name panic when no node of the cluster is called so.
#[derive(Clone)]
pub struct Cluster {
    sim: Sim,
    stores: Stores,
    build: Build,
    nodes: Rc<RefCell<BTreeMap<String, Life>>>,
    /// Whether a kind has turned out to need a journal: the others run without.
    journal: Rc<Cell<bool>>,
}

/// How a node of the scenario is put together.
type Build = Rc<dyn Fn(Builder, &str) -> Builder>;

/// What has become of a node.
#[derive(Default)]
struct Life {
    node: Option<Node>,
    /// Whether somebody is starting it.
    starts: bool,
    /// Whether its start was asked for after it was killed while it started.
    again: bool,
}

impl Cluster {
    /// A cluster in a simulation that is there already, as one of several: none of its nodes is started. `build` equips
    /// them.
    pub fn over(sim: &Sim, stores: Stores, build: impl Fn(Builder, &str) -> Builder + 'static) -> Self {
        Self { sim: sim.clone(), stores, build: Rc::new(build), nodes: Rc::default(), journal: Rc::default() }
    }

    /// The node called `name`, which is up.
    ///
    /// # Panics
    /// If it is down: ask [`Cluster::try_node`] where that may be.
    pub fn node(&self, name: &str) -> Node {
        let why = "start it again with `cluster.start(..)`, or ask `cluster.try_node(..)`";
        self.try_node(name).unwrap_or_else(|| panic!("node {name:?} is down: {why}"))
    }

    /// The node called `name` if it is up: started, not crashed since, and not stopped.
    pub fn try_node(&self, name: &str) -> Option<Node> {
        self.check_node(name);
        self.process(name).filter(|node| !node.is_stopped())
    }

    /// The node of the process called `name`, if there is one: the node in it may have stopped. `None` also for names that no
    /// node has (yet).
    pub fn process(&self, name: &str) -> Option<Node> {
        self.nodes.borrow().get(name).filter(|_| self.sim.is_alive(name)).and_then(|life| life.node.clone())
    }

    /// A node that is up, the first by its name.
    ///
    /// # Panics
    /// If none is.
    pub fn any(&self) -> Node {
        let up = self.names().into_iter().find_map(|name| self.try_node(&name));
        up.expect("no node is up: start one with `cluster.start(..)`")
    }

    /// True if the node called `name` is up.
    pub fn is_up(&self, name: &str) -> bool {
        self.try_node(name).is_some()
    }

    /// The names of all nodes, also of those that are down.
    pub fn names(&self) -> Vec<String> {
        self.nodes.borrow().keys().cloned().collect()
    }

    /// The simulated world, for all else.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// The store of the membership table, a machine called `table`.
    pub fn table(&self) -> &SimStore {
        self.stores.of_members()
    }

    /// The store of persistent actors' and versioned states, a machine called `states`.
    pub fn states(&self) -> &SimStore {
        self.stores.of_states()
    }

    /// The journal of reliable actors, a machine called `journal`.
    ///
    /// # Panics
    /// If the cluster was made without one.
    pub fn journal(&self) -> &SimStore {
        self.stores.of_turns().expect("this cluster was made without a journal: see `Stores`")
    }

    /// Starts the node called `name` and waits until it is a member, or is killed meanwhile; one that is up stays as it is. A
    /// node that is started for the first time belongs to the cluster from then on.
    ///
    /// # Panics
    /// If it cannot start, and says why: what is wrong with how it is put together at once, anything else when it has not
    /// become better within five minutes.
    pub async fn start(&self, name: &str) {
        self.nodes.borrow_mut().entry(name.to_owned()).or_default();
        if self.is_up(name) {
            return;
        }
        if std::mem::replace(&mut self.life(name).starts, true) {
            // Somebody else sees to it.
            self.life(name).again |= !self.sim.is_alive(name);
            return self.until(|| !self.life(name).starts).await;
        }
        // What is left of a process whose node has stopped.
        self.sim.crash(name);
        self.life(name).node = None;
        let until = self.sim.now() + START_PATIENCE;
        loop {
            let error = match self.try_start(name).await {
                None if std::mem::take(&mut self.life(name).again) => continue,
                None | Some(Ok(())) => break,
                Some(Err(error)) => error,
            };
            self.sim.note(format_args!("{name} could not start: {error}"));
            assert!(may_pass(&error), "node {name:?} cannot start: {error}");
            assert!(self.sim.now() < until, "node {name:?} has not started for {START_PATIENCE:?}: {error}");
            tokio::time::sleep(START_PAUSE).await;
        }
        self.life(name).starts = false;
    }

    /// `None` if it is killed before it is a member.
    async fn try_start(&self, name: &str) -> Option<Result<(), Error>> {
        let world = self.sim.node(name);
        let killed = async {
            while !world.is_dead() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let started = tokio::select! {
            biased;
            () = killed => return None,
            started = self.start_in(&world) => started,
        };
        Some(started.map(|node| {
            self.sim.note(format_args!("{name} is a member"));
            self.life(name).node = Some(node);
        }))
    }

    async fn start_in(&self, world: &Arc<SimNode>) -> Result<Node, Error> {
        let has_journal = self.journal.get();
        match self.build(world, has_journal).start().await {
            Err(Error::NoJournal { .. }) if !has_journal && self.stores.of_turns().is_some() => {
                self.journal.set(true);
                self.build(world, true).start().await
            }
            started => started,
        }
    }

    fn build(&self, world: &Arc<SimNode>, journal: bool) -> Builder {
        let name = world.name();
        let mut config = Config::default();
        config.name = name.to_owned();
        config.listen = format!("{name}:0");
        config.insecure_listen = true;
        config.shards = 1;
        let builder = Node::builder().config(config).world(world.clone());
        (self.build)(self.stores.equip(builder, name, journal), name)
    }

    /// Starts all of `names`, one after the other, and waits until each knows the others. One that stops by itself
    /// meanwhile, as the table may be bad, is started again.
    pub async fn start_all(&self, names: &[&str]) {
        for name in names {
            self.start(name).await;
        }
        while !self.know_each_other(names) {
            for name in names.iter().filter(|name| !self.is_up(name)) {
                self.start(name).await;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until all nodes that are up know each other, and no others: until those that have died are given up, and those
    /// that came are known.
    pub async fn settled(&self) {
        self.until(|| {
            let up: Vec<String> = self.names().into_iter().filter(|name| self.is_up(name)).collect();
            let up: Vec<&str> = up.iter().map(String::as_str).collect();
            self.know_each_other(&up)
        })
        .await;
    }

    /// Whether each of `names` knows these members and no others.
    pub fn know_each_other(&self, names: &[&str]) -> bool {
        names.iter().all(|name| {
            self.process(name).is_some_and(|node| {
                let members = node.members();
                members.len() == names.len() && names.iter().all(|name| members.iter().any(|member| member == name))
            })
        })
    }

    /// Waits until the node called `name` is down, as one is that was to [die at a moment](Self::crash_at).
    pub async fn until_down(&self, name: &str) {
        self.until(|| !self.is_up(name)).await;
    }

    /// The answer to `call`, which is made until there is one, for up to two minutes.
    ///
    /// # Panics
    /// If there is none by then: with the last error.
    pub async fn eventually<T, E: Debug, C>(&self, call: impl Fn() -> C) -> T
    where
        C: IntoFuture<Output = Result<T, E>>,
    {
        let until = self.sim.now() + PATIENCE;
        loop {
            match call().await {
                Ok(answer) => return answer,
                Err(error) => assert!(self.sim.now() < until, "no answer for {PATIENCE:?}: {error:?}"),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until `holds` does.
    pub(crate) async fn until(&self, holds: impl Fn() -> bool) {
        while !holds() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(crate) fn stores(&self) -> &Stores {
        &self.stores
    }

    /// # Panics
    /// If no node is called `name`.
    #[track_caller]
    pub(crate) fn check_node(&self, name: &str) {
        if !self.nodes.borrow().contains_key(name) {
            let names = self.names().join(", ");
            panic!("no node is called {name:?}; the cluster's are {names}. Others are named to `Cluster::named`");
        }
    }

    fn life(&self, name: &str) -> std::cell::RefMut<'_, Life> {
        std::cell::RefMut::map(self.nodes.borrow_mut(), |nodes| nodes.entry(name.to_owned()).or_default())
    }
}

/// Whether a node that could not start so may do so later: the table, the journal or the network was bad, or its cluster is
/// not in the list of clusters yet.
fn may_pass(error: &Error) -> bool {
    use Error::*;
    matches!(
        error,
        Table { .. } | Store { .. } | Journal { .. } | NotJoined { .. } | NameTaken { .. } | Halted { .. } | Geo { .. }
    )
}

/// Time for a node to start, whatever is wrong with its stores and the network meanwhile.
const START_PATIENCE: Duration = Duration::from_secs(300);
/// Time between two attempts.
const START_PAUSE: Duration = Duration::from_millis(500);
/// Time for a call that is made again and again.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
