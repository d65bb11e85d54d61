//! One instance of a versioned state: its protocol, its accesses to the store, and who waits for what.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_protocols::bcas::Versioned as _;
use greenroom_protocols::directory::Epoch;
use greenroom_store::{Commit, Journal, Store, StoreError, Versioned};
use greenroom_world::{Stage, Timestamp};
use tokio::sync::{oneshot, watch};

use super::elsewhere::{Delivery, Letter};
use super::protocol::{
    Access, Action, Answer, Applied, Change, ConsistencyProtocol, Etag, Event, Log, Now, OutputValue, Place, Session,
    StateValue, Types, UpdateValue, Version, Waiter, Written,
};
use super::tally::{Asked, Tally};
use super::values::Writing;
use super::{Rejected, protocols};
use crate::actor::cx::Cx;
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::state::early::Claim;
use crate::state::{StateError, updates_of};

/// What an update came to.
pub(super) type Outcome = Applied<OutputValue, Rejected>;

/// One instance of a versioned state, on the node that hosts its actor.
pub(super) struct Instance {
    actor: ActorId,
    epoch: Epoch,
    field: &'static str,
    /// The key of its record.
    key: String,
    store: Arc<dyn Store>,
    journal: Option<Arc<dyn Journal>>,
    types: Types,
    node: Arc<Here>,
    /// What is asked of it, if that is counted.
    tally: Option<Tally>,
    inner: Mutex<Inner>,
}

struct Inner {
    protocol: Box<dyn ConsistencyProtocol>,
    /// The sequence number of the last update.
    last: u64,
    /// The tentative state, until something else than an own update changes it.
    tentative: Option<StateValue>,
    waiters: BTreeMap<Waiter, oneshot::Sender<()>>,
    outcomes: BTreeMap<u64, oneshot::Sender<Outcome>>,
    last_waiter: u64,
    /// Tells subscribers of new versions, once there have been any.
    versions: Option<watch::Sender<(StateValue, Version)>>,
    /// Until when a task sleeps for the protocol, if one does.
    sleeping: Option<Timestamp>,
    /// Updates that found no room, until somebody was told.
    refused: u64,
    /// Its record, if it is read since before this activation began.
    early: Option<Claim>,
    /// What keeps the others, for people.
    trouble: Option<String>,
    /// Whether another cluster may have an instance of the actor, of which there should be one only.
    doubtful: bool,
    /// Whether it does not stay, and has what the one that stays is to confirm.
    yields: bool,
    /// Whether the activation has ended: the store is left alone.
    ended: bool,
}

/// An update that has been taken in, or why not.
pub(super) enum Taken {
    /// Its outcome comes here.
    Waits(oneshot::Receiver<Outcome>),
    /// There is no room.
    Full,
    /// It cannot be an update.
    Rejected(String),
}

impl Instance {
    /// The instance of an activation, which knows nothing of other instances yet.
    ///
    /// # Errors
    /// What the node lacks for it.
    pub(super) fn new(cx: &Cx, field: &'static str, types: Types) -> Result<Arc<Self>, String> {
        let node = cx.port.node.clone();
        let actor = cx.id().clone();
        let updates = node.in_force(actor.kind, &updates_of(field));
        let types = types.under(Writing { state: node.in_force(actor.kind, field), updates });
        let site = cx.site(field)?;
        let options = node.kinds().find(actor.kind).map(|kind| kind.options());
        let store = options.as_ref().map_or("", |options| options.store);
        let settings = node.config().kinds.get(actor.kind.name());
        let protocol = node.protocol_of(actor.kind.name(), options.as_ref().map_or("", |options| options.protocol));
        let journal = node.stores().journal(store).cloned();
        let registry = node.versioned();
        let around =
            registry.post().elsewhere().map(|elsewhere| elsewhere.around(actor.kind.name(), actor.key.as_str()));
        let around = around.unwrap_or_default();
        let counts = registry.post().elsewhere().is_some_and(|elsewhere| elsewhere.counts(actor.kind.name()));
        let tally = counts.then(|| Tally::new(around.here));
        let place = Place {
            // The number is drawn, not counted: activations' epochs begin anew with a new membership table.
            session: Session { cluster: around.here, epoch: node.world().random() },
            epoch: cx.epoch(),
            types,
            around,
            journal: journal.as_ref().map(|journal| journal.limits()),
            snapshot_every: settings.and_then(|settings| settings.snapshot_every).unwrap_or(SNAPSHOT_EVERY),
            retry_after: RETRY_AFTER,
        };
        if let Some(why) = protocols::unshared(&protocol, &place.around, node.stores().is_shared(store)) {
            return Err(why);
        }
        if protocol == protocols::LOG && journal.is_none() {
            return Err(format!("protocol \"log\" wants a journal, which the store {store:?} of its kind is not"));
        }
        let unknown = || format!("there is no protocol called {protocol:?}");
        let mut inner = Inner {
            protocol: registry.instance(&protocol, place).ok_or_else(unknown)?,
            last: 0,
            tentative: None,
            waiters: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            last_waiter: 0,
            versions: None,
            sleeping: None,
            refused: 0,
            early: None,
            trouble: None,
            doubtful: cx.is_doubtful(),
            yields: false,
            ended: false,
        };
        let (store, key) = site.into_parts();
        inner.early = node.claim(&actor, cx.epoch, &key);
        let (epoch, doubtful) = (cx.epoch, inner.doubtful);
        let instance =
            Arc::new(Self { actor, epoch, field, key, store, journal, types, node, tally, inner: Mutex::new(inner) });
        if doubtful {
            instance.handle(Event::Doubtful(true));
        }
        instance.node.versioned().post().enter(&instance);
        Ok(instance)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what the current turn asks, if that is counted.
    pub(super) fn note(&self, asked: Asked) {
        if let Some(tally) = &self.tally {
            tally.note(asked);
        }
    }

    pub(super) fn tally(&self) -> Option<&Tally> {
        self.tally.as_ref()
    }

    /// Kind, key and field.
    pub(super) fn name(&self) -> (String, String, String) {
        (self.actor.kind.name().to_owned(), self.actor.key.as_str().to_owned(), self.field.to_owned())
    }

    /// Makes the state what it must be before the actor may activate.
    ///
    /// # Errors
    /// [`StateError::NotLoaded`].
    pub(super) async fn load(self: &Arc<Self>, limit: Option<Duration>) -> Result<(), StateError> {
        // Callers of an adaptive actor may have written elsewhere what they read here.
        if !self.inner().protocol.loads() && self.tally.is_none() {
            self.handle(Event::Tick);
            return Ok(());
        }
        self.wait(Event::Refresh, limit).await.map_err(|why| StateError::not_loaded(&self.key, why))
    }

    /// Adds a change to those that wait.
    pub(super) fn enqueue(self: &Arc<Self>, change: Change<UpdateValue>) -> Taken {
        let (sender, receiver) = oneshot::channel();
        let sequence = {
            let mut inner = self.inner();
            if inner.protocol.pending() + inner.protocol.kept() >= PENDING_MAX {
                inner.refused += 1;
                return Taken::Full;
            }
            if let (Some(most), Change::Update(update)) = (inner.protocol.update_bytes_max(), &change) {
                match update.encode() {
                    Ok(bytes) if bytes.len() <= most => {}
                    Ok(bytes) => {
                        return Taken::Rejected(format!("it has {} bytes, at most {most} are kept", bytes.len()));
                    }
                    Err(why) => return Taken::Rejected(format!("it cannot be encoded: {why}")),
                }
            }
            inner.last += 1;
            let sequence = inner.last;
            inner.outcomes.insert(sequence, sender);
            sequence
        };
        self.handle(Event::Enqueue(sequence, change));
        Taken::Waits(receiver)
    }

    /// Waits until what `event` asks for is done. The error says what keeps it.
    async fn wait(
        self: &Arc<Self>,
        event: impl FnOnce(Waiter) -> Event,
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
            // An error means that no waiting helps.
            told = receiver => if told.is_ok() { return Ok(()) },
            () = world.sleep_until(until) => {}
        }
        let mut inner = self.inner();
        inner.waiters.remove(&waiter);
        Err(inner.trouble.clone().unwrap_or_else(|| "no answer has come in time".to_owned()))
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
        StateError::Unconfirmed { state: self.key.clone(), reason: reason.to_string() }
    }

    pub(super) fn overflow(&self) -> StateError {
        StateError::Overflow { state: self.key.clone(), bound: PENDING_MAX as u64 }
    }

    fn tell_refused(&self) -> Result<(), StateError> {
        match std::mem::take(&mut self.inner().refused) {
            0 => Ok(()),
            _ => Err(self.overflow()),
        }
    }

    pub(super) fn tentative(&self) -> StateValue {
        let mut inner = self.inner();
        let Inner { protocol, tentative, .. } = &mut *inner;
        tentative.get_or_insert_with(|| protocol.tentative()).clone()
    }

    pub(super) fn confirmed(&self) -> (StateValue, Version) {
        self.inner().protocol.confirmed()
    }

    pub(super) fn pending(&self) -> usize {
        self.inner().protocol.pending()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<(StateValue, Version)> {
        let mut inner = self.inner();
        let Inner { protocol, versions, .. } = &mut *inner;
        let mut receiver = versions.get_or_insert_with(|| watch::Sender::new(protocol.confirmed())).subscribe();
        // What is there now is the first that is seen.
        receiver.mark_changed();
        receiver
    }

    pub(super) fn types(&self) -> Types {
        self.types
    }

    /// The record's key, the journal, and the time that an access to it may take.
    pub(super) fn archive(&self) -> Option<(&str, &dyn Journal, Duration)> {
        let journal = self.journal.as_deref()?;
        Some((&self.key, journal, self.node.config().store_timeout))
    }

    /// Leaves the store and the others alone from here on. What nobody else has confirmed is counted.
    pub(super) fn end(self: &Arc<Self>) {
        let lost = {
            let inner = self.inner();
            if inner.yields && !inner.ended { inner.protocol.pending() } else { 0 }
        };
        let post = self.node.versioned().post();
        if lost > 0
            && let Some(elsewhere) = post.elsewhere()
        {
            tracing::error!(
                state = self.key,
                updates = lost,
                "a duplicate has ended, and the instance that stays has not confirmed its updates"
            );
            elsewhere.lost(&self.key, lost);
        }
        self.handle(Event::Ends);
        post.leave(self);
    }

    /// Has what only this instance has confirmed by the one in another cluster that stays.
    ///
    /// # Errors
    /// [`StateError::Unconfirmed`]: it is lost when this one ends.
    pub(super) async fn yields(self: &Arc<Self>) -> Result<(), StateError> {
        {
            let mut inner = self.inner();
            if inner.protocol.kept() == 0 {
                return Ok(());
            }
            inner.yields = true;
        }
        let (world, config) = (self.node.world(), self.node.config());
        let until = world.now() + config.deactivating_timeout.mul_f64(YIELDS_FOR);
        let others = self.node.versioned().post().elsewhere().map(|elsewhere| elsewhere.apart());
        self.handle(Event::Yields(others.unwrap_or_default()));
        loop {
            let left = until.since(world.now());
            match self.wait(Event::Confirm, Some(left)).await {
                Ok(()) => return Ok(()),
                Err(why) if until <= world.now() => return Err(self.unconfirmed(why)),
                Err(_) => {}
            }
        }
    }

    /// Tells the protocol if the doubts have ended whether it is the only instance.
    fn look_for_doubts(self: &Arc<Self>) {
        let directory = self.node.directory().filter(|_| self.inner().doubtful);
        if directory.is_some_and(|directory| !directory.is_doubtful(&self.actor, self.epoch)) {
            self.inner().doubtful = false;
            self.handle(Event::Doubtful(false));
        }
    }

    /// Tells the protocol what has happened, and does what it says.
    pub(super) fn handle(self: &Arc<Self>, event: Event) {
        if let Event::Enqueue(..) | Event::Received { .. } | Event::Tick = event {
            self.look_for_doubts();
        }
        let ends = matches!(event, Event::Ends);
        let world = self.node.world();
        let now = Now { clock: world.now(), wall: world.wall() };
        let (mut actions, mut letters) = (Vec::new(), Vec::new());
        let mut inner = self.inner();
        if inner.ended {
            return;
        }
        match (&event, inner.tentative.take()) {
            (Event::Enqueue(_, Change::Update(update)), Some(tentative)) => {
                let mut next = tentative.clone();
                inner.tentative = Some(if next.apply(update).is_ok() { next } else { tentative });
            }
            (Event::Confirm(_) | Event::Refresh(_), tentative) => inner.tentative = tentative,
            _ => {}
        }
        inner.protocol.handle(now, event, &mut actions);
        for action in actions {
            match action {
                Action::Outcome(sequence, outcome) => {
                    // Most of them nobody waits for.
                    let _ = inner.outcomes.remove(&sequence).map(|sender| sender.send(outcome));
                }
                Action::Done(waiter) => {
                    let _ = inner.waiters.remove(&waiter).map(|sender| sender.send(()));
                }
                Action::Trouble(why) => inner.trouble = Some(why),
                Action::Warning(why) => tracing::warn!(state = self.key, "{why}"),
                Action::Send { to, delivery, message } => letters.push((to, self.letter(delivery, message))),
                Action::Access(access) => {
                    let this = self.clone();
                    let task = async move {
                        let answer = this.access(access).await;
                        this.handle(Event::Answered(answer));
                    };
                    world.spawn(Stage::Store, Box::pin(task));
                }
            }
        }
        if ends {
            inner.ended = true;
            // Its subscribers' streams end.
            inner.versions = None;
        }
        let Inner { protocol, versions, .. } = &mut *inner;
        if let Some(versions) = versions {
            let latest = protocol.confirmed();
            versions.send_if_modified(|seen| {
                latest.1 != seen.1 && {
                    *seen = latest;
                    true
                }
            });
        }
        if let Some(deadline) = inner.protocol.deadline().filter(|_| !ends)
            && inner.sleeping.is_none_or(|until| deadline < until)
        {
            inner.sleeping = Some(deadline);
            world.spawn(Stage::Store, Box::pin(self.clone().tick_at(deadline)));
        }
        drop(inner);
        // Another activation may have begun once this node's lease has run out.
        if let Some(elsewhere) = self.node.versioned().post().elsewhere().filter(|_| self.node.fence_open()) {
            for (to, letter) in letters {
                elsewhere.send(to, letter);
            }
        }
    }

    fn letter(&self, delivery: Delivery, message: bytes::Bytes) -> Letter {
        let (kind, key, field) = self.name();
        Letter { kind, key, field, delivery, message: message.into() }
    }

    /// Asks anew who is around it.
    pub(super) fn look_around(self: &Arc<Self>) {
        if let Some(elsewhere) = self.node.versioned().post().elsewhere() {
            let around = elsewhere.around(self.actor.kind.name(), self.actor.key.as_str());
            self.handle(Event::Around(around));
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.node.world().now()
    }

    async fn tick_at(self: Arc<Self>, deadline: Timestamp) {
        self.node.world().sleep_until(deadline).await;
        {
            let mut inner = self.inner();
            if inner.sleeping == Some(deadline) {
                inner.sleeping = None;
            }
        }
        self.handle(Event::Tick);
    }

    /// Carries out the one access to the store that is under way.
    async fn access(&self, access: Access) -> Answer {
        let is_write = matches!(access, Access::Write { .. });
        let done = if self.node.fence_open() { self.reach(access).await } else { Err(Failed::passing(FENCED)) };
        match done {
            Ok(answer) => {
                self.inner().trouble = None;
                answer
            }
            Err(Failed { why, permanent }) => {
                {
                    let mut inner = self.inner();
                    inner.trouble = Some(why);
                    if permanent {
                        // Who waits hears of it now.
                        inner.waiters.clear();
                    }
                }
                // Before it is looked at again: a store may answer at once that it cannot.
                let pause = if permanent { RETRY_PERMANENT } else { RETRY_AFTER };
                if is_write || permanent {
                    let world = self.node.world();
                    world.sleep_until(world.now() + pause).await;
                }
                if is_write { Answer::Written(Written::Unknown) } else { Answer::Failed }
            }
        }
    }

    async fn reach(&self, access: Access) -> Result<Answer, Failed> {
        let timeout = self.node.config().store_timeout;
        let failed = |error: StoreError| Failed { permanent: error.is_permanent(), why: error.to_string() };
        match access {
            Access::Read => {
                let early = self.inner().early.take();
                let own = self.store.read(&self.key, timeout);
                let found = match early {
                    Some(early) => early.or(own).await,
                    None => own.await,
                };
                let found = found.map_err(failed)?;
                Ok(Answer::Record(found.map(|Versioned { value, version }| (value, etag(&version)))))
            }
            Access::Write { expect, record, appends } => match self.write(expect, record, appends, timeout).await {
                Ok(version) => Ok(Answer::Written(Written::Applied(etag(&version)))),
                Err(StoreError::Conflict { .. }) => Ok(Answer::Written(Written::Conflict)),
                Err(error) => Err(failed(error)),
            },
            Access::Entries { log, from, limit } => {
                let name = self.log(log);
                self.journal()?.entries(&name, from, limit, timeout).await.map(Answer::Entries).map_err(failed)
            }
            Access::End(log) => {
                let name = self.log(log);
                self.journal()?.end(&name, timeout).await.map(Answer::End).map_err(failed)
            }
        }
    }

    async fn write(
        &self,
        expect: Option<Etag>,
        record: bytes::Bytes,
        appends: Vec<(Log, bytes::Bytes)>,
        timeout: Duration,
    ) -> Result<greenroom_store::Version, StoreError> {
        let expect = expect.map(|etag| greenroom_store::Version::new(&*etag.0));
        let (Some(journal), false) = (&self.journal, appends.is_empty()) else {
            return match expect {
                None => self.store.create(&self.key, record, timeout).await,
                Some(expect) => self.store.replace(&self.key, record, &expect, timeout).await,
            };
        };
        let mut commit = match expect {
            None => Commit::new().create(self.key.as_str(), record),
            Some(expect) => Commit::new().replace(self.key.as_str(), record, &expect),
        };
        for (log, entry) in appends {
            commit = commit.append(self.log(log), entry);
        }
        let committed = journal.commit(commit, timeout).await?;
        committed.versions.into_iter().next().flatten().ok_or_else(|| StoreError::Unknown {
            key: self.key.clone(),
            reason: "the journal has not told the record's version".to_owned(),
        })
    }

    fn journal(&self) -> Result<&Arc<dyn Journal>, Failed> {
        self.journal.as_ref().ok_or_else(|| Failed::passing("the store is no journal"))
    }

    fn log(&self, log: Log) -> String {
        log_name(log, &self.key)
    }
}

/// Why an access to the store came to nothing, and whether the same one always will.
struct Failed {
    why: String,
    permanent: bool,
}

impl Failed {
    fn passing(why: &str) -> Self {
        Self { why: why.to_owned(), permanent: false }
    }
}

/// The name of a log of the state whose record has this key.
pub(super) fn log_name(log: Log, key: &str) -> String {
    match log {
        Log::Updates => format!("updates/{key}"),
        Log::Snapshots => format!("snapshots/{key}"),
    }
}

fn etag(version: &greenroom_store::Version) -> Etag {
    Etag(version.as_str().into())
}

/// Updates of one instance that may wait.
pub(super) const PENDING_MAX: usize = 65_536;
/// Between two tries of a store that fails.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// The same where the store refuses what is asked: only another state, or an operator, changes that.
const RETRY_PERMANENT: Duration = Duration::from_secs(5);
/// How much of an activation's last time a state in it has for what the instance that stays is to confirm.
const YIELDS_FOR: f64 = 0.8;
/// Updates between two snapshots of a log, unless the configuration says otherwise.
const SNAPSHOT_EVERY: u64 = 1000;
const FENCED: &str = "this node's lease has run out; retry the call, another node will answer";
