//! The one that holds the latest version.

use std::collections::BTreeSet;

use super::{Applied, Config, LeaderEpoch, Note, Session, Snapshot, Submission, Version, Versioned};
use crate::time::Timestamp;

/// The leader of one state; see the [module](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Leader<S: Versioned> {
    epoch: LeaderEpoch,
    config: Config,
    latest: Snapshot<S>,
    /// Who has not answered, and until when they may, before anything is accepted.
    collecting: Option<(BTreeSet<Session>, Timestamp)>,
    participants: BTreeSet<Session>,
    retired: bool,
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
        let participants: BTreeSet<Session> = instances.into_iter().collect();
        out.extend(participants.iter().map(|to| (*to, Note::Collect(epoch))));
        let waits = config.checks.collect && !participants.is_empty();
        let collecting = waits.then(|| (participants.clone(), now + config.collect_for));
        let latest = Snapshot { version: Version { epoch, number: 0 }, ..Snapshot::default() };
        Self { epoch, config, latest, collecting, participants, retired: false }
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
        self.collecting.as_ref().map(|(_, until)| *until)
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

    /// An instance answered what [`Note::Collect`] asked. One that comes too late is ignored.
    pub fn collected(&mut self, epoch: LeaderEpoch, from: Session, found: Snapshot<S>) {
        let Some((waiting, _)) = self.collecting.as_mut().filter(|_| epoch == self.epoch) else { return };
        waiting.remove(&from);
        let complete = waiting.is_empty();
        if found.version > self.found() {
            self.latest = found;
        }
        if complete {
            self.begin();
        }
    }

    /// Accepts from now on, above every version of an earlier leader, whatever that one's number was.
    fn begin(&mut self) {
        self.collecting = None;
        self.latest.version.epoch = self.epoch;
    }

    /// The version of what was found so far.
    fn found(&self) -> Version {
        match self.latest.version {
            Version { epoch, number: 0 } if epoch == self.epoch => Version::default(),
            version => version,
        }
    }

    /// Applies a submission, appending to `out` what to send to whom. One that comes too early is sent again.
    pub fn submitted(&mut self, submission: Submission<S::Update>, out: &mut Vec<(Session, Note<S>)>) {
        let checks = self.config.checks;
        let joins = submission.epoch == LeaderEpoch::default();
        let addressed = submission.epoch == self.epoch || joins || !checks.epoch;
        if self.collecting.is_some() || self.retired || !addressed {
            return;
        }
        let from = submission.from;
        self.participants.insert(from);
        let gap = submission.first > self.latest.applied(from) + 1 && submission.settled_under >= self.epoch;
        let (before, mut outcomes) = (self.latest.version, Vec::new());
        if !gap || !checks.next_only {
            for (number, update) in (submission.first..).zip(&submission.updates) {
                if number > self.latest.applied(from) || !checks.numbers {
                    self.latest.applied.insert(from, number);
                    self.latest.version.number += 1;
                    let mut next = self.latest.state.clone();
                    let outcome = next.apply(update).map_or_else(Applied::Rejected, Applied::Output);
                    if matches!(outcome, Applied::Output(_)) {
                        self.latest.state = next;
                    }
                    outcomes.push((number, outcome));
                }
            }
        }
        out.push((from, Note::Answer(submission.request, self.latest.clone(), outcomes)));
        if self.latest.version != before {
            let others = self.participants.iter().filter(|other| **other != from);
            out.extend(others.map(|other| (*other, Note::Notify(self.latest.clone()))));
        }
    }
}
