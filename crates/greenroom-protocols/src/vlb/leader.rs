//! The one that holds the latest version.

use std::collections::{BTreeMap, BTreeSet};

use super::{Applied, Config, LeaderEpoch, Note, Numbered, Session, Snapshot, Submission, Version, Versioned};
use crate::gsi::ClusterId;
use crate::time::Timestamp;

/// The leader of one state; see the [module](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Leader<S: Versioned> {
    epoch: LeaderEpoch,
    config: Config,
    latest: Snapshot<S>,
    /// What is waited for before anything is accepted.
    collecting: Option<Collecting<S>>,
    /// The instances of each cluster, in the order in which they were last heard: the last one is there.
    members: BTreeMap<ClusterId, Vec<Session>>,
    retired: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Collecting<S> {
    /// Whose instances have not answered.
    waiting: BTreeSet<ClusterId>,
    until: Timestamp,
    /// What the last of these was answered when it joined: the latest version, if it has nothing.
    assumed: Option<(Session, Snapshot<S>)>,
}

impl<S: Versioned> Leader<S> {
    /// The leader of `epoch`, which collects from `instances`, appending to `out` what it sends to whom.
    pub fn new(
        now: Timestamp,
        epoch: LeaderEpoch,
        instances: impl IntoIterator<Item = Session>,
        config: Config,
        out: &mut Vec<(Session, Note<S>)>,
    ) -> Self {
        let mut members = BTreeMap::<ClusterId, Vec<Session>>::new();
        for instance in instances {
            out.push((instance, Note::Collect(epoch)));
            members.entry(instance.cluster).or_default().push(instance);
        }
        let waits = config.checks.collect && !members.is_empty();
        let waiting = members.keys().copied().collect();
        let collecting = waits.then(|| Collecting { waiting, until: now + config.collect_for, assumed: None });
        let latest = Snapshot { version: Version { epoch, number: 0 }, ..Snapshot::default() };
        Self { epoch, config, latest, collecting, members, retired: false }
    }

    /// Its number.
    pub fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// The latest version; `None` while it is not known, or once another leads.
    pub fn latest(&self) -> Option<&Snapshot<S>> {
        (self.collecting.is_none() && !self.retired).then_some(&self.latest)
    }

    /// When [`Leader::tick`] is next wanted.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.collecting.as_ref().map(|collecting| collecting.until)
    }

    /// The deadline came: who has not answered is not waited for.
    pub fn tick(&mut self, now: Timestamp) {
        if self.deadline().is_some_and(|until| until <= now) {
            self.begin();
        }
    }

    /// Another leader was appointed: nothing is accepted any more. What it should collect from this one.
    pub fn supersede(&mut self, epoch: LeaderEpoch) -> Option<Snapshot<S>> {
        if epoch <= self.epoch {
            return None;
        }
        self.retired |= self.config.checks.epoch;
        self.collecting.is_none().then(|| self.latest.clone())
    }

    /// An instance answered what [`Note::Collect`] asked; of an unknown one of a cluster, with epoch 0, its cluster is taken for
    /// it. One that comes too late is ignored.
    pub fn collected(&mut self, epoch: LeaderEpoch, from: Session, found: Snapshot<S>) {
        let Some(collecting) = self.collecting.as_mut().filter(|_| epoch == self.epoch) else { return };
        let joined = collecting.assumed.as_ref().filter(|(who, _)| who.cluster == from.cluster).map(|(who, _)| *who);
        if joined.is_some_and(|who| who != from && from.epoch != 0) {
            // An earlier one of its cluster, which has ended.
            return;
        }
        collecting.waiting.remove(&from.cluster);
        let complete = collecting.waiting.is_empty();
        // Who has nothing, or has it from here, has taken the answer to its join, or will.
        let is_nothing = found.version == Version::default() || found.version.epoch == self.epoch;
        if joined.is_some() && !is_nothing {
            collecting.assumed = None;
        }
        if found.version > self.found() && !(joined.is_some() && is_nothing) {
            self.latest = found;
        }
        if complete {
            self.begin();
        }
        let collecting = self.collecting.as_ref();
        assert!(collecting.is_none_or(|collecting| !collecting.waiting.is_empty()), "nobody is waited for");
    }

    /// Accepts from now on, above every version of an earlier leader, whatever that one's number was.
    fn begin(&mut self) {
        if let Some((_, assumed)) = self.collecting.take().and_then(|collecting| collecting.assumed) {
            self.latest = assumed;
        }
        self.latest.version.epoch = self.epoch;
        for session in self.latest.applied.keys() {
            let heard = self.members.entry(session.cluster).or_default();
            if !heard.contains(session) {
                heard.insert(0, *session);
            }
        }
    }

    /// The version of what was found so far.
    fn found(&self) -> Version {
        match self.latest.version {
            Version { epoch, number: 0 } if epoch == self.epoch => Version::default(),
            version => version,
        }
    }

    /// Whether a join of this one is [answered](Leader::submitted) already while the others are collected.
    pub fn assumes(&self, joins: Session) -> bool {
        let Some(collecting) = self.collecting.as_ref().filter(|_| !self.retired) else { return false };
        let is_last = collecting.waiting.len() == 1 && collecting.waiting.contains(&joins.cluster);
        is_last && collecting.assumed.as_ref().is_none_or(|(who, _)| *who == joins)
    }

    /// Applies a submission, appending to `out` what to send to whom. One that comes too early is sent again.
    pub fn submitted(&mut self, submission: Submission<S::Update>, out: &mut Vec<(Session, Note<S>)>) {
        let checks = self.config.checks;
        let joins = submission.epoch == LeaderEpoch::default();
        let addressed = submission.epoch == self.epoch || joins || !checks.epoch;
        let (from, request) = (submission.from, submission.request);
        if joins && self.assumes(from) {
            let Some(collecting) = &mut self.collecting else { return };
            let version = Version { epoch: self.epoch, ..self.latest.version };
            let known = collecting.assumed.take().map(|(_, assumed)| assumed);
            let mut assumed = known.unwrap_or_else(|| Snapshot { version, ..self.latest.clone() });
            let outcomes = assumed.submit(self.epoch, submission, &self.config);
            out.push((from, Note::Assumed(request, assumed.clone(), outcomes)));
            collecting.assumed = Some((from, assumed));
            return;
        }
        if self.collecting.is_some() || self.retired || !addressed {
            return;
        }
        let before = self.latest.version;
        assert_eq!(before.epoch, self.epoch, "another leader's version is gone on from");
        let outcomes = self.latest.submit(self.epoch, submission, &self.config);
        assert_eq!(outcomes.is_empty(), self.latest.version == before, "a version is not what was applied");
        self.heard(from);
        out.push((from, Note::Answer(request, self.latest.clone(), outcomes)));
        if self.latest.version != before {
            let others = self.members.iter().filter(|(cluster, _)| **cluster != from.cluster);
            let others = others.filter_map(|(_, heard)| heard.last());
            out.extend(others.map(|other| (*other, Note::Notify(self.latest.clone()))));
        }
    }

    /// Remembers `from`, and forgets who was not heard for longest of its cluster: one instance is there at a time.
    fn heard(&mut self, from: Session) {
        let heard = self.members.entry(from.cluster).or_default();
        heard.retain(|session| *session != from);
        heard.push(from);
        while heard.len() > SESSIONS_MAX {
            if self.latest.applied.remove(&heard.remove(0)).is_some() {
                self.latest.floors.insert(from.cluster, self.latest.version);
            }
        }
    }
}

impl<S: Versioned> Snapshot<S> {
    /// Applies what of a submission is new, at the leader of `epoch`.
    fn submit(
        &mut self,
        epoch: LeaderEpoch,
        submission: Submission<S::Update>,
        config: &Config,
    ) -> Vec<Numbered<S::Output, S::Error>> {
        let (checks, from) = (config.checks, submission.from);
        let floor = self.floors.get(&from.cluster).copied().filter(|_| checks.floors);
        let forgotten = floor.filter(|_| !self.applied.contains_key(&from));
        let gap = submission.first > self.applied(from).saturating_add(1) && submission.settled_under >= epoch;
        let counts = forgotten.map_or(!gap || !checks.next_only, |floor| submission.seen >= floor);
        let mut outcomes = Vec::new();
        if !counts || submission.first.checked_add(submission.updates.len() as u64).is_none() {
            return outcomes;
        }
        for (number, update) in (submission.first..).zip(&submission.updates) {
            if number > self.applied(from) || !checks.numbers {
                self.applied.insert(from, number);
                self.version.number += 1;
                let mut next = self.state.clone();
                let outcome = next.apply(update).map_or_else(Applied::Rejected, Applied::Output);
                if matches!(outcome, Applied::Output(_)) {
                    self.state = next;
                }
                outcomes.push((number, outcome));
            }
        }
        outcomes
    }
}

/// Sessions of one cluster that are remembered: one instance is there at a time, and copies of what another has submitted come
/// late, but not after so many others.
pub const SESSIONS_MAX: usize = 32;
