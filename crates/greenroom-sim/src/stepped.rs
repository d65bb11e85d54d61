//! A simulation in parts: between them nothing happens.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use crate::executor::{self, Open};
use crate::shared::Shared;
use crate::sim::Sim;

/// A simulation whose scenario comes in parts, by [`Builder::stepped`](crate::Builder::stepped). There is one on a thread.
pub struct Stepped {
    sim: Sim,
    local: LocalSet,
    runtime: Runtime,
    table: Option<Open>,
}

impl Stepped {
    pub(crate) fn new(runtime: Runtime, shared: Arc<Shared>) -> Self {
        Self { sim: Sim { shared }, local: LocalSet::new(), runtime, table: Some(Open::table()) }
    }

    /// The simulation.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Tasks of tokio's own that somebody has spawned and that have not ended.
    pub fn spawned(&self) -> usize {
        self.runtime.metrics().num_alive_tasks()
    }

    /// Runs a part of the scenario to its end. As long as it waits for nothing, no time passes and nothing else runs.
    ///
    /// # Panics
    /// When the part or a node's task does, when virtual time passes the deadline, and when tasks run on and on without time
    /// passing.
    pub fn run<T: 'static>(&self, part: impl Future<Output = T> + 'static) -> T {
        let mut part = Box::pin(part);
        let first = {
            let _runtime = self.runtime.enter();
            let _local = self.local.enter();
            part.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        };
        if let Poll::Ready(result) = first {
            return result;
        }
        let (done, result) = (Rc::new(Cell::new(false)), Rc::new(RefCell::new(None)));
        let ended = (done.clone(), result.clone());
        let whole = async move {
            *ended.1.borrow_mut() = Some(part.await);
            ended.0.set(true);
        };
        let shared = self.sim.shared.clone();
        executor::spawn(&shared, None, "the scenario", Box::pin(whole));
        self.runtime.block_on(self.local.run_until(executor::drive(shared, &done)));
        result.take().expect("the part is done and has left its result")
    }
}

impl Drop for Stepped {
    fn drop(&mut self) {
        let _runtime = self.runtime.enter();
        // What is left of the nodes is dropped where the clock is theirs.
        self.table = None;
    }
}
