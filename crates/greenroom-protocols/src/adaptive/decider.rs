//! Who decides how many instances one actor has.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Action, Config, Costs, Epoch, Event, Known, Mode, Operations, Setting, Trips, Why};
use crate::gsi::ClusterId;
use crate::time::Timestamp;

/// Decides for one actor; see the [module](super).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decider {
    /// What no other decider is called.
    me: u64,
    config: Config,
    setting: Setting,
    known: Known,
    /// What was asked, by the cluster of the callers; half of it is forgotten with each window.
    counted: BTreeMap<ClusterId, Operations>,
    halved_at: Timestamp,
    heard_at: Timestamp,
    /// Where the one instance was when it was last heard of.
    home: Option<ClusterId>,
    apart: bool,
    /// Nothing is decided before.
    not_before: Timestamp,
    preparing: Option<Preparing>,
    /// When all are told again what they may have forgotten.
    tell_again_at: Timestamp,
}

/// One instance is to be where one in each cluster was: its home is told first.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Preparing {
    home: ClusterId,
    resend_at: Timestamp,
    until: Timestamp,
}

impl Decider {
    /// One called `me`, that knows of this mode.
    pub fn new(me: u64, config: Config, setting: Setting, known: Known, now: Timestamp) -> Self {
        Self {
            me,
            config,
            setting,
            known,
            counted: BTreeMap::new(),
            halved_at: now,
            heard_at: now,
            home: None,
            apart: false,
            not_before: now + config.window,
            preparing: None,
            tell_again_at: now + config.dwell,
        }
    }

    /// The mode that it has decided, or heard of.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// The clusters that it decides for.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// What is counted now, by the cluster of the callers.
    pub fn counted(&self) -> &BTreeMap<ClusterId, Operations> {
        &self.counted
    }

    /// Whether nobody has told it anything for so long that it may be forgotten: who tells it something tells it the mode.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.preparing.is_none() && now.since(self.heard_at) > self.config.window * FORGET_AFTER_WINDOWS
    }

    /// When [`handle`](Self::handle) next wants a [`Event::Tick`].
    pub fn deadline(&self) -> Option<Timestamp> {
        self.preparing.as_ref().map(|preparing| preparing.resend_at.min(preparing.until))
    }

    /// Applies `event` at `now` (`wall` by the wall clock), appending what must happen to `out`. Never fails.
    pub fn handle(&mut self, now: Timestamp, wall: Duration, event: Event, out: &mut Vec<Action>) {
        self.forget(now);
        match event {
            Event::Counted { at, known, by } => {
                self.heard_at = now;
                if known.epoch > self.known.epoch {
                    // An earlier decider's, which this one has not heard of.
                    self.known = known;
                    self.preparing = None;
                    self.settle(now);
                } else if known.epoch < self.known.epoch && self.preparing.is_none() {
                    out.push(Action::Announce(at, self.known.clone()));
                } else if self.known.mode != Mode::PerCluster {
                    self.home = Some(at);
                }
                for (cluster, operations) in by.iter().filter(|(cluster, _)| self.setting.clusters.contains(cluster)) {
                    self.counted.entry(*cluster).or_default().add(operations);
                }
                self.decide(now, wall, out);
                if self.tell_again_at <= now && self.preparing.is_none() && self.known.why.is_some() {
                    self.announce(now, out);
                }
            }
            Event::Ready { at, epoch } => {
                if epoch == self.known.epoch && self.preparing.as_ref().is_some_and(|preparing| preparing.home == at) {
                    self.announce(now, out);
                }
            }
            Event::Setting(setting) => {
                self.counted.retain(|cluster, _| setting.clusters.contains(cluster));
                self.setting = setting;
            }
            Event::Apart(apart) => {
                if std::mem::replace(&mut self.apart, apart) && !apart {
                    // What was counted meanwhile is one side's.
                    self.counted.clear();
                    self.not_before = self.not_before.max(now + self.config.window);
                }
            }
            Event::Tick => self.tick(now, out),
        }
        if let Some(preparing) = &self.preparing {
            let home = Some(preparing.home);
            assert_eq!(self.known.mode, Mode::Single { home }, "a home is prepared that is not to be one");
        }
        debug_assert!(
            self.counted.keys().all(|cluster| self.setting.clusters.contains(cluster)),
            "what is counted is of a cluster that is not there"
        );
    }

    /// Forgets half of what was counted with each window that has passed.
    fn forget(&mut self, now: Timestamp) {
        let window = self.config.window.max(Duration::from_millis(1));
        let passed = now.since(self.halved_at).as_nanos() / window.as_nanos();
        if passed >= 64 {
            self.counted.clear();
            self.halved_at = now;
            return;
        }
        for _ in 0..passed {
            self.counted.values_mut().for_each(Operations::halve);
            self.halved_at = self.halved_at + window;
        }
        if passed > 0 {
            self.counted.retain(|_, operations| !operations.is_empty());
        }
    }

    fn decide(&mut self, now: Timestamp, wall: Duration, out: &mut Vec<Action>) {
        if self.apart || self.preparing.is_some() || now < self.not_before || self.setting.clusters.len() < 2 {
            return;
        }
        let Config { ratio_percent, gain_min, notice, .. } = self.config;
        let pays = |is: Trips, would: Trips| {
            is.is_at_least(ratio_percent, would) && is.0 >= would.0.saturating_add(gain_min.0)
        };
        let decided = match self.known.mode {
            Mode::Single { home } => {
                let Some(home) = self.home.or(home) else { return };
                let Costs { single, per_cluster } = Costs::of(&self.counted, home, &self.setting, notice);
                let alone = Costs::alone(&self.counted, home, &self.setting);
                let others = self.setting.clusters.iter().filter(|other| **other != home);
                let there = others.map(|other| (Costs::alone(&self.counted, *other, &self.setting), *other)).min();
                // Of both that pay the one that saves more.
                let saved = if pays(single, per_cluster) { single.0 - per_cluster.0 } else { 0 };
                match there.filter(|(there, _)| pays(alone, *there) && alone.0 - there.0 > saved) {
                    Some((there, other)) => {
                        // What both cost in any case is in all of these.
                        let per_cluster = Trips(per_cluster.0.saturating_add(alone.0 - single.0));
                        Some((Mode::Single { home: Some(other) }, alone, per_cluster, Some(there)))
                    }
                    None => (saved > 0).then_some((Mode::PerCluster, single, per_cluster, None)),
                }
            }
            Mode::PerCluster => {
                let Some((home, costs)) = Costs::best(&self.counted, &self.setting, notice) else { return };
                let Costs { single, per_cluster } = costs;
                let mode = Mode::Single { home: Some(home) };
                pays(per_cluster, single).then_some((mode, single, per_cluster, None))
            }
        };
        let Some((mode, single, per_cluster, elsewhere)) = decided else { return };
        let why = Some(Why { counted: self.counted.clone(), single, per_cluster, elsewhere, at: wall });
        let epoch = Epoch { number: self.known.epoch.number.saturating_add(1), by: self.me };
        assert!(self.known.epoch < epoch || epoch.number == u64::MAX, "a later mode has an earlier epoch");
        self.known = Known { epoch, mode, why };
        self.settle(now);
        out.push(Action::Switched(mode));
        match mode {
            Mode::Single { home: Some(home) } => {
                let until = now + self.config.prepare_for;
                self.home = Some(home);
                self.preparing = Some(Preparing { home, resend_at: now, until });
                self.tick(now, out);
            }
            _ => self.announce(now, out),
        }
    }

    /// Lets the new mode be for a while.
    fn settle(&mut self, now: Timestamp) {
        self.home = None;
        self.not_before = now + self.config.dwell.max(self.config.window);
    }

    fn tick(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        let Some(preparing) = &mut self.preparing else { return };
        if preparing.until <= now {
            // It takes its time, or is lost: then whoever is called first has the instance.
            return self.announce(now, out);
        }
        if preparing.resend_at <= now {
            preparing.resend_at = now + self.config.resend_after;
            out.push(Action::Announce(preparing.home, self.known.clone()));
        }
    }

    /// Tells everybody.
    fn announce(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        self.preparing = None;
        self.tell_again_at = now + self.config.dwell;
        out.extend(self.setting.clusters.iter().map(|cluster| Action::Announce(*cluster, self.known.clone())));
    }
}

/// Windows of silence after which a decider may be forgotten.
const FORGET_AFTER_WINDOWS: u32 = 20;
