//! What is claimed of a schedule, step by step and in the end, and the half of it in which all get their turns.

use std::collections::BTreeMap;

use greenroom::rehearsal::Step;

use super::{Driver, Violated};
use crate::now::Now;
use crate::world::When;

/// The half of a schedule in which all get their turns, if it comes so far: what must come yet has to.
#[derive(Default)]
pub(super) struct Fair {
    /// When each client and actor was served last, by its hash.
    pub(super) served: BTreeMap<u64, usize>,
    /// Steps of it.
    pub(super) steps: usize,
    /// Which claims for the end were true in it.
    pub(super) held: Vec<bool>,
}

impl Driver {
    /// Whether the schedule has come so far that all get their turns.
    pub(super) fn is_fair(&self) -> bool {
        self.world.is_explored() && self.steps >= self.reach.steps / 2
    }

    /// Leaves nothing to choose but the step of whom nothing has come for the longest time.
    pub(super) fn leave_the_fairest(&mut self) -> usize {
        let served = |step: &Step| self.fair.served.get(&step.at).map_or(0, |at| at + 1);
        if let Some(fairest) = self.enabled.iter().min_by_key(|step| served(step)).copied() {
            self.fair.served.insert(fairest.at, self.steps);
            self.enabled = vec![fairest];
            self.fair.steps += 1;
        }
        0
    }

    pub(super) fn judge_step(&mut self) -> Result<(), Violated> {
        if self.world.is_explored() {
            self.judges.step(&self.stage)?;
        }
        if self.fair.steps > 0 {
            self.judges.be_patient(self.reach.patience)?;
        }
        if self.claims.is_empty() {
            return Ok(());
        }
        let now = Now::new(self.stage.look());
        if self.fair.steps > 0 {
            for (claim, held) in self.claims.iter().zip(&mut self.fair.held) {
                *held |= claim.when == When::AtTheEnd && claim.judge(&now)? == Some(true);
            }
        }
        for (claim, seen) in self.claims.iter().zip(&mut self.seen) {
            match claim.when {
                When::Always if claim.judge(&now)? == Some(false) => return Err(format!("not always: {}", claim.name)),
                When::Sometimes if !*seen => *seen = claim.judge(&now)? == Some(true),
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn judge_end(&mut self) -> Result<(), Violated> {
        self.judges.end()?;
        let now = Now::new(self.stage.look());
        for claim in self.claims.iter().filter(|claim| claim.when == When::AtTheEnd) {
            if claim.judge(&now)? != Some(true) {
                return Err(format!("not in the end: {}", claim.name));
            }
        }
        Ok(())
    }

    /// It has gone on for so long, with turns for all, that what must come had to.
    pub(super) fn judge_cut(&mut self) -> Result<(), Violated> {
        if self.fair.steps < self.reach.patience {
            return Ok(());
        }
        let never =
            self.claims.iter().zip(&self.fair.held).find(|(claim, held)| claim.when == When::AtTheEnd && !**held);
        never.map_or(Ok(()), |(claim, _)| Err(format!("not within {} fair steps: {}", self.fair.steps, claim.name)))
    }
}
