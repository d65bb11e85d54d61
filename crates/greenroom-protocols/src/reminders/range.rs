//! One range of reminders, as its owner keeps it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use super::window::Window;
use super::{
    Etag, Fold, Found, GRACE, HORIZON, Hint, HintName, LOADED_MAX, Now, Plan, Position, Record, Tombstone, Wall,
};
use crate::checks::Checks;
use crate::time::Timestamp;

/// Which reminder's turn it is, among all that this range ever had on this node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WorkId(pub u64);

/// What happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event<K, P> {
    /// This node has come to own the range.
    Own,
    /// It does not own it any more.
    Lose,
    /// A hint was made that comes up then.
    Noted {
        /// When.
        wake: Wall,
    },
    /// Something may have been missed: look at the whole range again.
    Rescan,
    /// The cluster has changed: what did not succeed before may now.
    Retry,
    /// A scan has ended.
    Scanned {
        /// Of [`Action::Scan`].
        token: u64,
        /// Hints in the order of their positions, with the versions of their rows; `None` if it failed.
        items: Option<Vec<(Position, Etag, Hint<K>)>>,
        /// Whether there are more.
        more: bool,
    },
    /// A record was read.
    Read {
        /// Whose.
        work: WorkId,
        /// What was there; `Err` if the read failed.
        found: Result<Option<Found<P>>, ()>,
    },
    /// A tick's call has ended.
    Delivered {
        /// Whose.
        work: WorkId,
        /// How.
        how: Delivered,
    },
    /// A hint was created, or not.
    HintCreated {
        /// For whom.
        work: WorkId,
        /// The hint; `None` if it failed or nobody knows.
        hint: Option<HintName>,
    },
    /// A record was written or removed, or not.
    Written {
        /// Whose.
        work: WorkId,
        /// Whether that is certain.
        applied: bool,
    },
    /// A hint was removed, or not.
    Dropped {
        /// Whose.
        work: WorkId,
        /// Whether it is certain that it is gone.
        gone: bool,
    },
    /// The deadline came.
    Tick,
}

/// How the call of a tick ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Delivered {
    /// The tick is done: its turn has ended, also by the method's own error, and has saved where it saves.
    Ran,
    /// The turn has failed by an exception: the tick is sent again after a pause, unless it has failed in all its attempts.
    Failed {
        /// Attempts of a tick, the first one included.
        attempts_max: u32,
    },
    /// It was refused in a way that no retry mends.
    Hopeless,
    /// Its actor does not take it, and it may not have run: to be sent again, ever less often.
    Again,
    /// The cluster did not bring it to its actor, or lost its end, as it recovers from something: to be sent again soon.
    Lost,
    /// The host found another record: to be read again.
    Gone,
}

/// What must be done.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action<K, P> {
    /// Read the hints of the range, in order.
    Scan {
        /// For the answer.
        token: u64,
        /// Where to go on; `None` for the beginning.
        after: Option<Position>,
    },
    /// Read a record.
    Read {
        /// For the answer.
        work: WorkId,
        /// Which.
        of: K,
    },
    /// Send a tick as a call.
    Deliver {
        /// For the answer.
        work: WorkId,
        /// Whose.
        of: K,
        /// The record.
        record: Record<P>,
        /// What the tick stands for.
        fold: Fold,
    },
    /// Create a hint under a fresh number.
    CreateHint {
        /// For the answer.
        work: WorkId,
        /// When it comes up.
        wake: Wall,
        /// What it says.
        hint: Hint<K>,
    },
    /// Write a record, if it is still `expected`.
    Write {
        /// For the answer.
        work: WorkId,
        /// Which.
        of: K,
        /// What.
        record: Record<P>,
        /// The version to replace.
        expected: Etag,
    },
    /// Remove a record, if it is still `expected`.
    Remove {
        /// For the answer.
        work: WorkId,
        /// Which.
        of: K,
        /// The version to remove.
        expected: Etag,
    },
    /// Report that a tick has failed in all its attempts: it is given up, and its record moves on. There is no answer.
    ReportFailed {
        /// Whose.
        of: K,
        /// Attempts that it had.
        attempts: u32,
    },
    /// Remove a hint.
    DropHint {
        /// For the answer.
        work: WorkId,
        /// Which.
        hint: HintName,
    },
}

/// One range. What it is told of work that it does not know is ignored, so a stale answer does no harm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Range<K, P> {
    checks: Checks,
    /// What is loaded of the hints; `None` while the range is not ours.
    window: Option<Window>,
    works: BTreeMap<WorkId, Work<K, P>>,
    last: u64,
    scans: u64,
}

/// One hint that is loaded, and what comes of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Work<K, P> {
    at: Position,
    tag: Etag,
    hint: Hint<K>,
    stage: Stage<P>,
    /// The tick whose turn has run, until its record has moved on.
    ran: Option<Ran>,
    /// How often it was put off by the store or the cluster.
    tries: u32,
    /// How often its actor did not take the tick.
    refused: u32,
    /// The tick whose turns have failed, by registration and due time, and how many have.
    failed: Option<(u64, Wall, u32)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage<P> {
    /// Waits for its time.
    Due,
    Paused(Timestamp),
    Reading,
    Delivering(Found<P>, Fold),
    /// The next hint is made, for the record to go to this due time.
    Hinting(Found<P>, Wall),
    /// The record moves on to a hint that comes up then.
    Writing(Wall),
    /// The record is written as it is, so that no earlier write can come true.
    Fencing,
    Removing,
    Dropping,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Ran {
    registration: u64,
    due: Wall,
    next: Option<Wall>,
}

impl<K: Clone + Eq + Debug, P: Plan> Range<K, P> {
    /// A range that is not ours.
    pub fn new(checks: Checks) -> Self {
        Self { checks, window: None, works: BTreeMap::new(), last: 0, scans: 0 }
    }

    /// Whether it is ours.
    pub fn is_owned(&self) -> bool {
        self.window.is_some()
    }

    /// Hints in memory.
    pub fn loaded(&self) -> usize {
        self.works.len()
    }

    /// Since when the tick has been due that is late longest: begun, or put off, and its turn has not run.
    pub fn behind(&self) -> Option<Wall> {
        let is_out = |work: &&Work<K, P>| {
            work.ran.is_none() && matches!(work.stage, Stage::Paused(_) | Stage::Reading | Stage::Delivering(..))
        };
        self.works.values().filter(is_out).map(|work| work.at.wake).min()
    }

    /// Applies `event` at `now`, appending what must be done to `out`, in order.
    pub fn handle(&mut self, now: Now, event: Event<K, P>, out: &mut Vec<Action<K, P>>) {
        match event {
            Event::Own if self.window.is_none() => self.window = Some(Window::new()),
            Event::Lose => {
                self.window = None;
                self.works.clear();
            }
            Event::Noted { wake } => self.noted(wake),
            Event::Rescan => {
                if let Some(window) = &mut self.window {
                    window.rescan();
                }
            }
            Event::Retry => self.works.values_mut().for_each(Work::retry),
            Event::Scanned { token, items, more } if token == self.scans => self.scanned(now, items, more),
            Event::Read { work, found } => self.read(now, work, found, out),
            Event::Delivered { work, how } => self.delivered(now, work, how, out),
            Event::HintCreated { work, hint } => self.hint_created(now, work, hint, out),
            Event::Written { work, applied } => self.written(now, work, applied, out),
            Event::Dropped { work, gone } => self.dropped(now, work, gone),
            Event::Own | Event::Scanned { .. } | Event::Tick => {}
        }
        self.go_on(now, out);
        assert!(self.works.len() <= LOADED_MAX, "more hints are in memory than there is room for");
        assert!(self.is_owned() || self.works.is_empty(), "hints are kept of another's range");
    }

    /// When [`Range::handle`] next wants a [`Event::Tick`]; `None` while the range is not ours.
    pub fn deadline(&self, now: Now) -> Option<Timestamp> {
        let window = self.window.as_ref()?;
        let wait = |work: &Work<K, P>| match work.stage {
            Stage::Due => Some(now.clock + work.at.wake.since(now.wall)),
            Stage::Paused(until) => Some(until),
            _ => None,
        };
        self.works.values().filter_map(wait).chain(window.deadline(now, self.works.len())).min()
    }

    fn noted(&mut self, wake: Wall) {
        if let Some(window) = &mut self.window {
            window.noted(wake);
        }
    }

    /// Begins what is due.
    fn go_on(&mut self, now: Now, out: &mut Vec<Action<K, P>>) {
        let Some(window) = &mut self.window else { return };
        for (id, work) in &mut self.works {
            let begins = match work.stage {
                Stage::Due => work.at.wake <= now.wall,
                Stage::Paused(until) => until <= now.clock,
                _ => false,
            };
            if begins {
                work.stage = Stage::Reading;
                out.push(Action::Read { work: *id, of: work.hint.of.clone() });
            }
        }
        if let Some(after) = window.scan(now, self.works.len()) {
            self.scans += 1;
            out.push(Action::Scan { token: self.scans, after });
        }
    }

    fn scanned(&mut self, now: Now, items: Option<Vec<(Position, Etag, Hint<K>)>>, more: bool) {
        let Some(window) = &mut self.window else { return };
        let Some(items) = items else { return window.scan_failed(now) };
        let mut last = None;
        for (at, tag, hint) in items {
            if at.wake > now.wall + HORIZON {
                return window.reached(at.wake);
            }
            if self.works.len() >= LOADED_MAX {
                return window.is_full(last);
            }
            last = Some(at);
            if self.works.values().all(|work| work.at != at) {
                self.last += 1;
                let work = Work { at, tag, hint, stage: Stage::Due, ran: None, tries: 0, refused: 0, failed: None };
                self.works.insert(WorkId(self.last), work);
            }
        }
        if more { window.goes_on(last) } else { window.reached(Wall::NEVER) }
    }

    fn read(&mut self, now: Now, id: WorkId, found: Result<Option<Found<P>>, ()>, out: &mut Vec<Action<K, P>>) {
        let Some(work) = self.works.get_mut(&id).filter(|work| work.stage == Stage::Reading) else { return };
        let Ok(found) = found else { return work.pause(now) };
        let Some(found) = found else {
            return if work.hint.expected.is_none() && now.wall < work.at.wake + GRACE && self.checks.hint_grace {
                // Its record may yet be created. A later scan meets it again.
                self.works.remove(&id).map(drop).unwrap_or_default()
            } else {
                work.drop_hint(id, out)
            };
        };
        if found.record.hint.at != work.at {
            return if work.hint.expected.as_ref() == Some(&found.tag) && self.checks.hint_fence {
                work.fence(id, now, found, out)
            } else {
                work.drop_hint(id, out)
            };
        }
        let Ok(plan) = &found.record.plan else {
            work.stage = Stage::Removing;
            return out.push(Action::Remove { work: id, of: work.hint.of.clone(), expected: found.tag });
        };
        match &work.ran {
            Some(ran) if ran.registration == found.record.registration && ran.due == found.record.due => {
                work.move_on(id, now, found, out);
            }
            _ => {
                let fold = plan.fold(found.record.due, now.wall);
                let record = found.record.clone();
                work.stage = Stage::Delivering(found, fold);
                out.push(Action::Deliver { work: id, of: work.hint.of.clone(), record, fold });
            }
        }
    }

    fn delivered(&mut self, now: Now, id: WorkId, how: Delivered, out: &mut Vec<Action<K, P>>) {
        let crowded = self.works.len() >= LOADED_MAX / 2;
        let Some(work) = self.works.get_mut(&id) else { return };
        let Stage::Delivering(found, fold) = &work.stage else { return };
        let (found, fold) = (found.clone(), *fold);
        match how {
            Delivered::Failed { attempts_max } if work.fail(now, &found) < attempts_max => {}
            Delivered::Ran | Delivered::Hopeless | Delivered::Failed { .. } => {
                if let (Delivered::Failed { .. }, Some((.., attempts))) = (how, work.failed) {
                    out.push(Action::ReportFailed { of: work.hint.of.clone(), attempts });
                }
                let Record { registration, due, .. } = found.record;
                work.ran = Some(Ran { registration, due, next: fold.next });
                (work.tries, work.refused, work.failed) = (0, 0, None);
                work.move_on(id, now, found, out);
            }
            Delivered::Again if work.refused >= TRIES && crowded => {
                // Others need its room in memory: the record stays as it is, under a later hint.
                let wake = now.wall + POSTPONED;
                work.make_hint(id, found.clone(), found.record.due, wake, out);
            }
            Delivered::Again => work.refuse(now),
            Delivered::Lost | Delivered::Gone => work.pause(now),
        }
    }

    fn hint_created(&mut self, now: Now, id: WorkId, hint: Option<HintName>, out: &mut Vec<Action<K, P>>) {
        let Some(work) = self.works.get_mut(&id) else { return };
        let Stage::Hinting(found, due) = &work.stage else { return };
        let Some(hint) = hint else { return work.pause(now) };
        let (found, due, wake) = (found.clone(), *due, hint.at.wake);
        let record = Record { due, hint, ..found.record };
        work.stage = Stage::Writing(wake);
        out.push(Action::Write { work: id, of: work.hint.of.clone(), record, expected: found.tag });
    }

    fn written(&mut self, now: Now, id: WorkId, applied: bool, out: &mut Vec<Action<K, P>>) {
        let Some(work) = self.works.get_mut(&id) else { return };
        match work.stage {
            Stage::Writing(wake) => {
                if applied {
                    work.drop_hint(id, out);
                } else {
                    work.pause(now);
                }
                // Also if nobody knows whether it was applied.
                self.noted(wake);
            }
            Stage::Removing if applied => work.drop_hint(id, out),
            Stage::Removing | Stage::Fencing => work.pause(now),
            _ => {}
        }
    }

    fn dropped(&mut self, now: Now, id: WorkId, gone: bool) {
        let Some(work) = self.works.get_mut(&id).filter(|work| work.stage == Stage::Dropping) else { return };
        if gone || work.tries >= TRIES {
            self.works.remove(&id);
        } else {
            work.pause(now);
        }
    }
}

impl<K: Clone, P: Plan> Work<K, P> {
    /// Looks at the record again after a while.
    fn pause(&mut self, now: Now) {
        self.stage = Stage::Paused(now.clock + pause_after(self.tries).min(PAUSE_MAX));
        self.tries += 1;
    }

    /// Counts a refusal by the tick's actor, and pauses. Other failures do not lengthen this pause: the store and the cluster may have
    /// failed, or an earlier turn of the tick run, for minutes before the first refusal.
    fn refuse(&mut self, now: Now) {
        self.stage = Stage::Paused(now.clock + pause_after(self.refused).min(REFUSED_PAUSE_MAX));
        self.refused += 1;
    }

    /// Ends its pause, and takes what went wrong before for the cluster's doing.
    fn retry(&mut self) {
        (self.tries, self.refused) = (0, 0);
        if let Stage::Paused(until) = &mut self.stage {
            *until = Timestamp::default();
        }
    }

    /// Counts a failed turn of the tick that `found` is due for, and pauses: the number of its failed turns.
    fn fail(&mut self, now: Now, found: &Found<P>) -> u32 {
        let Record { registration, due, .. } = found.record;
        let is_same = |(known, at, _): &(u64, Wall, u32)| (*known, *at) == (registration, due);
        let before = self.failed.filter(is_same).map_or(0, |(.., failed)| failed);
        self.failed = Some((registration, due, before + 1));
        let pause = FAILED_PAUSE_MIN * 4_u32.saturating_pow(before.min(8));
        self.stage = Stage::Paused(now.clock + pause.min(REFUSED_PAUSE_MAX));
        before + 1
    }

    fn drop_hint(&mut self, id: WorkId, out: &mut Vec<Action<K, P>>) {
        self.stage = Stage::Dropping;
        out.push(Action::DropHint { work: id, hint: HintName { at: self.at, tag: self.tag.clone() } });
    }

    /// A write that names this hint may still come true: not once the record has another version.
    fn fence(&mut self, id: WorkId, now: Now, found: Found<P>, out: &mut Vec<Action<K, P>>) {
        if self.tries < FENCE_TRIES {
            // As a rule it is just about to.
            return self.pause(now);
        }
        self.stage = Stage::Fencing;
        out.push(Action::Write { work: id, of: self.hint.of.clone(), record: found.record, expected: found.tag });
    }

    /// The tick's turn has run: on to the next one.
    fn move_on(&mut self, id: WorkId, now: Now, mut found: Found<P>, out: &mut Vec<Action<K, P>>) {
        let ran = self.ran.as_ref().map(|ran| (ran.registration, ran.due));
        assert_eq!(
            ran,
            Some((found.record.registration, found.record.due)),
            "a record moves on before its tick has run"
        );
        match self.ran.as_ref().and_then(|ran| ran.next) {
            Some(next) => self.make_hint(id, found, next, next, out),
            None => {
                let until = now.wall + GRACE;
                found.record.plan = Err(Tombstone);
                self.make_hint(id, found, until, until, out);
            }
        }
    }

    fn make_hint(&mut self, id: WorkId, found: Found<P>, due: Wall, wake: Wall, out: &mut Vec<Action<K, P>>) {
        let hint = Hint { of: self.hint.of.clone(), expected: Some(found.tag.clone()) };
        self.stage = Stage::Hinting(found, due);
        out.push(Action::CreateHint { work: id, wake, hint });
    }
}

/// Returns the pause after a failure that `before` others of its sort came before.
fn pause_after(before: u32) -> Duration {
    PAUSE_MIN * 2_u32.saturating_pow(before.min(16))
}

/// The first pause after a failure.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// The longest while the store or the cluster fails: no longer, as what is due is late already when they are back.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The longest while an actor does not take its tick.
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(60);
/// The first pause after a turn that has failed by an exception; the next ones are four times as long each.
const FAILED_PAUSE_MIN: Duration = Duration::from_secs(1);
/// Times that an actor may refuse a tick before the reminder leaves memory for a while, if others need the room.
const TRIES: u32 = 7;
/// For how long, at least.
const POSTPONED: Duration = Duration::from_secs(60);
/// Looks at a record before a write is taken for one that will never come.
const FENCE_TRIES: u32 = 3;
