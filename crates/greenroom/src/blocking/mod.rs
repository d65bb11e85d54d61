//! Work that blocks its thread: it goes to a pool of the node, so that the shard of its actor goes on with others.
//!
//! A turn awaits a closure (`awaited.rs`), which waits in the pool's one bounded queue (`pool.rs`). The pool has a fixed number of
//! threads, or as many as the machine of `greenroom_protocols::threads` says by what is measured (`sizing.rs`). Nothing of it is
//! there before the first closure comes.

mod awaited;
mod error;
mod method;
mod pool;
pub(crate) mod settings;
mod sizing;
mod status;
#[cfg(test)]
mod tests;

use std::future::pending;
use std::sync::Arc;
use std::thread;

use greenroom_world::Stage;

pub use self::awaited::Blocking;
pub use self::error::NotBegun;
pub use self::method::on_a_thread;
use self::pool::Pool;
use self::settings::Threads;
use self::sizing::WINDOW;
pub(crate) use self::status::status;
pub use self::status::{PoolStatus, StallingMethod};
use crate::actor::cx::Cx;
use crate::here::Here;
use crate::here::figures::Figures;
use crate::here::parts::Part;

/// A node's part.
pub(crate) struct BlockingPool(Arc<Pool>);

impl BlockingPool {
    pub(crate) fn new(settings: &Threads) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Pool::new(settings, cores as f64)))
    }
}

impl Part for BlockingPool {
    fn report(&self, figures: &mut Figures) {
        let counts = self.0.counts();
        for (name, help, now) in [
            ("greenroom_blocking_threads", "Threads for what blocks.", counts.threads),
            ("greenroom_blocking_threads_max", "Threads for what blocks that there may be now.", counts.threads_max),
            ("greenroom_blocking_waiting", "Closures that wait for such a thread.", counts.waiting),
        ] {
            figures.put(name, help, now as f64);
        }
        for (name, help, count) in [
            ("greenroom_blocking_begun_total", "Closures that had a thread for what blocks.", counts.begun),
            ("greenroom_blocking_done_total", "Those of them that have ended.", counts.done),
            (
                "greenroom_blocking_refused_total",
                "Closures that never began: too many, too late, given up.",
                counts.refused,
            ),
        ] {
            figures.count(name, help, count);
        }
        let waited = counts.waited.as_secs_f64();
        figures.put("greenroom_blocking_wait_seconds_total", "Time that closures waited which began.", waited);
    }
}

/// Looks after the pool from its first closure on: gives it its size, and ends its threads with the node.
fn keep(here: &Arc<Here>, pool: &Arc<Pool>) {
    let (node, pool) = (here.clone(), pool.clone());
    let keeping = async move {
        let world = node.world();
        loop {
            let window = async {
                match pool.is_sized() {
                    true => world.sleep_until(world.now() + WINDOW).await,
                    false => pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = node.halted() => return pool.close(),
                () = window => pool.window(world, world.now()),
            }
        }
    };
    here.world().spawn(Stage::Control, Box::pin(keeping));
}

impl Cx {
    /// Runs `work` on a thread that it may block, and gives what it gives: `let sum = cx.blocking(move || checksum(&file)).await?;`.
    ///
    /// An actor that blocks its own thread holds up all others there. A turn that awaits a closure is like one that awaits anything
    /// else: an exclusive one keeps the actor to itself meanwhile, and the others on its thread go on. The closure gets what it works
    /// on by value, and knows nothing of the turn.
    ///
    /// Closures wait in one queue of the node for its pool of threads, until the turn's deadline is near or nobody waits for the
    /// turn any more. One that has begun runs to its end, and the turn waits for it. If it panics, the turn does:
    /// its caller hears [`Doubt::Panicked`](crate::Doubt::Panicked), and the activation restarts clean. In a simulated world closures
    /// run one after the other and take no time: there they must not wait for what others do.
    ///
    /// The table `[threads]` of the node's configuration says how many threads there are and how many closures may wait
    /// ([`Threads`](crate::Threads)).
    ///
    /// # Errors
    /// [`NotBegun`]: nothing of the closure has run.
    pub fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
        Blocking::new(self.port.clone(), work)
    }
}
