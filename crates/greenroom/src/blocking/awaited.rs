//! A closure on its way, as its turn sees it.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use greenroom_world::{BoxFuture, Timestamp};
use tokio::sync::oneshot;

use super::error::NotBegun;
use super::pool::{Ended, Pool, Value, Work};
use super::{BlockingPool, keep};
use crate::actor::cancelled::Cancelled;
use crate::here::Here;
use crate::here::port::Port;
use crate::shard::Shard;
use crate::shard::late::last_moment;

/// Resolves when a closure has run on a thread that it may block: made by [`Cx::blocking`](crate::Cx::blocking).
///
/// # Cancel safety
/// Dropped before the closure has begun, the closure never runs. Dropped later, it runs to its end, and what it gives is dropped.
#[must_use = "the closure runs when this is awaited"]
pub struct Blocking<T> {
    awaited: Awaited,
    gives: PhantomData<fn() -> T>,
}

/// The same, of a closure whose type nobody knows: all that users' crates compile is the shell around it.
struct Awaited {
    port: Arc<Port>,
    phase: Phase,
}

enum Phase {
    New(Work),
    Out(Out),
    Over,
}

/// A closure that the pool has.
struct Out {
    pool: Arc<Pool>,
    number: u64,
    answer: oneshot::Receiver<Ended>,
    /// What keeps it from beginning, while it waits.
    watch: Option<Watch>,
}

struct Watch {
    since: Timestamp,
    cancelled: Cancelled,
    late: Option<BoxFuture<()>>,
}

impl<T: Send + 'static> Blocking<T> {
    pub(super) fn new(port: Arc<Port>, work: impl FnOnce() -> T + Send + 'static) -> Self {
        let work: Work = Box::new(move || Box::new(work()));
        Self { awaited: Awaited { port, phase: Phase::New(work) }, gives: PhantomData }
    }
}

impl<T: Send + 'static> Future for Blocking<T> {
    type Output = Result<T, NotBegun>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.awaited.poll(context).map_ok(|value| *value.downcast().expect("it is what the closure gives"))
    }
}

impl Awaited {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, NotBegun>> {
        let mut out = match mem::replace(&mut self.phase, Phase::Over) {
            Phase::New(work) => begin(&self.port.node, work)?,
            Phase::Out(out) => out,
            Phase::Over => panic!("a closure's end is awaited once"),
        };
        let polled = out.poll(&self.port.node, context);
        if polled.is_pending() {
            self.phase = Phase::Out(out);
        }
        polled
    }
}

/// Hands a closure over to the pool, for the current turn if there is one.
fn begin(here: &Arc<Here>, work: Work) -> Result<Out, NotBegun> {
    let pool = &here.part::<BlockingPool>().0;
    let (deadline, given_up) = Shard::with(|shard| match shard {
        Some(shard) => (shard.current_deadline(), shard.current_is_cancelled()),
        None => (Timestamp::NEVER, false),
    });
    let now = here.world().now();
    if given_up {
        pool.refuse();
        return Err(if deadline <= now { late(pool, Duration::ZERO) } else { NotBegun::Abandoned });
    }
    let taken = pool.submit(here.world(), work)?;
    if taken.is_first {
        keep(here, pool);
    }
    let until = last_moment(Duration::ZERO, now, deadline);
    let late = (until != Timestamp::NEVER).then(|| here.world().sleep_until(until));
    let watch = Watch { since: now, cancelled: Cancelled::new(), late };
    Ok(Out { pool: pool.clone(), number: taken.number, answer: taken.answer, watch: Some(watch) })
}

fn late(pool: &Pool, waited: Duration) -> NotBegun {
    NotBegun::Late { waited_ms: waited.as_millis() as u64, threads: pool.counts().threads_max as u64 }
}

impl Out {
    fn poll(&mut self, here: &Here, context: &mut Context<'_>) -> Poll<Result<Value, NotBegun>> {
        match Pin::new(&mut self.answer).poll(context) {
            Poll::Ready(Ok(Ok(value))) => return Poll::Ready(Ok(value)),
            // The turn fails as if it had panicked itself.
            Poll::Ready(Ok(Err(panic))) => resume_unwind(panic),
            // The pool has closed over it.
            Poll::Ready(Err(_)) => return Poll::Ready(Err(NotBegun::Stopping)),
            Poll::Pending => {}
        }
        let Some(watch) = &mut self.watch else { return Poll::Pending };
        let why = if watch.late.as_mut().is_some_and(|at| at.as_mut().poll(context).is_ready()) {
            late(&self.pool, here.world().now().since(watch.since))
        } else if Pin::new(&mut watch.cancelled).poll(context).is_ready() {
            NotBegun::Abandoned
        } else {
            return Poll::Pending;
        };
        self.watch = None;
        // What has begun goes on, and its turn with it: what it does is part of the turn.
        if self.pool.withdraw(self.number) { Poll::Ready(Err(why)) } else { Poll::Pending }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.pool.withdraw(self.number);
    }
}

impl<T> fmt::Debug for Blocking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Blocking")
    }
}
