//! Runs schedules until one breaks the test, or all were run, or enough: strategies take turns, on one thread or on several.
//!
//! The first schedule is of the first strategy, the second of the second, and so on, whichever thread runs it; what a schedule is depends
//! on its number and on those of its own strategy before it alone. So threads change nothing of what is found.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use greenroom::rehearsal::{Step, mix};

use crate::coverage::Coverage;
use crate::judge::twice::differs;
use crate::run::{Plan, Ran, Subject, Subjects, Tell};
use crate::strategy::{Chooser, Strategy};

/// Which schedules are to be run.
#[derive(Clone)]
pub(crate) struct Search {
    pub(crate) strategy: Strategy,
    pub(crate) seed: u64,
    /// How many, if the test says so.
    pub(crate) schedules: Option<u64>,
    /// After which time no other one is begun.
    pub(crate) time: Option<Duration>,
    pub(crate) threads: usize,
}

/// What they have come to.
#[derive(Default)]
pub(crate) struct Searched {
    /// Schedules that were run.
    pub(crate) schedules: u64,
    /// Whether there are no others.
    pub(crate) all: bool,
    pub(crate) coverage: Coverage,
    /// What is to be true sometimes, and whether it was.
    pub(crate) sometimes: BTreeMap<String, bool>,
    pub(crate) cut: u64,
    /// Whether one came to its end; and whether one was to be judged behind that, and did not.
    pub(crate) has_ended: bool,
    pub(crate) is_unjudged: bool,
    /// Steps of the longest.
    pub(crate) steps: usize,
    /// The first that breaks the test.
    pub(crate) found: Option<Found>,
}

/// A schedule that breaks the test.
pub(crate) struct Found {
    /// Counted from 1.
    pub(crate) schedule: u64,
    pub(crate) picks: Vec<u32>,
    pub(crate) violated: String,
    /// What its choices do not decide, if anything.
    pub(crate) undecided: Option<String>,
}

impl Search {
    /// How many are run at most; `None` if time alone is their bound.
    pub(crate) fn bound(&self) -> Option<u64> {
        self.schedules.or(if self.time.is_none() { Some(SCHEDULES) } else { None })
    }

    /// Runs them: on this thread with `subject`, and on others beside it.
    pub(crate) fn run(&self, subject: &Subject, subjects: &Subjects) -> Searched {
        let board = Board::of(self);
        let others = self.threads.saturating_sub(1);
        let mut searched = thread::scope(|scope| {
            let work = || board.work(&subjects.subject());
            let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
            let own = board.work(subject);
            others.into_iter().fold(own, |all, other| match other.join() {
                Ok(other) => all.and(other),
                Err(payload) => resume_unwind(payload),
            })
        });
        if let Some(last) = board.now().all {
            (searched.all, searched.schedules) = (true, last);
        }
        // Those that others were running meanwhile do not count.
        searched.found = searched.found.filter(|found| !searched.all || found.schedule <= searched.schedules);
        searched
    }
}

impl Searched {
    fn and(mut self, other: Self) -> Self {
        self.schedules += other.schedules;
        self.coverage.add_all(other.coverage);
        for (name, seen) in other.sometimes {
            *self.sometimes.entry(name).or_insert(false) |= seen;
        }
        self.cut += other.cut;
        self.has_ended |= other.has_ended;
        self.is_unjudged |= other.is_unjudged;
        self.steps = self.steps.max(other.steps);
        other.found.into_iter().for_each(|found| self.find(found));
        self
    }

    fn find(&mut self, found: Found) {
        if self.found.as_ref().is_none_or(|known| found.schedule < known.schedule) {
            self.found = Some(found);
        }
    }

    fn add(&mut self, ran: &Ran) {
        self.schedules += 1;
        self.steps = self.steps.max(ran.steps);
        self.cut += u64::from(ran.is_cut);
        self.has_ended |= !ran.is_cut && !ran.is_given_up;
        self.is_unjudged |= ran.is_cut && ran.has_finally;
        ran.names.iter().for_each(|(number, name)| self.coverage.name(*number, name));
        if !ran.is_given_up {
            self.coverage.add(ran.trace, &ran.began);
        }
        for (name, seen) in &ran.sometimes {
            match self.sometimes.get_mut(&**name) {
                Some(known) => *known |= seen,
                None => _ = self.sometimes.insert(name.to_string(), *seen),
            }
        }
    }
}

/// What is left to be run, for all threads.
struct Board<'a> {
    search: &'a Search,
    strategies: u64,
    part_len: u64,
    until: Option<Instant>,
    left: Mutex<Left>,
    /// A strategy can be had again.
    returned: Condvar,
}

struct Left {
    lanes: Vec<Lane>,
    /// What is beyond this schedule is of no interest any more.
    last: u64,
    /// With which one all had been run.
    all: Option<u64>,
}

/// The schedules of one strategy.
struct Lane {
    /// `None` while a thread has it.
    chooser: Option<Box<dyn Chooser>>,
    /// Its next schedule.
    next: u64,
    /// Whether any was cut off.
    is_cut: bool,
}

/// Some schedules of one strategy, for one thread.
struct Part<'a> {
    board: &'a Board<'a>,
    lane: usize,
    chooser: Rc<RefCell<Box<dyn Chooser>>>,
    /// Whether another thread may have the strategy, too.
    is_fork: bool,
    first: u64,
}

impl<'a> Board<'a> {
    fn of(search: &'a Search) -> Self {
        let lane = |(next, chooser)| Lane { chooser: Some(chooser), next, is_cut: false };
        let lanes: Vec<Lane> = (1..).zip(search.strategy.choosers()).map(lane).collect();
        let (strategies, part_len) = (lanes.len() as u64, if search.threads > 1 { PART_LEN } else { 1 });
        let left = Mutex::new(Left { lanes, last: search.bound().unwrap_or(u64::MAX), all: None });
        let until = search.time.map(|time| Instant::now() + time);
        Self { search, strategies, part_len, until, left, returned: Condvar::new() }
    }

    fn now(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs what is left, part by part, until nothing is.
    fn work(&self, subject: &Subject) -> Searched {
        let mut searched = Searched::default();
        while let Some(part) = self.take() {
            part.run(subject, &mut searched);
        }
        searched
    }

    /// Schedules of the strategy that is behind all others, of those that can be had.
    fn take(&self) -> Option<Part<'_>> {
        let mut left = self.now();
        loop {
            let has_begun = left.lanes.first().is_some_and(|lane| lane.next > 1);
            if has_begun && self.until.is_some_and(|until| Instant::now() >= until) {
                left.last = 0;
            }
            let last = left.last;
            if left.lanes.iter().all(|lane| lane.next > last) {
                return None;
            }
            let open = left.lanes.iter().enumerate().filter(|(_, lane)| lane.next <= last);
            let behind = open.filter(|(_, lane)| lane.chooser.is_some()).min_by_key(|(_, lane)| lane.next);
            if let Some(lane) = behind.map(|(place, _)| place) {
                let Lane { chooser, next, .. } = &mut left.lanes[lane];
                let first = *next;
                *next += self.strategies * self.part_len;
                let fork = chooser.as_ref().filter(|_| self.search.threads > 1).and_then(|chooser| chooser.fork());
                let is_fork = fork.is_some();
                let chooser = Rc::new(RefCell::new(fork.or_else(|| chooser.take())?));
                return Some(Part { board: self, lane, chooser, is_fork, first });
            }
            left = self.returned.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Part<'_> {
    fn run(&self, subject: &Subject, searched: &mut Searched) {
        let Self { board, lane, chooser, first, .. } = self;
        for schedule in (0..board.part_len).map(|place| first + place * board.strategies) {
            if schedule > board.now().last {
                return;
            }
            chooser.borrow_mut().begin(mix(board.search.seed, schedule));
            let tell = if schedule % TWICE_EACH == 1 { Tell::Steps } else { Tell::Nothing };
            let ran = subject.run(Plan::Chooser(chooser.clone()), tell);
            searched.add(&ran);
            let undecided = if ran.violated.is_some() || tell != Tell::Nothing { differs(subject, &ran) } else { None };
            let mut left = board.now();
            if ran.violated.is_some() || undecided.is_some() {
                left.last = left.last.min(schedule);
                drop(left);
                let violated = ran.violated.unwrap_or_default();
                return searched.find(Found { schedule, picks: ran.picks, violated, undecided });
            }
            let lane = &mut left.lanes[*lane];
            lane.is_cut |= ran.is_cut;
            if !lane.is_cut && !ran.judges_order && chooser.borrow().has_all() && schedule <= left.last {
                (left.last, left.all) = (schedule, Some(schedule));
                return;
            }
        }
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        let mut left = self.board.now();
        if thread::panicking() {
            left.last = 0;
        }
        if !self.is_fork {
            left.lanes[self.lane].chooser = Some(self.chooser.replace(Box::new(Nobody)));
        }
        drop(left);
        self.board.returned.notify_all();
    }
}

/// In the place of who was given back.
struct Nobody;

impl Chooser for Nobody {
    fn begin(&mut self, _seed: u64) {}

    fn pick(&mut self, _enabled: &[Step], _default: usize) -> Option<usize> {
        None
    }
}

/// Of a test that says neither how many nor how long.
pub(crate) const SCHEDULES: u64 = 1_000;
/// The first schedule and one of so many run twice.
const TWICE_EACH: u64 = 64;
/// Schedules that a thread has at once, where there are several.
const PART_LEN: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_how_long_is_not_bound_by_how_many() {
        let search = Search { strategy: Strategy::default(), seed: 0, schedules: None, time: None, threads: 1 };
        assert_eq!(search.bound(), Some(SCHEDULES));
        let timed = Search { time: Some(Duration::from_secs(60)), ..search };
        assert_eq!(timed.bound(), None);
        assert_eq!(Search { schedules: Some(7), ..timed }.bound(), Some(7));
    }
}
