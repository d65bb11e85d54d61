//! What a shard turns away: it measures how long work waits, and tells those who hand it over.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom_protocols::shedding::{Class, Config, Level, Shedder};
use greenroom_world::Timestamp;

use super::Shard;
use crate::actor::error::Refusal;
use crate::actor::spent::Seconds;
use crate::here::Here;

/// What others see of it. Written by the shard alone, but for the count of those who asked.
#[derive(Default, Debug)]
pub(crate) struct Shed {
    /// The level's share in the upper 32 bits, its wait in milliseconds in the lower; 0 if nothing is turned away.
    level: AtomicU64,
    /// Busy time of the thread in thousandths in the upper 32 bits, milliseconds for retries in the lower.
    why: AtomicU64,
    asked: AtomicU64,
    turned_away: AtomicU64,
}

impl Shed {
    /// Calls that were turned away.
    pub(crate) fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Thousandths of outside calls that are turned away now.
    pub(crate) fn share(&self) -> u32 {
        (self.level.load(Ordering::Relaxed) >> 32) as u32
    }

    fn set(&self, shedder: &Shedder) {
        let Level { share, wait } = shedder.level();
        let level = if share == 0 { 0 } else { u64::from(share) << 32 | millis(wait) };
        self.why.store(u64::from(shedder.busy()) << 32 | millis(shedder.retry_after()), Ordering::Relaxed);
        self.level.store(level, Ordering::Relaxed);
    }

    /// Whether a call is taken on.
    #[inline]
    pub(crate) fn admit(&self, node: &Here, class: impl FnOnce() -> Class) -> Result<(), Refusal> {
        match self.level.load(Ordering::Relaxed) {
            0 => Ok(()),
            level => self.judge(node, level, class()),
        }
    }

    #[cold]
    fn judge(&self, node: &Here, level: u64, class: Class) -> Result<(), Refusal> {
        let level = Level { share: (level >> 32) as u32, wait: Duration::from_millis(level & u64::from(u32::MAX)) };
        if level.admits(class, self.asked.fetch_add(1, Ordering::Relaxed)) {
            return Ok(());
        }
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        let why = self.why.load(Ordering::Relaxed);
        let (wait, busy) = (Seconds(level.wait), (why >> 32) / 10);
        let why_words = format!("work waits for {wait} on one of its threads, which is {busy} % busy");
        let retry_after_ms = why & u64::from(u32::MAX);
        Err(Refusal::Shed { node: node.name().to_owned(), why: why_words, retry_after_ms })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(u64::from(u32::MAX))
}

/// How long work waits on a shard: from round to round, the time between a mark at the end of its queue and when what was
/// before the mark has had its go.
#[derive(Default)]
pub(super) struct Gauge {
    shedder: Option<Shedder>,
    /// When the last round began, if it had work.
    round: Option<Timestamp>,
    /// When the mark was set, and how many more are before it.
    mark: Option<(Timestamp, usize)>,
    thread_time: Duration,
    /// What run queues have given out since the mark was looked at.
    pub(super) taken: Cell<usize>,
}

impl Gauge {
    pub(super) fn new(target: Duration, now: Timestamp) -> Self {
        let config = Config { target, ..Config::default() };
        Self { shedder: (!target.is_zero()).then(|| Shedder::new(config, now)), ..Self::default() }
    }

    /// A round begins at `now`; `queued` wait for their go.
    pub(super) fn round(&mut self, shard: &Shard, now: Timestamp, queued: usize) {
        let Some(shedder) = &mut self.shedder else { return };
        let taken = self.taken.take();
        let round = self.round.map_or(Duration::ZERO, |began| now.since(began));
        let next = (queued > 0).then_some((now, queued));
        let (wait, mark) = match self.mark {
            Some((at, ahead)) if taken < ahead => (now.since(at), Some((at, ahead - taken))),
            Some((at, _)) => (now.since(at), next),
            None => (round, next),
        };
        let reached = mark == next;
        self.mark = mark;
        // A mark that was not reached says only that the wait is longer than this.
        if !reached && wait <= shedder.wait().max(round) {
            return;
        }
        let (world, before) = (shard.port().node.world(), &mut self.thread_time);
        let changed = shedder.waited(now, wait.max(round), |passed| {
            let used = world.thread_time().unwrap_or_default();
            let busy = used.saturating_sub(std::mem::replace(before, used));
            (busy.as_micros() * 1000 / passed.as_micros().max(1)) as u32
        });
        if changed || shedder.share() > 0 {
            shard.gauges().shed().set(shedder);
        }
    }

    /// Whether the round that began at `now` had work.
    pub(super) fn worked(&mut self, now: Option<Timestamp>) {
        self.round = now;
    }
}

impl Shard {
    /// Whether a call from another node is taken on.
    #[inline]
    pub(crate) fn admit_call(&self, from_outside: bool, deadline: Timestamp) -> Result<(), Refusal> {
        let class = || match from_outside {
            true => Class::Outside,
            false => Class::Inside { left: deadline.since(self.now()) },
        };
        self.gauges().shed().admit(&self.port().node, class)
    }
}
