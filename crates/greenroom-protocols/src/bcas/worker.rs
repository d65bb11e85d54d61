//! The worker loop of one instance.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::{
    Action, Added, Applied, Batch, Change, Config, Etag, Event, Outcomes, Record, Session, Trouble, Version, Versioned,
    Waiter, Written,
};
use crate::time::Timestamp;

/// One instance of a versioned state; see the [module](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Worker<S: Versioned> {
    session: Session,
    config: Config,
    confirmed: Record<S>,
    /// The stored record's tag, once it is known; inside, none if there is no record.
    base: Option<Option<Etag>>,
    pending: VecDeque<Pending<S>>,
    /// The last sequence number given.
    last: u64,
    /// The last sequence number known to be in the stored state.
    settled: u64,
    access: Option<Access<S>>,
    attempts: u64,
    retry_at: Option<Timestamp>,
    /// Whether the record must be read before anything is believed or written.
    reread: bool,
    /// The tag that the last write asked for, if it was refused and the store has not been read since.
    refused: Option<Option<Etag>>,
    /// Whether the store does not say yet that the state goes on as a new incarnation.
    anew: bool,
    conflicts: u32,
    /// In the order of what they wait for.
    confirming: VecDeque<(Waiter, u64)>,
    /// What was enqueued before them, they wait for too.
    refreshing: Vec<(Waiter, u64)>,
    /// What other instances asked us to write, and until when.
    foreign: BTreeMap<Session, (Batch<S::Update>, Timestamp)>,
    fenced: BTreeSet<Session>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Pending<S: Versioned> {
    sequence: u64,
    change: Change<S::Update>,
    /// What the last attempt of this instance gave.
    tried: Option<Applied<S::Output, S::Error>>,
    /// What it came to, as the instance says that has written it.
    told: Option<Applied<S::Output, S::Error>>,
    /// Whether another instance may have written it.
    delegated: bool,
}

/// The one access to the store, and who it serves.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Access<S: Versioned> {
    /// Also the version that was confirmed when it began, and whether there was a record.
    Read(Vec<(Waiter, u64)>, Version, bool),
    /// Also the tag that must be there.
    Write(Option<Etag>, Record<S>, Vec<(Waiter, u64)>, Vec<Told<S>>),
    /// Also the version that was the latest here.
    Delegated { last: u64, until: Timestamp, seen: Version },
}

impl<S: Versioned> Worker<S> {
    /// The worker of the activation that is `session`.
    pub fn new(session: Session, config: Config) -> Self {
        let session = if config.checks.own_session { session } else { Session { epoch: 0, ..session } };
        Self {
            session,
            config,
            confirmed: Record::default(),
            base: None,
            pending: VecDeque::new(),
            last: 0,
            settled: 0,
            access: None,
            attempts: 0,
            retry_at: None,
            reread: false,
            refused: None,
            anew: false,
            conflicts: 0,
            confirming: VecDeque::new(),
            refreshing: Vec::new(),
            foreign: BTreeMap::new(),
            fenced: BTreeSet::new(),
        }
    }

    /// Notes whether this instance is far from the store and knows one that is near, as the clusters have changed.
    pub fn set_far(&mut self, far: bool) {
        self.config.far = far;
    }

    /// The last state known to be in the one sequence, and its place there.
    pub fn confirmed(&self) -> (&S, Version) {
        (&self.confirmed.state, self.confirmed.version)
    }

    /// The confirmed state with the pending updates on top.
    pub fn tentative(&self) -> S {
        let mut record = self.confirmed.clone();
        for pending in &self.pending {
            record.apply(self.session, pending.sequence, &pending.change, self.config.checks);
        }
        record.state
    }

    /// The confirmed record and its tag, if the store is known to have had one.
    pub fn record(&self) -> Option<(&Record<S>, &Etag)> {
        Some((&self.confirmed, self.base.as_ref()?.as_ref()?))
    }

    /// The sessions that the confirmed record names.
    pub fn sessions(&self) -> impl Iterator<Item = Session> {
        self.confirmed.sessions.keys().copied()
    }

    /// The sequence number of the last enqueued update.
    pub fn last_enqueued(&self) -> u64 {
        self.last
    }

    /// How many updates are not confirmed.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// When `handle` next wants a [`Event::Tick`].
    pub fn deadline(&self) -> Option<Timestamp> {
        match self.access {
            Some(Access::Delegated { until, .. }) => Some(until),
            Some(_) => None,
            None => self.retry_at,
        }
    }

    /// Applies `event` at `now`, appending what must happen to `out`, in order. Never fails.
    pub fn handle(&mut self, now: Timestamp, event: Event<S>, out: &mut Vec<Action<S>>) {
        match event {
            Event::Enqueue(change) => {
                self.last += 1;
                let (sequence, tried, told) = (self.last, None, None);
                self.pending.push_back(Pending { sequence, change, tried, told, delegated: false });
            }
            Event::Confirm(waiter) => self.confirming.push_back((waiter, self.last)),
            Event::Refresh(waiter) => self.refreshing.push((waiter, self.last)),
            Event::Read(found) => self.read(now, found, out),
            Event::ReadFailed => {
                if let Some(Access::Read(served, ..)) = self.access.take() {
                    self.refreshing.extend(served);
                    self.retry_at = Some(now + self.config.retry_after);
                }
            }
            Event::Written(written) => self.written(written, out),
            Event::Notified(record, etag) => {
                if record.version > self.confirmed.version {
                    let trims = self.config.checks.trim_notified;
                    self.adopt(record, Some(etag), trims, out);
                }
            }
            Event::Fenced(session) => _ = self.fenced.insert(session),
            Event::Delegated(batch) => self.delegated(now, batch, out),
            Event::Told(outcomes) => self.told(outcomes),
            Event::Tick => self.tick(now),
        }
        let settled = self.settled;
        while let Some((waiter, _)) = self.confirming.pop_front_if(|(_, at)| *at <= settled) {
            out.push(Action::Done(waiter));
        }
        self.step(now, out);
        self.check_invariants();
    }

    /// What holds between two events, whatever the store and other instances say.
    fn check_invariants(&self) {
        let first = self.pending.front().map_or(self.last + 1, |pending| pending.sequence);
        assert_eq!(first + self.pending.len() as u64, self.last + 1, "an update that waits has been lost");
        let waiter = self.confirming.front();
        assert!(waiter.is_none_or(|(_, at)| self.settled < *at), "what is confirmed is waited for");
        debug_assert!(self.confirming.iter().is_sorted_by_key(|(_, at)| *at), "who waits for less waits longer");
        let waits = !self.pending.is_empty() || !self.refreshing.is_empty() || self.reread || self.anew;
        let goes_on = self.access.is_some() || self.retry_at.is_some();
        assert!(!waits || goes_on, "something waits, and the store will not be asked");
    }

    /// Starts the next access to the store, if there is work and none is under way.
    fn step(&mut self, now: Timestamp, out: &mut Vec<Action<S>>) {
        if self.access.is_some() || self.retry_at.is_some_and(|at| at > now) {
            return;
        }
        self.retry_at = None;
        if self.base.is_some() && self.config.checks.sequence {
            let confirmed = &self.confirmed;
            let checks = self.config.checks;
            self.foreign.retain(|session, (batch, _)| {
                (batch.first..=batch.last()).contains(&confirmed.applied(*session).saturating_add(1))
            });
            let forgotten =
                self.foreign.extract_if(.., |session, (batch, _)| !confirmed.counts(*session, batch.seen, checks));
            // Who sees that it may be forgotten writes by itself.
            if forgotten.count() > 0
                && let Some(Some(etag)) = &self.base
            {
                out.push(Action::Notify(confirmed.clone(), etag.clone()));
            }
        }
        // Who sent it has long written it directly, or is gone; and its session may be collected.
        self.foreign.retain(|_, (_, until)| *until > now);
        let works = !self.pending.is_empty() || !self.foreign.is_empty() || self.anew;
        let hopeless = self.base.is_none() || self.conflicts >= CONFLICTS_MAX;
        if self.config.far && hopeless && !self.pending.is_empty() {
            self.delegate(now, out);
        } else if self.reread || works && self.base.is_none() || !works && !self.refreshing.is_empty() {
            let (version, had) = (self.confirmed.version, matches!(self.base, Some(Some(_))));
            self.access = Some(Access::Read(std::mem::take(&mut self.refreshing), version, had));
            out.push(Action::Read);
        } else if works {
            self.write(out);
        }
    }

    /// Writes the confirmed state with everything that waits.
    fn write(&mut self, out: &mut Vec<Action<S>>) {
        let (checks, mut record) = (self.config.checks, self.confirmed.clone());
        let (mut room, mut added) = (Room::of(&self.config), Vec::new());
        for pending in &mut self.pending {
            if !room.takes::<S>(&pending.change) {
                break;
            }
            pending.tried = record.apply(self.session, pending.sequence, &pending.change, checks);
            added.extend(pending.tried.as_ref().map(|outcome| outcome.added(&pending.change, record.version)));
        }
        let mut told: Vec<Told<S>> = Vec::new();
        'foreign: for (batch, _) in self.foreign.values() {
            let mut outcomes = Vec::new();
            for (sequence, change) in (batch.first..).zip(&batch.changes) {
                if checks.sequence && record.applied(batch.session) >= sequence {
                    continue;
                }
                if !room.takes::<S>(change) {
                    told.push((batch.session, outcomes));
                    break 'foreign;
                }
                if let Some(outcome) = record.apply(batch.session, sequence, change, checks) {
                    added.push(outcome.added(change, record.version));
                    outcomes.push((sequence, outcome));
                }
            }
            told.push((batch.session, outcomes));
        }
        let fenced = |session: &Session| self.fenced.contains(session) || !checks.fenced;
        let Record { sessions, floors, version, .. } = &mut record;
        let collected = |session: &&Session| **session != self.session && fenced(session) && self.config.delegates;
        floors.extend(sessions.keys().filter(collected).map(|session| (session.cluster, *version)));
        record.sessions.retain(|session, _| *session == self.session || !fenced(session));
        assert!(added.len() <= self.config.batch_len_max.max(1), "a write takes more than its bound");
        debug_assert!(added.is_empty() || self.confirmed.version < record.version, "a write goes back in the sequence");
        self.attempts += 1;
        record.salt = (self.session, self.attempts);
        let expect = self.base.clone().flatten();
        let served = std::mem::take(&mut self.refreshing);
        self.access = Some(Access::Write(expect.clone(), record.clone(), served, told));
        out.push(Action::Write { expect, record, added });
    }

    fn read(&mut self, now: Timestamp, found: Option<(Record<S>, Etag)>, out: &mut Vec<Action<S>>) {
        let Some(Access::Read(served, from, had)) = self.access.take() else { return };
        self.reread = false;
        let tag = found.as_ref().map(|(_, etag)| etag.clone());
        if self.refused.take() == Some(tag) {
            self.retry_at = Some(now + self.config.retry_after);
            out.push(Action::Trouble(Trouble::Refused));
        }
        match found {
            Some((record, etag)) => {
                let known = self.record().map(|(known, tag)| (known.salt, tag));
                let is_known = known == Some((record.salt, &etag));
                let is_other = known.is_some_and(|(salt, _)| salt != record.salt);
                if is_known {
                    // It is the one that is here, perhaps as a new incarnation already.
                } else if record.version < from || is_other && record.version == self.confirmed.version {
                    self.follow(now, Some((record, etag)), out);
                } else if record.version >= self.confirmed.version {
                    self.adopt(record, Some(etag), self.config.checks.trim, out);
                }
            }
            None if had => self.follow(now, None, out),
            // It was read before the record was written that came meanwhile.
            None if self.record().is_some() => {}
            None => self.base = Some(None),
        }
        self.finish(served, out);
    }

    /// The store has gone back behind what it had: what is there now counts, and all that waits comes on top of it. It goes on
    /// as a new incarnation, so that nobody sees a version again with another state in it.
    fn follow(&mut self, now: Timestamp, found: Option<(Record<S>, Etag)>, out: &mut Vec<Action<S>>) {
        let before = self.confirmed.version;
        let (mut record, etag) = found.map_or_else(Default::default, |(record, etag)| (record, Some(etag)));
        out.push(Action::Trouble(Trouble::WentBack { before, found: etag.is_some().then_some(record.version) }));
        record.version.incarnation = before.incarnation + 1;
        self.keep_place(&mut record);
        self.adopt(record, etag, self.config.checks.trim, out);
        self.anew = self.record().is_some();
        self.retry_at = Some(now + self.config.retry_after);
    }

    fn written(&mut self, written: Written, out: &mut Vec<Action<S>>) {
        let Some(Access::Write(expect, record, served, told)) = self.access.take() else { return };
        match written {
            Written::Applied(etag) => {
                self.conflicts = 0;
                let told = told.into_iter().filter(|(_, outcomes)| !outcomes.is_empty());
                out.extend(told.map(|(session, outcomes)| Action::Tell(session, outcomes)));
                out.push(Action::Notify(record.clone(), etag.clone()));
                if record.version >= self.confirmed.version {
                    self.adopt(record, Some(etag), true, out);
                }
                self.finish(served, out);
            }
            Written::Conflict | Written::Unknown => {
                self.conflicts += 1;
                self.refreshing.extend(served);
                self.reread = true;
                self.refused = (written == Written::Conflict).then_some(expect);
            }
        }
    }

    /// Replaces the confirmed record, and trims what it says is applied.
    fn adopt(&mut self, mut record: Record<S>, etag: Option<Etag>, trims: bool, out: &mut Vec<Action<S>>) {
        let applied = record.applied(self.session);
        if record.salt == (self.session, self.attempts) {
            // The last attempt has done it, whoever was asked before.
            for pending in self.pending.iter_mut().take_while(|pending| pending.sequence <= applied) {
                pending.delegated = false;
            }
        }
        let (before, found) = (self.confirmed.version, Some(record.version));
        if self.keep_place(&mut record) {
            out.push(Action::Trouble(Trouble::WentBack { before, found }));
        }
        debug_assert!(before <= record.version, "the confirmed version goes back");
        self.confirmed = record;
        self.base = Some(etag);
        self.anew = false;
        if trims {
            self.settled = self.settled.max(self.confirmed.applied(self.session));
            self.trim(out);
            let confirmed = &self.confirmed;
            self.foreign.retain(|session, (batch, _)| confirmed.applied(*session) < batch.last());
        }
        let (own, checks) = (self.session, self.config.checks);
        let is_over = |access: &mut Access<S>| match access {
            Access::Delegated { last, seen, .. } => *last <= self.settled || !self.confirmed.counts(own, *seen, checks),
            Access::Read(..) | Access::Write(..) => false,
        };
        if self.access.take_if(is_over).is_some() {
            self.conflicts = 0;
        }
    }

    /// Whether a record with these sessions lacks updates of this instance that were confirmed: the store went back, and perhaps on
    /// since.
    pub fn misses(&self, sessions: &BTreeMap<Session, u64>) -> bool {
        sessions.get(&self.session).copied().unwrap_or(0) < self.settled
    }

    /// In a record that lacks some of its updates, the next update of this instance is the next one still.
    fn keep_place(&self, record: &mut Record<S>) -> bool {
        let lacks = self.misses(&record.sessions);
        if lacks {
            record.sessions.insert(self.session, self.settled);
        }
        lacks
    }

    fn trim(&mut self, out: &mut Vec<Action<S>>) {
        let settled = self.settled;
        while let Some(pending) = self.pending.pop_front_if(|pending| pending.sequence <= settled) {
            let tried = pending.tried.filter(|_| !pending.delegated);
            out.push(Action::Outcome(pending.sequence, pending.told.or(tried).unwrap_or(Applied::Confirmed)));
        }
    }

    /// The latest version is here: those who waited for it are done once what they enqueued is confirmed.
    fn finish(&mut self, served: Vec<(Waiter, u64)>, out: &mut Vec<Action<S>>) {
        for (waiter, at) in served {
            if self.settled >= at {
                out.push(Action::Done(waiter));
            } else {
                let place = self.confirming.partition_point(|(_, other)| *other <= at);
                self.confirming.insert(place, (waiter, at));
            }
        }
    }

    /// Sends everything that waits to the instance nearest the store.
    fn delegate(&mut self, now: Timestamp, out: &mut Vec<Action<S>>) {
        let Some(first) = self.pending.front().map(|pending| pending.sequence) else { return };
        for pending in &mut self.pending {
            pending.delegated = true;
        }
        let changes = self.pending.iter().map(|pending| pending.change.clone()).collect();
        let seen = self.confirmed.version;
        self.access = Some(Access::Delegated { last: self.last, until: now + self.config.delegate_timeout, seen });
        out.push(Action::Delegate(Batch { session: self.session, first, seen, changes }));
    }

    /// Takes on another instance's batch; one that is confirmed already is answered at once.
    fn delegated(&mut self, now: Timestamp, batch: Batch<S::Update>, out: &mut Vec<Action<S>>) {
        let has_end = batch.first.checked_add(batch.changes.len() as u64).is_some();
        if batch.changes.is_empty() || !has_end || self.fenced.contains(&batch.session) {
            return;
        }
        if self.confirmed.applied(batch.session) >= batch.last() && self.config.checks.sequence {
            if let Some(Some(etag)) = self.base.clone() {
                out.push(Action::Notify(self.confirmed.clone(), etag));
            }
        } else {
            self.foreign.insert(batch.session, (batch, now + FOREIGN_FOR));
        }
    }

    /// Notes what came out of updates that another instance has written.
    fn told(&mut self, outcomes: Outcomes<S>) {
        for (sequence, outcome) in outcomes {
            let place = self.pending.binary_search_by_key(&sequence, |pending| pending.sequence);
            if let Some(pending) = place.ok().and_then(|at| self.pending.get_mut(at)) {
                pending.told = Some(outcome);
            }
        }
    }

    fn tick(&mut self, now: Timestamp) {
        if matches!(self.access, Some(Access::Delegated { until, .. }) if until <= now) {
            self.access = None;
            self.conflicts = 0;
            self.reread = true;
            self.base.get_or_insert(None);
        }
    }
}

/// What one write still takes.
struct Room {
    len: usize,
    weight: usize,
    is_whole: bool,
}

impl Room {
    fn of(config: &Config) -> Self {
        Self { len: config.batch_len_max.max(1), weight: config.batch_weight_max, is_whole: true }
    }

    /// Whether `change` goes in too; the first one always does.
    fn takes<S: Versioned>(&mut self, change: &Change<S::Update>) -> bool {
        let weight = match change {
            Change::Update(update) if self.weight < usize::MAX => S::weight(update),
            _ => 0,
        };
        let fits = self.is_whole || self.len > 0 && weight <= self.weight;
        if fits {
            self.is_whole = false;
            self.len -= 1;
            if self.weight < usize::MAX {
                self.weight = self.weight.saturating_sub(weight);
            }
        }
        fits
    }
}

impl<O, E: Clone> Applied<O, E> {
    /// What `change` was, which has come to this and to `version`.
    fn added<S: Versioned<Error = E>>(&self, change: &Change<S::Update>, version: Version) -> Added<S> {
        let rejected = match self {
            Self::Rejected(error) => Some(error.clone()),
            Self::Output(_) | Self::Confirmed => None,
        };
        Added { change: change.clone(), version, rejected }
    }
}

/// What a session's updates came to.
type Told<S> = (Session, Outcomes<S>);

/// How long batches of other instances are tried: longer than their senders wait.
const FOREIGN_FOR: Duration = Duration::from_secs(10);
/// Races lost in a row after which an instance far from the store delegates.
const CONFLICTS_MAX: u32 = 2;
