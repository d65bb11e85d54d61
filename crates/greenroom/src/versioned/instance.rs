//! One instance of a versioned state: the pure worker, its accesses to the store, and who waits for what.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_protocols::bcas::{
    Action, Applied, Change, Config, Etag, Event, Record, Session, Waiter, Worker, Written,
};
use greenroom_protocols::gsi::ClusterId;
use greenroom_store::{StoreError, Version, Versioned};
use greenroom_world::{Stage, Timestamp};
use tokio::sync::oneshot;

use super::holding::Holding;
use super::{Rejected, VersionedStateWithOutput, record};
use crate::node::shared::Shared;
use crate::state::{Site, StateError};

/// What an update came to.
pub(super) type Outcome<S> = Applied<Holding<<S as VersionedStateWithOutput>::Output>, Rejected>;
type Do<S> = Action<Holding<S>>;
type Happened<S> = Event<Holding<S>>;

/// One instance of a versioned state, on the node that hosts its actor.
pub(super) struct Instance<S: VersionedStateWithOutput> {
    site: Site,
    node: Arc<Shared>,
    inner: Mutex<Inner<S>>,
}

struct Inner<S: VersionedStateWithOutput> {
    worker: Worker<Holding<S>>,
    session: Session,
    /// The tentative state, until something changes.
    tentative: Option<Arc<S>>,
    waiters: BTreeMap<Waiter, oneshot::Sender<()>>,
    outcomes: BTreeMap<u64, oneshot::Sender<Outcome<S>>>,
    last_waiter: u64,
    /// Whether a task sleeps until the worker's deadline.
    sleeping: bool,
    /// Updates that found no room, until somebody was told.
    refused: u64,
    /// What the store said last, while it fails.
    trouble: Option<String>,
    /// Whether the activation has ended: the store is left alone.
    ended: bool,
}

impl<S: VersionedStateWithOutput> Instance<S> {
    /// The instance of an activation, which knows nothing of the store yet.
    pub(super) fn new(site: Site, node: Arc<Shared>) -> Arc<Self> {
        // The number is drawn, not counted: activations' epochs begin anew with a new membership table.
        let session = Session { cluster: ClusterId::default(), epoch: node.world().random() };
        let inner = Inner {
            worker: Worker::new(session, Config { retry_after: RETRY_AFTER, ..Config::default() }),
            session,
            tentative: None,
            waiters: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            last_waiter: 0,
            sleeping: false,
            refused: 0,
            trouble: None,
            ended: false,
        };
        Arc::new(Self { site, node, inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the record for the first time. The sessions that it names were activations of this actor that can write no more:
    /// the store refuses what they have under way once this one has written.
    ///
    /// # Errors
    /// [`StateError::NotLoaded`].
    pub(super) async fn load(self: &Arc<Self>, limit: Option<Duration>) -> Result<(), StateError> {
        self.wait(Event::Refresh, limit).await.map_err(|why| StateError::not_loaded(self.site.key(), why))?;
        let (own, others) = {
            let inner = self.inner();
            (inner.session, inner.worker.sessions().collect::<Vec<_>>())
        };
        for session in others.into_iter().filter(|session| session.cluster == own.cluster && *session != own) {
            self.handle(Event::Fenced(session));
        }
        Ok(())
    }

    /// Adds a change to those that wait; its outcome comes by the receiver. `None` if there is no room.
    pub(super) fn enqueue(
        self: &Arc<Self>,
        change: Change<Holding<S::Update>>,
    ) -> Option<oneshot::Receiver<Outcome<S>>> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut inner = self.inner();
            if inner.worker.pending() >= PENDING_MAX {
                inner.refused += 1;
                return None;
            }
            let sequence = inner.worker.last_enqueued() + 1;
            inner.outcomes.insert(sequence, sender);
        }
        self.handle(Event::Enqueue(change));
        Some(receiver)
    }

    /// Waits until what `event` asks for is done. The error says what keeps it.
    async fn wait(
        self: &Arc<Self>,
        event: impl FnOnce(Waiter) -> Happened<S>,
        limit: Option<Duration>,
    ) -> Result<(), String> {
        let (sender, receiver) = oneshot::channel();
        let waiter = {
            let mut inner = self.inner();
            inner.last_waiter += 1;
            let waiter = Waiter(inner.last_waiter);
            inner.waiters.insert(waiter, sender);
            waiter
        };
        self.handle(event(waiter));
        let world = self.node.world();
        let patience = self.node.config().store_timeout;
        let until = world.now() + limit.map_or(patience, |limit| limit.min(patience));
        tokio::select! {
            biased;
            Ok(()) = receiver => return Ok(()),
            () = world.sleep_until(until) => {}
        }
        let mut inner = self.inner();
        inner.waiters.remove(&waiter);
        Err(inner.trouble.clone().unwrap_or_else(|| "the store has not answered in time".to_owned()))
    }

    /// Waits until all that is enqueued is confirmed.
    ///
    /// # Errors
    /// [`StateError::Unconfirmed`]; what waits is still tried. [`StateError::Overflow`] if updates were refused since
    /// the last time.
    pub(super) async fn confirm(self: &Arc<Self>, limit: Option<Duration>) -> Result<(), StateError> {
        self.tell_refused()?;
        self.wait(Event::Confirm, limit).await.map_err(|why| self.unconfirmed(why))
    }

    /// Waits until a version that is as new as this request is here, and all that is enqueued is confirmed.
    ///
    /// # Errors
    /// As for [`confirm`](Self::confirm).
    pub(super) async fn refresh(self: &Arc<Self>, limit: Option<Duration>) -> Result<(), StateError> {
        self.tell_refused()?;
        self.wait(Event::Refresh, limit).await.map_err(|why| self.unconfirmed(why))
    }

    pub(super) fn unconfirmed(&self, reason: impl ToString) -> StateError {
        StateError::Unconfirmed { state: self.site.key().to_owned(), reason: reason.to_string() }
    }

    pub(super) fn overflow(&self) -> StateError {
        StateError::Overflow { state: self.site.key().to_owned(), bound: PENDING_MAX as u64 }
    }

    fn tell_refused(&self) -> Result<(), StateError> {
        match std::mem::take(&mut self.inner().refused) {
            0 => Ok(()),
            _ => Err(self.overflow()),
        }
    }

    pub(super) fn tentative(&self) -> Arc<S> {
        let mut inner = self.inner();
        let Inner { worker, tentative, .. } = &mut *inner;
        tentative.get_or_insert_with(|| worker.tentative().0).clone()
    }

    pub(super) fn confirmed(&self) -> (Arc<S>, super::Version) {
        let inner = self.inner();
        let (state, version) = inner.worker.confirmed();
        (state.0.clone(), version)
    }

    pub(super) fn pending(&self) -> usize {
        self.inner().worker.pending()
    }

    /// Leaves the store alone from here on.
    pub(super) fn end(&self) {
        self.inner().ended = true;
    }

    /// Tells the machine what has happened, and does what it says.
    fn handle(self: &Arc<Self>, event: Happened<S>) {
        let mut actions = Vec::new();
        let mut inner = self.inner();
        if inner.ended {
            return;
        }
        inner.tentative = None;
        inner.worker.handle(self.node.world().now(), event, &mut actions);
        for action in actions {
            match action {
                Action::Outcome(sequence, outcome) => {
                    // Most of them nobody waits for.
                    let _ = inner.outcomes.remove(&sequence).map(|sender| sender.send(outcome));
                }
                Action::Done(waiter) => {
                    let _ = inner.waiters.remove(&waiter).map(|sender| sender.send(()));
                }
                access @ (Action::Read | Action::Write { .. }) => {
                    let this = self.clone();
                    let task = async move {
                        let event = this.access(access).await;
                        this.handle(event);
                    };
                    self.node.world().spawn(Stage::Store, Box::pin(task));
                }
                // There are no other instances: the cluster's directory sees to that.
                Action::Notify(..) | Action::Delegate(_) => {}
            }
        }
        if let Some(deadline) = inner.worker.deadline()
            && !std::mem::replace(&mut inner.sleeping, true)
        {
            self.node.world().spawn(Stage::Store, Box::pin(self.clone().tick_at(deadline)));
        }
    }

    async fn tick_at(self: Arc<Self>, deadline: Timestamp) {
        self.node.world().sleep_until(deadline).await;
        self.inner().sleeping = false;
        self.handle(Event::Tick);
    }

    /// Carries out the one access to the store that is under way.
    async fn access(&self, access: Do<S>) -> Happened<S> {
        let (event, trouble) = match access {
            _ if !self.node.fence_open() => match access {
                Action::Read => (Event::ReadFailed, Some(FENCED.to_owned())),
                _ => (Event::Written(Written::Unknown), Some(FENCED.to_owned())),
            },
            Action::Write { expect, record } => self.write(expect, &record).await,
            _ => self.read().await,
        };
        let failed = trouble.is_some();
        self.inner().trouble = trouble;
        if failed && matches!(event, Event::Written(_)) {
            // Before it is looked at again: a store may answer at once that it cannot.
            let world = self.node.world();
            world.sleep_until(world.now() + RETRY_AFTER).await;
        }
        event
    }

    async fn read(&self) -> (Happened<S>, Option<String>) {
        match self.site.store().read(self.site.key(), self.node.config().store_timeout).await {
            Ok(None) => (Event::Read(None), None),
            Ok(Some(Versioned { value, version })) => match record::open::<S>(&value) {
                Ok(record) => (Event::Read(Some((record, etag(&version)))), None),
                Err(why) => (Event::ReadFailed, Some(why)),
            },
            Err(error) => (Event::ReadFailed, Some(error.to_string())),
        }
    }

    async fn write(&self, expect: Option<Etag>, record: &Record<Holding<S>>) -> (Happened<S>, Option<String>) {
        let (store, key, timeout) = (self.site.store(), self.site.key(), self.node.config().store_timeout);
        let sealed = match record::seal(record) {
            Ok(sealed) => sealed,
            Err(why) => return (Event::Written(Written::Unknown), Some(format!("it cannot be encoded: {why}"))),
        };
        let written = match expect {
            None => store.create(key, sealed, timeout).await,
            Some(expect) => store.replace(key, sealed, &Version::new(&*expect.0), timeout).await,
        };
        match written {
            Ok(version) => (Event::Written(Written::Applied(etag(&version))), None),
            Err(StoreError::Conflict { .. }) => (Event::Written(Written::Conflict), None),
            Err(error) => (Event::Written(Written::Unknown), Some(error.to_string())),
        }
    }
}

fn etag(version: &Version) -> Etag {
    Etag(version.as_str().into())
}

/// Updates of one instance that may wait.
pub(super) const PENDING_MAX: usize = 65_536;
/// Between two tries of a store that fails.
const RETRY_AFTER: Duration = Duration::from_millis(100);
const FENCED: &str = "this node's lease has run out; retry the call, another node will answer";
