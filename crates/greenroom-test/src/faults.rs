//! What a scenario does to its nodes and its network.

use std::time::Duration;

use greenroom::Drained;
use greenroom_sim::Nemesis;

use crate::cluster::Cluster;
use crate::moment::{Act, Moment};

impl Cluster {
    /// Kills the node called `name`, as `kill -9` does: nothing of it runs any more, no hook of its actors is called. Other
    /// nodes see their connections reset, or hear nothing at all with the probability that [`Faults`](crate::Faults) give.
    pub fn kill(&self, name: &str) {
        self.check_node(name);
        self.sim().crash(name);
    }

    /// Kills the node called `name`, and starts it again.
    ///
    /// # Panics
    /// As [`Cluster::start`].
    pub async fn restart(&self, name: &str) {
        self.kill(name);
        self.start(name).await;
    }

    /// Kills the node called `name` when it has come to its `nth` such moment from now on, counted from 1.
    ///
    /// A moment that never comes kills nobody: [`Cluster::until_down`] and [`Cluster::is_up`] tell. What the library itself
    /// saves, sends and commits for the actors counts as well, so take the `nth` from the seed and run many.
    ///
    /// # Panics
    /// If `nth` is 0, and for commits where the cluster was made without a journal.
    pub fn crash_at(&self, name: &str, moment: Moment, nth: u64) {
        self.check_node(name);
        let edge = moment.edge();
        match moment.act() {
            Act::Save => self.states().crash_at_write(name, edge, nth),
            Act::Commit => self.journal().crash_at_commit(name, edge, nth),
            Act::Send => self.sim().crash_at_message(name, edge, nth),
        }
    }

    /// Lets nothing pass between two machines, both ways, until [`Cluster::heal`]: nodes, or a node and one of the stores
    /// `table`, `states` and `journal`.
    pub fn cut(&self, one: &str, other: &str) {
        self.check_machine(one);
        self.check_machine(other);
        self.sim().partition(&[one], &[other]);
    }

    /// Cuts the node called `name` off from all other nodes and from all stores, until [`Cluster::heal`].
    pub fn cut_off(&self, name: &str) {
        self.check_node(name);
        let stores = ["table", "states", "journal"].map(str::to_owned);
        let others = self.names().into_iter().chain(stores.into_iter().filter(|store| self.stores().has(store)));
        for other in others.filter(|other| other != name) {
            self.cut(name, &other);
        }
    }

    /// Undoes all cuts: what they held back arrives on the connections that still live.
    pub fn heal(&self) {
        self.sim().heal();
    }

    /// Stops the node called `name` where it is, until [`Cluster::resume`], as `SIGSTOP` does: its clock and its lease go on.
    pub fn pause(&self, name: &str) {
        self.check_node(name);
        self.sim().pause(name);
    }

    /// Lets a paused node go on.
    pub fn resume(&self, name: &str) {
        self.check_node(name);
        self.sim().resume(name);
    }

    /// Has the node called `name` hand over what it has, leave the cluster and end, as a rolling restart does: [`Cluster::start`]
    /// starts it again.
    ///
    /// # Panics
    /// If it is down.
    pub async fn drain(&self, name: &str) -> Drained {
        let drained = self.node(name).drain().await;
        self.sim().crash(name);
        drained
    }

    /// Starts nodes again that have stopped by themselves, half a second later, for as long as the scenario lasts: what a
    /// process supervisor does. Those that were killed stay down.
    pub fn supervise(&self) {
        let this = self.clone();
        self.sim().spawn(async move {
            loop {
                tokio::time::sleep(SUPERVISED_EVERY).await;
                for name in this.names() {
                    if this.process(&name).is_some_and(|node| node.is_stopped()) {
                        this.sim().note(format_args!("{name} has stopped and is started again"));
                        this.start_soon(&name);
                    }
                }
            }
        });
    }

    /// Faults at random against all nodes, crashes among them: `cluster.nemesis().run(Duration::from_secs(30)).await`. Nodes
    /// that crash are started again; for those that stop by themselves see [`Cluster::supervise`]. For outages give it a store:
    /// `.store(cluster.states())`.
    pub fn nemesis(&self) -> Nemesis {
        let names = self.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let this = self.clone();
        Nemesis::new(self.sim(), &names)
            .restart(move |name| this.start_soon(name))
            .lease(Duration::from_secs(4))
            .lasting(Duration::from_millis(500)..Duration::from_secs(8))
            .gap(Duration::from_millis(200)..Duration::from_secs(4))
    }

    /// Starts the node called `name` in the background.
    pub fn start_soon(&self, name: &str) {
        let (this, name) = (self.clone(), name.to_owned());
        self.sim().spawn(async move { this.start(&name).await });
    }

    fn check_machine(&self, name: &str) {
        if !self.stores().has(name) {
            self.check_node(name);
        }
    }
}

const SUPERVISED_EVERY: Duration = Duration::from_millis(500);
