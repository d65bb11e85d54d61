//! Stores that are slow, out of order or out of reach.

use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use greenroom_store::{Journal, Page, Result, Store, StoreError, Version, Versioned};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::crashes::{Edge, Trap, springs};
use crate::faults::StoreFaults;
use crate::shared::lock;
use crate::sim::Sim;

mod journal;

/// A store behind a network and its faults. It is a machine of its own name: a partition can put a node and the store on
/// different sides. Clones are the same store; nodes use it through [`SimStore::seen_by`].
#[derive(Clone)]
pub struct SimStore {
    sim: Sim,
    name: Arc<str>,
    inner: Arc<dyn Store>,
    journal: Option<Arc<dyn Journal>>,
    serves: Arc<AtomicBool>,
    traps: Arc<Mutex<Traps>>,
    aside: bool,
}

/// The store as one node reaches it.
struct Seen {
    store: SimStore,
    node: Arc<str>,
}

/// What the seed has in mind for a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fine,
    /// Refused, and said so.
    Refused,
    /// Never carried out, and nobody says so.
    LostRequest,
    /// Carried out, and nobody says so.
    LostAnswer,
    /// Carried out some time after the caller was told that nobody knows.
    Late,
}

impl SimStore {
    /// Puts `inner` on a machine called `name`.
    pub fn new(sim: &Sim, name: &str, inner: Arc<dyn Store>) -> Self {
        sim.shared.with(|core, _| core.machine(name));
        let serves = Arc::new(AtomicBool::new(true));
        Self { sim: sim.clone(), name: name.into(), inner, journal: None, serves, traps: Arc::default(), aside: false }
    }

    /// Puts `journal` on a machine called `name`: nodes may use it through [`SimStore::journal_seen_by`] too.
    pub fn journal(sim: &Sim, name: &str, journal: Arc<dyn Journal>) -> Self {
        Self { journal: Some(journal.clone()), ..Self::new(sim, name, journal) }
    }

    /// Keeps what nodes do to it out of the last lines of a failure's report: for a membership table, whose leases are renewed
    /// all the time.
    pub fn aside(mut self) -> Self {
        self.aside = true;
        self
    }

    /// Crashes the node called `node` at the `nth` write that it makes here from now on, counted from 1; commits are writes,
    /// too. Before, the write never reaches the store; after, it is applied, and the node has not heard of that.
    ///
    /// # Panics
    /// If `nth` is 0.
    pub fn crash_at_write(&self, node: &str, edge: Edge, nth: u64) {
        lock(&self.traps).writes.push(Trap::new(node, edge, nth));
    }

    /// As [`SimStore::crash_at_write`], counting commits alone.
    ///
    /// # Panics
    /// If `nth` is 0.
    pub fn crash_at_commit(&self, node: &str, edge: Edge, nth: u64) {
        lock(&self.traps).commits.push(Trap::new(node, edge, nth));
    }

    /// The name of its machine.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The store as the node called `node` reaches it.
    pub fn seen_by(&self, node: &str) -> Arc<dyn Store> {
        Arc::new(Seen { store: self.clone(), node: node.into() })
    }

    /// Begins (`false`) or ends (`true`) an outage.
    pub fn serve(&self, serves: bool) {
        if self.serves.swap(serves, Ordering::Relaxed) != serves {
            let what = if serves { "serves again" } else { "has an outage" };
            self.sim.note(format_args!("{} {what}", self.name));
        }
    }

    /// False during an outage.
    pub fn serves(&self) -> bool {
        self.serves.load(Ordering::Relaxed)
    }

    fn fate(&self, faults: &StoreFaults) -> Fate {
        let random = &mut lock(&self.sim.shared.core).random;
        let unclear = |choice| [Fate::LostRequest, Fate::LostAnswer, Fate::Late][choice];
        if !self.serves() {
            return if random.chance(0.5) { Fate::Refused } else { unclear(random.index(3)) };
        }
        if random.chance(faults.not_applied) {
            return Fate::Refused;
        }
        if random.chance(faults.unknown) { unclear(random.index(3)) } else { Fate::Fine }
    }
}

impl Seen {
    /// Sends an operation to the store and waits for its answer, `patience` at most. What was sent goes on without the
    /// caller: its crash does not take it back.
    async fn ask<T: Send + 'static>(
        &self,
        what: Asked,
        key: &str,
        patience: Duration,
        operation: BoxFuture<'static, Result<T>>,
    ) -> Result<T> {
        let SimStore { sim, name, .. } = &self.store;
        let Some(life) = sim.life(&self.node) else { return pending().await };
        if self.springs(what, Edge::Before) {
            sim.crash_soon(&self.node, &format!("just before it would {what} {key} in {name}"));
            return pending().await;
        }
        let faults = lock(&sim.shared.core).faults.store.clone();
        let fate = self.store.fate(&faults);
        let [there, back, late] = sim.shared.with(|core, _| {
            let half = |time: Duration| time / 2;
            [
                half(core.random.within(&faults.delay)),
                half(core.random.within(&faults.delay)),
                core.random.within(&faults.late),
            ]
        });
        if fate == Fate::Refused {
            sleep(there).await;
            self.note(format!("{name} refuses {} to {what} {key}", self.node));
            return Err(self.unavailable());
        }
        let (answer, answered) = oneshot::channel();
        if fate != Fate::LostRequest {
            let (way, key, life) = (self.way(), key.to_owned(), Some(life));
            sim.spawn(async move {
                way.pass(there).await;
                if fate == Fate::Late {
                    sleep(patience + late).await;
                }
                let result = operation.await;
                if what != Asked::Read {
                    let done = if result.is_ok() { "is applied" } else { "fails" };
                    way.note(format!("{}: {} of {key} by {} {done}", way.store.name, what, way.node));
                }
                let sim = &way.store.sim;
                if result.is_ok() && sim.life(&way.node) == life && way.springs(what, Edge::After) {
                    sim.crash_soon(&way.node, "before it hears of that");
                    return;
                }
                if fate == Fate::Fine && way.answer(back).await {
                    // The caller may be gone; nobody else wants the answer.
                    answer.send(result).ok();
                }
            });
        } else {
            drop((answer, operation));
        }
        let Ok(Ok(result)) = timeout(patience, self.patient(answered, patience)).await else {
            self.note(format!("{name} does not answer {} who would {what} {key}", self.node));
            return Err(match what {
                Asked::Read => self.unavailable(),
                Asked::Write | Asked::Commit | Asked::Trim => {
                    StoreError::Unknown { key: key.into(), reason: "no answer came in time".into() }
                }
            });
        };
        result
    }

    /// The answer; one that will never come is waited for all the same, as nobody says so.
    async fn patient<T>(
        &self,
        answered: oneshot::Receiver<T>,
        patience: Duration,
    ) -> Result<T, oneshot::error::RecvError> {
        match answered.await {
            Ok(result) => Ok(result),
            Err(never) => {
                sleep(patience).await;
                Err(never)
            }
        }
    }

    /// Counts an act of the node; true if it is to crash there.
    fn springs(&self, what: Asked, edge: Edge) -> bool {
        let mut traps = lock(&self.store.traps);
        let at_write = matches!(what, Asked::Write | Asked::Commit) && springs(&mut traps.writes, &self.node, edge);
        let at_commit = what == Asked::Commit && springs(&mut traps.commits, &self.node, edge);
        at_write || at_commit
    }

    fn note(&self, text: String) {
        self.store.sim.record_note(text, self.store.aside);
    }

    fn way(&self) -> Self {
        Self { store: self.store.clone(), node: self.node.clone() }
    }

    /// Goes from the node to the store; a cut holds it up until it is healed.
    async fn pass(&self, delay: Duration) {
        sleep(delay).await;
        while self.store.sim.is_cut(&self.node, &self.store.name) {
            sleep(RETRANSMIT).await;
        }
    }

    /// Goes back; false if a cut swallows the answer.
    async fn answer(&self, delay: Duration) -> bool {
        sleep(delay).await;
        !self.store.sim.is_cut(&self.store.name, &self.node)
    }

    fn unavailable(&self) -> StoreError {
        StoreError::Unavailable { store: self.store.name.to_string(), reason: "a simulated outage".into() }
    }
}

impl Store for Seen {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        let (inner, owned) = (self.store.inner.clone(), key.to_owned());
        let operation = Box::pin(async move { inner.read(&owned, timeout).await });
        Box::pin(self.ask(Asked::Read, key, timeout, operation))
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        let (inner, owned) = (self.store.inner.clone(), key.to_owned());
        let operation = Box::pin(async move { inner.create(&owned, value, timeout).await });
        Box::pin(self.ask(Asked::Write, key, timeout, operation))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        let (inner, owned, expected) = (self.store.inner.clone(), key.to_owned(), expected.clone());
        let operation = Box::pin(async move { inner.replace(&owned, value, &expected, timeout).await });
        Box::pin(self.ask(Asked::Write, key, timeout, operation))
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        let (inner, owned, expected) = (self.store.inner.clone(), key.to_owned(), expected.clone());
        let operation = Box::pin(async move { inner.delete(&owned, &expected, timeout).await });
        Box::pin(self.ask(Asked::Write, key, timeout, operation))
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        let (inner, owned, after) = (self.store.inner.clone(), prefix.to_owned(), after.map(str::to_owned));
        let operation = Box::pin(async move { inner.scan(&owned, after.as_deref(), limit, timeout).await });
        Box::pin(self.ask(Asked::Read, prefix, timeout, operation))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Read,
    Write,
    /// A write of several keys at once.
    Commit,
    /// A removal of what a log no longer needs.
    Trim,
}

/// Crashes at writes to come.
#[derive(Default)]
struct Traps {
    /// At writes of all kinds.
    writes: Vec<Trap>,
    commits: Vec<Trap>,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Commit => "commit",
            Self::Trim => "trim",
        })
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} as seen by {}", self.store, self.node)
    }
}

impl fmt::Debug for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimStore({})", self.name)
    }
}

/// Pause between two attempts to get through a cut.
const RETRANSMIT: Duration = Duration::from_millis(100);
