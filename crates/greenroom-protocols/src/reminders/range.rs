//! One range of reminders, as its owner keeps it.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::window::Window;
use super::work::{POSTPONED, Ran, Stage, TRIES, Work};
use super::{Etag, Fold, Found, GRACE, HORIZON, Hint, HintName, LOADED_MAX, Now, Plan, Position, Record, Wall};
use crate::checks::Checks;
use crate::time::Timestamp;

/// Which reminder's turn it is, among all that this range ever had on this node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WorkId(pub u64);

/// What happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event<K, P> {
    /// This node has come to own the range.
    Own {
        /// True if the owner before may have died.
        after_death: bool,
    },
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
    /// The process in which the turn may have run has died, a node or a host: to be sent again soon, as a suspect.
    Died,
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
        /// True if no other tick with this mark may be under way from this node.
        is_alone: bool,
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
    /// Report that turns of a tick have taken down so many processes that its reminder is parked. There is no answer.
    ReportParked {
        /// Whose.
        of: K,
        /// Processes that have died.
        deaths: u32,
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
    /// Processes that turns of one tick may take down before it is parked.
    deaths_max: u32,
    /// The time at which this node came to own the range, if the owner before may have died.
    after_death: Option<Wall>,
    /// What is loaded of the hints; `None` while the range is not ours.
    window: Option<Window>,
    works: BTreeMap<WorkId, Work<K, P>>,
    last: u64,
    scans: u64,
}

impl<K: Clone + Eq + Debug, P: Plan> Range<K, P> {
    /// A range that is not ours. The turns of one tick may take down `deaths_max` processes before it is parked.
    pub fn new(checks: Checks, deaths_max: u32) -> Self {
        let (after_death, window, works) = (None, None, BTreeMap::new());
        Self { checks, deaths_max, after_death, window, works, last: 0, scans: 0 }
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
            Event::Own { after_death } if self.window.is_none() => {
                (self.window, self.after_death) = (Some(Window::new()), after_death.then_some(now.wall));
            }
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
            Event::Own { .. } | Event::Scanned { .. } | Event::Tick => {}
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
                self.works.insert(WorkId(self.last), Work::new(at, tag, hint));
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
                let deaths = work.attempts.deaths(&found.record, self.after_death);
                if deaths >= self.deaths_max && self.checks.tick_deaths {
                    return work.park(id, found, deaths, out);
                }
                let fold = plan.fold(found.record.due, now.wall);
                let deaths = if self.checks.tick_deaths { deaths } else { 0 };
                work.deliver(id, fold, deaths, found, out);
            }
        }
    }

    fn delivered(&mut self, now: Now, id: WorkId, how: Delivered, out: &mut Vec<Action<K, P>>) {
        let crowded = self.works.len() >= LOADED_MAX / 2;
        let Some(work) = self.works.get_mut(&id) else { return };
        let Stage::Delivering(found, fold) = &work.stage else { return };
        let (mut found, fold) = (found.clone(), *fold);
        match how {
            Delivered::Failed { attempts_max } if work.fail(now, &found) < attempts_max => {}
            Delivered::Ran | Delivered::Hopeless | Delivered::Failed { .. } => {
                if let (Delivered::Failed { .. }, Some((.., attempts))) = (how, work.failed) {
                    out.push(Action::ReportFailed { of: work.hint.of.clone(), attempts });
                }
                let Record { registration, due, .. } = found.record;
                work.ran = Some(Ran { registration, due, next: fold.next });
                (work.tries, work.refused, work.failed) = (0, 0, None);
                return work.move_on(id, now, found, out);
            }
            Delivered::Again if work.refused >= TRIES && crowded => {
                // Others need its room in memory: the record stays as it is, under a later hint.
                let wake = now.wall + POSTPONED;
                if let Some(attempt) = &mut found.record.attempt {
                    attempt.is_running = false;
                }
                let due = found.record.due;
                return work.make_hint(id, found, due, wake, out);
            }
            Delivered::Again => work.refuse(now),
            Delivered::Lost | Delivered::Gone => work.pause(now),
            Delivered::Died => {
                work.attempts.died();
                return work.pause(now);
            }
        }
        work.clear(id, found, out);
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
            Stage::Recording(attempt) if applied => {
                work.attempts.recorded(attempt);
                work.stage = Stage::Reading;
                out.push(Action::Read { work: id, of: work.hint.of.clone() });
            }
            Stage::Clearing(attempt, until) => {
                if applied {
                    work.attempts.recorded(attempt);
                }
                work.stage = Stage::Paused(until);
            }
            Stage::Removing if applied => work.drop_hint(id, out),
            Stage::Recording(_) | Stage::Removing | Stage::Fencing => work.pause(now),
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
