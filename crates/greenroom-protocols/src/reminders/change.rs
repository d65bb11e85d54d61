//! Registering and cancelling.

use super::{Etag, Found, HintName, Position, Record, Tombstone, Wall};

/// What somebody wants of a reminder.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Want<P> {
    /// That it is there, instead of any of the same name.
    Set {
        /// Drawn by chance.
        registration: u64,
        /// When it is due first.
        due: Wall,
        /// What is to be done, and when again.
        plan: P,
    },
    /// That it is not there.
    Cancel {
        /// Until when its tombstone stands.
        until: Wall,
    },
}

/// What is to be done next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Step<P> {
    /// Read the record.
    Read,
    /// Create a hint under a fresh number.
    CreateHint {
        /// When it comes up.
        wake: Wall,
        /// What it says that the record's write expects.
        expected: Option<Etag>,
    },
    /// Write the record, if it is still `expected`.
    Write {
        /// The record.
        record: Record<P>,
        /// The version to replace; `None` to create it.
        expected: Option<Etag>,
    },
    /// Remove the hint of what was replaced. It does not matter if that fails.
    DropHint(HintName),
    /// Nothing: it is so.
    Done(Ended),
}

/// How a change ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ended {
    /// Whether a reminder of that name was there before.
    pub existed: bool,
    /// When the owner must look at the range.
    pub wake: Wall,
}

/// How a step ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Answer<P> {
    /// The record, if there is one.
    Read(Option<Found<P>>),
    /// The hint is there.
    Hint(HintName),
    /// The record was written.
    Written,
    /// The step failed, or nobody knows.
    Failed,
    /// The hint is gone, or not: it does not matter.
    Dropped,
}

/// One change on its way: ask for its [`step`](Change::step), take it, and [answer](Change::answer).
///
/// Whoever gives up in between leaves the outcome unknown if a write was under way; [`Change::is_in_doubt`] says so.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Change<P> {
    want: Want<P>,
    step: Step<P>,
    /// What was found at the last read.
    found: Option<Found<P>>,
    existed: bool,
    /// The hints that its writes have named which may be applied, or yet come to be.
    tried: Vec<Position>,
}

impl<P: Clone> Change<P> {
    /// A change that has not begun.
    pub fn new(want: Want<P>) -> Self {
        Self { want, step: Step::Read, found: None, existed: false, tried: Vec::new() }
    }

    /// What is to be done next.
    pub fn step(&self) -> &Step<P> {
        &self.step
    }

    /// Whether a write may have been applied, or still be.
    pub fn is_in_doubt(&self) -> bool {
        !self.tried.is_empty()
    }

    /// Takes in how the step ended. After a failure it begins again by reading, as often as its caller has patience.
    pub fn answer(&mut self, answer: Answer<P>) {
        self.step = match (&self.step, answer) {
            (Step::Read, Answer::Read(found)) => self.found(found),
            (Step::CreateHint { expected, .. }, Answer::Hint(hint)) => {
                let record = self.record(hint);
                self.tried.push(record.hint.at);
                Step::Write { record, expected: expected.clone() }
            }
            (Step::Write { record, .. }, Answer::Written) => {
                let wake = record.hint.at.wake;
                self.replaced(wake)
            }
            (Step::DropHint(_), _) => Step::Done(self.ended(self.wake())),
            (Step::Done(ended), _) => Step::Done(*ended),
            (Step::Read | Step::CreateHint { .. } | Step::Write { .. }, _) => Step::Read,
        };
    }

    fn found(&mut self, found: Option<Found<P>>) -> Step<P> {
        if let Some(found) = &found
            && self.is_ours(&found.record)
        {
            return Step::Done(self.ended(found.record.hint.at.wake));
        }
        self.existed = found.as_ref().is_some_and(|found| found.record.plan.is_ok());
        let expected = found.as_ref().map(|found| found.tag.clone());
        self.found = found;
        Step::CreateHint { wake: self.wake(), expected }
    }

    /// Whether one of our writes has come true; what became of it since is others' doing.
    fn is_ours(&self, record: &Record<P>) -> bool {
        match &self.want {
            Want::Set { registration, .. } => self.is_in_doubt() && record.registration == *registration,
            Want::Cancel { .. } => self.tried.contains(&record.hint.at),
        }
    }

    fn replaced(&self, wake: Wall) -> Step<P> {
        match &self.found {
            Some(found) => Step::DropHint(found.record.hint.clone()),
            None => Step::Done(self.ended(wake)),
        }
    }

    fn wake(&self) -> Wall {
        match &self.want {
            Want::Set { due, .. } => *due,
            Want::Cancel { until } => *until,
        }
    }

    fn record(&self, hint: HintName) -> Record<P> {
        match &self.want {
            Want::Set { registration, due, plan } => {
                Record { registration: *registration, due: *due, hint, plan: Ok(plan.clone()), attempt: None }
            }
            Want::Cancel { until } => {
                let registration = self.found.as_ref().map_or(0, |found| found.record.registration);
                Record { registration, due: *until, hint, plan: Err(Tombstone), attempt: None }
            }
        }
    }

    fn ended(&self, wake: Wall) -> Ended {
        Ended { existed: self.existed, wake }
    }
}
