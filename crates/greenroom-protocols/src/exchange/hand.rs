//! One exchange that a node is in.

use std::collections::BTreeMap;

use super::message::ExchangeId;
use super::{Config, Event, OrderEnd};
use crate::directory::Epoch;
use crate::node::NodeId;
use crate::time::Timestamp;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Hand {
    pub(super) x: ExchangeId,
    pub(super) with: NodeId,
    /// When the offer was sent, or received.
    pub(super) begun: Timestamp,
    pub(super) stage: Stage,
    /// Who goes and who comes, in the order of choice.
    pub(super) steps: Vec<Step>,
    /// Nothing more is ordered.
    closed: bool,
    /// Whether the other side was told that nothing more comes from here.
    pub(super) told: bool,
    /// How many actors the other side has sent, once it has said so.
    theirs: Option<u16>,
    /// Since when both sides have said that they send nothing more.
    over_since: Option<Timestamp>,
    pub(super) moved: u16,
    pub(super) arrived: u16,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage {
    /// The offer is under way, or its answer.
    Proposing {
        offered: BTreeMap<u64, Offered>,
        /// Whether balance sends some of them.
        surplus: bool,
        /// Only ever with a rule out: the answer did not come in time.
        given_up: bool,
    },
    /// The choice is under way, or its confirmation.
    Granting,
    /// Both send.
    Moving,
}

/// What was offered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Offered {
    pub(super) epoch: Epoch,
    pub(super) cpu: u32,
    pub(super) bytes: u32,
}

/// An actor that goes or comes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Step {
    pub(super) hash: u64,
    pub(super) epoch: Epoch,
    pub(super) goes: bool,
    pub(super) cpu: u32,
    pub(super) bytes: u32,
    pub(super) progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Progress {
    Waiting,
    Ordered,
    /// It has moved, or does not go.
    Ended,
    /// It was to come, and will not.
    Missing,
}

impl Hand {
    pub(super) fn new(x: ExchangeId, with: NodeId, begun: Timestamp, stage: Stage, steps: Vec<Step>) -> Self {
        Self {
            x,
            with,
            begun,
            stage,
            steps,
            closed: false,
            told: false,
            theirs: None,
            over_since: None,
            moved: 0,
            arrived: 0,
        }
    }

    /// When its last order must have begun.
    pub(super) fn send_until(&self, config: &Config) -> Timestamp {
        self.begun + config.send_for
    }

    /// Until when the other side may send.
    pub(super) fn lock_until(&self, me: NodeId, config: &Config) -> Timestamp {
        if !config.checks.locks_outlive && self.x.by != me {
            return self.begun + config.answer_within;
        }
        let answer = if self.x.by == me { config.answer_within } else { Default::default() };
        self.begun + answer + config.send_for + config.lock_slack
    }

    /// When it is over whatever is still awaited.
    pub(super) fn ends_at(&self, me: NodeId, config: &Config) -> Timestamp {
        let lock = self.lock_until(me, config);
        match &self.stage {
            Stage::Proposing { .. } => self.begun + config.answer_within,
            _ if !config.checks.locks_end => Timestamp::NEVER,
            Stage::Granting => lock,
            // What has not come by now was not to come: it is elsewhere, or has ended.
            Stage::Moving if let Some(since) = self.over_since.filter(|_| config.checks.over) => {
                since + config.answer_within
            }
            Stage::Moving if config.checks.locks_outlive || self.x.by == me => lock + config.wait_beyond,
            Stage::Moving => lock,
        }
    }

    /// The next actor to be ordered, unless too many before it have neither arrived nor settled: so neither side is fuller than
    /// the choice makes it at any step by more than so many.
    pub(super) fn next(&self, credit: usize) -> Option<usize> {
        if self.closed || self.stage != Stage::Moving {
            return None;
        }
        let mut ahead = 0;
        for (index, step) in self.steps.iter().enumerate() {
            match (step.progress, step.goes) {
                (Progress::Waiting, true) => return (ahead < credit).then_some(index),
                (Progress::Ended, _) => {}
                _ => ahead += 1,
            }
        }
        None
    }

    /// Orders nothing more; what was ordered goes on.
    pub(super) fn close(&mut self) {
        self.closed = true;
        for step in self.steps.iter_mut().filter(|step| step.goes && step.progress == Progress::Waiting) {
            step.progress = Progress::Ended;
        }
    }

    /// Nothing comes any more. What was to come made room for what was to go after it, so that it counts as awaited still.
    pub(super) fn expect_nothing(&mut self) {
        for step in self.steps.iter_mut().filter(|step| !step.goes && step.progress == Progress::Waiting) {
            step.progress = Progress::Missing;
        }
    }

    /// Takes back the promise of an actor that has not been ordered yet; nothing if it has, or was not promised.
    pub(super) fn withhold(&mut self, hash: u64) -> Option<&Step> {
        let step = self.steps.iter_mut().find(|step| step.goes && step.hash == hash)?;
        if step.progress != Progress::Waiting {
            return None;
        }
        step.progress = Progress::Ended;
        Some(step)
    }

    /// An order has ended.
    pub(super) fn settled(&mut self, hash: u64, end: OrderEnd, config: &Config) -> &Step {
        let at = self.steps.iter().position(|step| step.goes && step.hash == hash);
        let at = at.filter(|at| self.steps[*at].progress == Progress::Ordered);
        assert!(at.is_some(), "an order has ended that was not given: {:?}", Event::Settled { x: self.x, hash, end });
        let at = at.unwrap_or_default();
        self.steps[at].progress = Progress::Ended;
        match end {
            OrderEnd::Moved => self.moved += 1,
            // The other side is not there, or has no room: the others would come back as well.
            OrderEnd::Back if config.checks.credit => self.close(),
            OrderEnd::Back | OrderEnd::Withdrawn => {}
        }
        &self.steps[at]
    }

    /// An actor has come; nothing if it was not awaited.
    pub(super) fn arrived(&mut self, hash: u64) -> Option<&Step> {
        let at = self.steps.iter().position(|step| !step.goes && step.hash == hash)?;
        if self.steps[at].progress == Progress::Ended {
            return None;
        }
        self.steps[at].progress = Progress::Ended;
        self.arrived = self.arrived.saturating_add(1);
        self.compare();
        Some(&self.steps[at])
    }

    /// The other side has sent so many, and sends no more.
    pub(super) fn done(&mut self, now: Timestamp, sent: u16) {
        self.theirs = Some(sent);
        self.compare();
        self.look_whether_over(now);
    }

    /// This side has told the other one that it sends no more.
    pub(super) fn tell(&mut self, now: Timestamp) {
        self.told = true;
        self.look_whether_over(now);
    }

    fn look_whether_over(&mut self, now: Timestamp) {
        if self.told && self.theirs.is_some() {
            self.over_since.get_or_insert(now);
        }
    }

    fn compare(&mut self) {
        if self.theirs.is_some_and(|sent| self.arrived >= sent) {
            self.expect_nothing();
        }
    }

    /// Whether an actor of this hash is to come.
    pub(super) fn awaits(&self, hash: u64) -> bool {
        self.steps.iter().any(|step| !step.goes && step.hash == hash && step.progress == Progress::Waiting)
    }

    /// Whether none of its own actors will go any more, nor is under way.
    pub(super) fn has_sent(&self) -> bool {
        self.stage == Stage::Moving && self.all_ended(true)
    }

    /// Whether all that was to come has come, or never will.
    pub(super) fn has_received(&self) -> bool {
        self.all_ended(false)
    }

    /// Orders that have not ended.
    pub(super) fn undecided(&self) -> usize {
        self.steps.iter().filter(|step| step.progress == Progress::Ordered).count()
    }

    fn all_ended(&self, goes: bool) -> bool {
        let ended = |step: &Step| matches!(step.progress, Progress::Ended | Progress::Missing);
        self.steps.iter().all(|step| step.goes != goes || ended(step))
    }
}
