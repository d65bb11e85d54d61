//! Makes a schedule short that violates something: as few deviations from the default order as can be found.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::deviations::Deviations;
use crate::reach::is_fault;
use crate::run::{Plan, Ran, Subject, Tell};

/// The shortest that was found, and after how many runs.
pub(crate) struct Shrunk {
    pub(crate) ran: Ran,
    pub(crate) runs: usize,
}

/// Leaves out clients, what goes wrong, and then deviations, and looks for schedules that have fewer still, as long as the same is violated. `None` if what was chosen,
/// written down by names, violates something else.
pub(crate) fn shrink(subject: &Subject, picks: Vec<u32>, violated: &str) -> Option<Shrunk> {
    let mut search = Search { subject, violated, runs: 0, until: Instant::now() + TIME_MAX };
    let first = search.run(Plan::Picks(picks), Tell::All);
    let mut best = search.again(Deviations::of(&first.told))?;
    search.leave_out_clients(&mut best);
    search.leave_out_faults(&mut best);
    search.leave_out(&mut best);
    search.look_for_fewer(&mut best);
    Some(Shrunk { ran: best.1, runs: search.runs })
}

struct Search<'a> {
    subject: &'a Subject,
    violated: &'a str,
    runs: usize,
    until: Instant,
}

type Found = (Deviations, Ran);

impl Search<'_> {
    fn run(&mut self, plan: Plan, tell: Tell) -> Ran {
        self.runs += 1;
        self.subject.run(plan, tell)
    }

    fn is_over(&self) -> bool {
        self.runs >= RUNS_MAX || Instant::now() >= self.until
    }

    /// Runs `wanted`; those of the deviations that were of use, if the same is violated.
    fn again(&mut self, wanted: Deviations) -> Option<Found> {
        let ran = self.run(Plan::Deviations(wanted), Tell::All);
        (ran.violated.as_deref() == Some(self.violated)).then(|| (Deviations::of(&ran.told), ran))
    }

    /// Leaves out clients, one after the other: what the others do comes in the order in which it came. Those stay without whom the default
    /// order is no good: the test asks for what they do.
    fn leave_out_clients(&mut self, best: &mut Found) {
        if !self.is_well_by_default() {
            return;
        }
        let named = |name: &str| name.strip_prefix("client ")?.parse().ok();
        let clients: BTreeSet<u32> = best.1.told.iter().filter_map(|step| named(&step.name)).collect();
        for client in clients {
            let before = self.subject.without();
            if self.is_over() {
                return;
            }
            self.subject.leave_out(before.iter().copied().chain([client]).collect());
            if !self.is_well_by_default() {
                self.subject.leave_out(before);
                continue;
            }
            let order = best.1.told.iter().map(|step| step.number).collect();
            let ran = self.run(Plan::Order(order), Tell::All);
            let is_same = ran.violated.as_deref() == Some(self.violated);
            match is_same.then(|| self.again(Deviations::of(&ran.told))).flatten() {
                Some(found) => *best = found,
                None => self.subject.leave_out(before),
            }
        }
    }

    fn is_well_by_default(&mut self) -> bool {
        self.run(Plan::Deviations(Deviations::default()), Tell::Nothing).violated.is_none()
    }

    /// Leaves out what goes wrong.
    fn leave_out_faults(&mut self, best: &mut Found) {
        let mut at = 0;
        while at < best.0.0.len() && !self.is_over() {
            let mut fewer = best.0.0.clone();
            let gone = fewer.remove(at);
            match is_fault(&gone.name).then(|| self.again(Deviations(fewer))).flatten() {
                Some(found) if found.0.0.len() < best.0.0.len() => *best = found,
                _ => at += 1,
            }
        }
    }

    /// Leaves out halves first, then single ones.
    fn leave_out(&mut self, best: &mut Found) {
        let mut size = best.0.0.len().div_ceil(2).max(1);
        loop {
            let (before, mut at) = (best.0.0.len(), 0);
            while at < best.0.0.len() && !self.is_over() {
                let mut fewer = best.0.0.clone();
                fewer.drain(at..(at + size).min(fewer.len()));
                match self.again(Deviations(fewer)) {
                    Some(found) if found.0.0.len() < best.0.0.len() => *best = found,
                    _ => at += size,
                }
            }
            if self.is_over() || (size == 1 && best.0.0.len() == before) {
                return;
            }
            size = size.div_ceil(2);
        }
    }

    /// Goes through the schedules with no deviation, with one, with two, .., fewer than `best` has.
    fn look_for_fewer(&mut self, best: &mut Found) {
        // Schedules of one number of deviations, by what is chosen up to the last of them.
        let mut level = vec![Vec::new()];
        for _ in 0..best.0.0.len() {
            let mut next = Vec::new();
            for prefix in level {
                if self.is_over() {
                    return;
                }
                let first = prefix.len();
                let ran = self.run(Plan::Picks(prefix), Tell::Nothing);
                if ran.violated.as_deref() == Some(self.violated) {
                    let told = self.run(Plan::Picks(ran.picks), Tell::All).told;
                    if let Some(found) = self.again(Deviations::of(&told)) {
                        *best = found;
                    }
                    return;
                }
                for (at, (default, len)) in ran.open.iter().enumerate().skip(first) {
                    let others = (0..*len).filter(|other| other != default);
                    next.extend(others.map(|other| [&ran.picks[..at], &[other]].concat()));
                }
            }
            level = next;
        }
    }
}

const RUNS_MAX: usize = 5_000;
const TIME_MAX: Duration = Duration::from_secs(2);
