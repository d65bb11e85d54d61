//! All traces, each once: depth first, with source sets (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014) and sleep sets (Godefroid, 1996).
//!
//! Two steps race if they touch the same actor or client and neither has come of the other: where a schedule has one of them first, another
//! is run that has the other one first. What was run already from some place sleeps there until a step comes that it races with.
//!
//! - An exclusive turn is a lock: a message that waits for its end races with the *start* of that turn.
//! - Messages that still wait when a schedule ends take part as if they came last.
//! - What the test itself chooses, time and faults are branches: all of them are run at their place.
//! - Where what would reverse a race cannot come at its place, all that can come there is run.

use std::collections::HashMap;

use greenroom::rehearsal::{Kind, Step};

use super::Chooser;

#[derive(Default)]
pub(super) struct Dpor {
    /// The places of the schedule that is run.
    path: Vec<Place>,
    at: usize,
    /// Whether a schedule was run.
    has_begun: bool,
    is_over: bool,
    /// Whether source sets are left out: all that can come is run, but for what sleeps.
    sleeps_only: bool,
}

/// Where something was chosen.
struct Place {
    enabled: Vec<Step>,
    /// What was run from here before, and need not be run again until something comes that it races with.
    sleep: Vec<Step>,
    /// The same, as it was when a schedule first came here.
    slept: Vec<Step>,
    /// What is still to be run from here.
    wanted: Vec<u64>,
    chosen: Step,
}

impl Place {
    fn sleeps(&self, step: &Step) -> bool {
        self.sleep.iter().any(|asleep| asleep.number == step.number)
    }
}

impl Dpor {
    /// For comparison: sleep sets alone.
    #[cfg(test)]
    pub(super) fn of_sleep_sets() -> Self {
        Self { sleeps_only: true, ..Self::default() }
    }

    /// A place that no schedule has come to before.
    fn enter(&mut self, enabled: &[Step], default: usize) -> Option<usize> {
        let sleep: Vec<Step> = match self.path.last() {
            // A choice is a part of the step before it.
            Some(before) if before.chosen.kind == Kind::Choice => before.slept.clone(),
            Some(before) => before.sleep.iter().filter(|step| !races(step, &before.chosen)).copied().collect(),
            None => Vec::new(),
        };
        let is_asleep = |step: &Step| sleep.iter().any(|asleep| asleep.number == step.number);
        let at = match is_asleep(&enabled[default]) {
            false => default,
            true => enabled.iter().position(|step| !is_asleep(step))?,
        };
        let chosen = enabled[at];
        let is_wanted =
            |step: &&Step| self.sleeps_only || is_branch(&chosen) || is_branch(step) || step.number == chosen.number;
        let wanted = enabled.iter().filter(is_wanted).map(|step| step.number).collect();
        self.path.push(Place { enabled: enabled.to_vec(), slept: sleep.clone(), sleep, wanted, chosen });
        Some(at)
    }

    /// Adds what reverses the races of the schedule that has ended.
    fn look_for_races(&mut self, blocked: &[Step]) {
        let places = self.path.len();
        let steps: Vec<Step> = self.path.iter().map(|place| place.chosen).chain(blocked.iter().copied()).collect();
        let by_number: HashMap<u64, usize> = steps.iter().enumerate().map(|(at, step)| (step.number, at)).collect();
        let mut past: Vec<Past> = Vec::with_capacity(steps.len());
        for (at, step) in steps.iter().enumerate() {
            // What it could not come without, wherever it came: and what it could not come without here.
            let mut own = Past::new(at);
            if let Some(born) = by_number.get(&step.born).filter(|born| **born < at) {
                own.add(*born, &past[*born]);
            }
            if let Some(before) = (0..at).rev().find(|before| steps[*before].queue == step.queue && step.queue != 0) {
                own.add(before, &past[before]);
            }
            let mut full = own.clone();
            for before in (0..at.min(places)).rev() {
                if own.has(before) || step.kind == Kind::Choice || !races(&steps[before], step) {
                    continue;
                }
                full.add(before, &past[before]);
                if is_branch(step) || is_branch(&steps[before]) {
                    own.add(before, &past[before]);
                } else if !self.is_locked_out(before, step, by_number.get(&step.born)) {
                    self.reverse(before, at, &steps, &past, &own);
                    own.add(before, &past[before]);
                }
            }
            past.push(full);
        }
    }

    /// Whether a message could not have come at this place, as somebody had its actor.
    fn is_locked_out(&self, before: usize, step: &Step, born: Option<&usize>) -> bool {
        let place = &self.path[before];
        let was_there = born.is_none_or(|born| *born < before);
        let could_come = || place.enabled.iter().any(|other| other.number == step.number);
        // Where the message was not there yet, a turn that had begun would have kept it waiting: it races with that turn's start.
        let excludes = !step.read && place.chosen.kind != Kind::Start;
        step.kind == Kind::Start && if was_there { !could_come() } else { excludes }
    }

    /// Lets `steps[at]` come before `steps[before]`.
    fn reverse(&mut self, before: usize, at: usize, steps: &[Step], past: &[Past], own: &Past) {
        let place = &mut self.path[before];
        // What comes between them and of which the first is no cause, and then the second: one that could come first of these is enough.
        let between = (before + 1..at).filter(|other| !past[*other].has(before));
        let mut firsts: Vec<u64> = Vec::new();
        let mut taken: Vec<usize> = Vec::new();
        for other in between {
            if !taken.iter().any(|one| past[other].has(*one)) {
                firsts.push(steps[other].number);
            }
            taken.push(other);
        }
        if !taken.iter().any(|one| own.has(*one)) {
            firsts.push(steps[at].number);
        }
        let is_there = |number: &u64| place.enabled.iter().any(|step| step.number == *number);
        if firsts.iter().any(|first| place.wanted.contains(first) || *first == place.chosen.number) {
            return;
        }
        match firsts.iter().rev().find(|first| is_there(first)) {
            Some(first) => place.wanted.push(*first),
            None => place.wanted = place.enabled.iter().map(|step| step.number).collect(),
        }
    }
}

/// The steps without which one could not have come where it did.
#[derive(Clone)]
struct Past(Vec<u64>);

impl Past {
    fn new(at: usize) -> Self {
        Self(vec![0; at / 64 + 1])
    }

    fn has(&self, step: usize) -> bool {
        self.0.get(step / 64).is_some_and(|word| word >> (step % 64) & 1 == 1)
    }

    fn add(&mut self, step: usize, its: &Past) {
        self.0[step / 64] |= 1 << (step % 64);
        self.0.iter_mut().zip(&its.0).for_each(|(own, other)| *own |= other);
    }
}

/// Whether the order of two steps may matter.
fn races(one: &Step, other: &Step) -> bool {
    if one.kind == Kind::Choice || other.kind == Kind::Choice {
        return false;
    }
    one.at == other.at || one.kind.touches_all() || other.kind.touches_all()
}

/// Whether it is run wherever it can come, and all that can come beside it.
fn is_branch(step: &Step) -> bool {
    step.kind == Kind::Choice || step.kind.touches_all()
}

impl Chooser for Dpor {
    fn begin(&mut self, _seed: u64) {
        self.at = 0;
        if !std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        while let Some(place) = self.path.last_mut() {
            place.sleep.push(place.chosen);
            let next = place.enabled.iter().find(|step| place.wanted.contains(&step.number) && !place.sleeps(step));
            if let Some(next) = next.copied() {
                place.chosen = next;
                return;
            }
            self.path.pop();
        }
        self.is_over = true;
    }

    fn pick(&mut self, enabled: &[Step], default: usize) -> Option<usize> {
        let at = self.at;
        self.at += 1;
        if self.is_over {
            return None;
        }
        if let Some(place) = self.path.get(at) {
            return enabled.iter().position(|step| step.number == place.chosen.number).or(Some(default));
        }
        self.enter(enabled, default)
    }

    fn end(&mut self, blocked: &[Step]) {
        if !self.sleeps_only && !self.is_over {
            self.look_for_races(blocked);
        }
    }

    fn has_all(&self) -> bool {
        let is_done = |place: &Place| {
            let rest = place.enabled.iter().filter(|step| place.wanted.contains(&step.number));
            rest.filter(|step| step.number != place.chosen.number).all(|step| place.sleeps(step))
        };
        self.is_over || (self.has_begun && self.path.iter().all(is_done))
    }
}
