//! The world as one node sees it.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use greenroom_world::{BoxFuture, Listener, Stage, Stream, ThreadBody, Timestamp, World};

use crate::clock::Clock;
use crate::executor;
use crate::incarnation::Incarnation;
use crate::listener;
use crate::shared::{Shared, lock};

/// One life of a simulated node, from its start to its crash: the [`World`] that the library is given.
///
/// After a crash it is useless: what is spawned on it is dropped, and [`Sim::node`](crate::Sim::node) gives the next one.
pub struct SimNode {
    pub(crate) shared: Arc<Shared>,
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) clock: Clock,
    pub(crate) name: String,
}

impl SimNode {
    /// The node's name, which is also its host name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts the lives of the node of this name, from 1.
    pub fn incarnation(&self) -> u32 {
        self.incarnation.number
    }

    /// True from its crash on.
    pub fn is_dead(&self) -> bool {
        self.incarnation.is_dead()
    }

    /// True between [`Sim::pause`](crate::Sim::pause) and [`Sim::resume`](crate::Sim::resume).
    pub fn is_paused(&self) -> bool {
        self.incarnation.is_paused()
    }

    /// Runs `task`, which need not be `Send`, until it ends or the node crashes.
    pub fn spawn_local(&self, name: &str, task: impl Future<Output = ()> + 'static) {
        let name = format!("{name} of {}", self.name);
        executor::spawn(&self.shared, Some(self.incarnation.clone()), &name, Box::pin(task));
    }
}

impl World for SimNode {
    fn now(&self) -> Timestamp {
        self.clock.at(self.shared.now())
    }

    fn wall(&self) -> Duration {
        let ahead = lock(&self.shared.core).machines[self.incarnation.machine].wall_ahead;
        self.shared.wall() + ahead
    }

    fn random(&self) -> u64 {
        lock(&self.shared.core).random.bits()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<()> {
        let when = self.clock.when(at).map(|when| self.shared.start + when);
        Box::pin(async move {
            match when {
                Some(when) => tokio::time::sleep_until(when).await,
                None => pending().await,
            }
        })
    }

    fn spawn(&self, stage: Stage, task: BoxFuture<()>) {
        let name = match stage {
            Stage::Control => "a control task",
            Stage::Door => "a door task",
            Stage::Store => "a store task",
            Stage::Inspection => "an inspection task",
        };
        self.spawn_local(name, task);
    }

    fn start_shard(&self, name: String, body: ThreadBody) -> io::Result<()> {
        self.spawn_local(&name, async move { body().await });
        Ok(())
    }

    fn start_blocking(&self, name: String, body: ThreadBody) -> io::Result<()> {
        self.start_shard(name, body)
    }

    fn listen(&self, address: &str) -> BoxFuture<io::Result<Box<dyn Listener>>> {
        let (shared, node, address) = (self.shared.clone(), self.incarnation.clone(), address.to_owned());
        Box::pin(async move { listener::listen(&shared, &node, &address) })
    }

    fn connect(&self, address: &str) -> BoxFuture<io::Result<Box<dyn Stream>>> {
        Box::pin(listener::connect(self.shared.clone(), self.incarnation.clone(), address.to_owned()))
    }

    fn spin(&self) -> Duration {
        Duration::ZERO
    }
}
