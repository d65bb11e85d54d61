//! Turns that are worth a look: the last of a shard that failed, and the slowest of its last minute.
//!
//! A shard takes the lock when one of its turns fails, or is slower than those that are kept; who looks holds it for as long as it
//! takes to count references. Failures beyond about a thousand a second are not kept, so that telling of them costs little.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_protocols::reminders::Wall;
use greenroom_world::Timestamp;
use serde::Serialize;

use super::meter::Class;
use crate::actor::key::ActorId;

/// A turn that failed or was slow, or a message whose turn never began.
pub(crate) struct Sample {
    /// When it was noted, by the shard's clock and by the wall's.
    pub(crate) noted: Timestamp,
    pub(crate) at: Wall,
    pub(crate) actor: ActorId,
    /// The method's number.
    pub(crate) method: u16,
    /// The actor that waited for it.
    pub(crate) caller: Option<String>,
    /// How long its message had waited, and for how long it had run, as far as that is known.
    pub(crate) queued: Option<Duration>,
    pub(crate) ran: Option<Duration>,
    /// How it failed; `None` of one that was slow.
    pub(crate) failed: Option<Class>,
    /// What it failed with, cut by [`cut`] or [`cut_json`].
    pub(crate) error: Option<String>,
    /// The trace that it belongs to, in hexadecimal digits.
    pub(crate) trace: Option<String>,
}

/// What one shard keeps.
#[derive(Default)]
pub(crate) struct Samples {
    failed: Mutex<VecDeque<Arc<Sample>>>,
    slow: Mutex<Vec<Arc<Sample>>>,
}

/// Which turns are slower than those that are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bar {
    pub(crate) over: Duration,
    /// When the first of those that are kept is too old.
    pub(crate) until: Timestamp,
}

impl Default for Bar {
    fn default() -> Self {
        Self { over: Duration::ZERO, until: Timestamp::NEVER }
    }
}

impl Bar {
    /// Whether a turn that has taken so long is one of the slowest.
    #[inline]
    pub(crate) fn is_passed(self, took: Duration, now: Timestamp) -> bool {
        took >= SLOW_MIN && (took > self.over || now >= self.until)
    }
}

impl Samples {
    /// Whether a failure is kept that is noted now.
    pub(crate) fn takes_failure(&self, now: Timestamp) -> bool {
        let failed = locked(&self.failed);
        failed.len() < FAILED_MAX || failed.front().is_none_or(|oldest| now.since(oldest.noted) >= FAILED_WITHIN)
    }

    /// Keeps one that failed.
    pub(crate) fn note_failure(&self, sample: Sample) {
        let mut failed = locked(&self.failed);
        if failed.len() == FAILED_MAX {
            failed.pop_front();
        }
        failed.push_back(Arc::new(sample));
    }

    /// Keeps one that was slow; what the next one must pass.
    pub(crate) fn note_slow(&self, sample: Sample) -> Bar {
        let mut slow = locked(&self.slow);
        let now = sample.noted;
        slow.retain(|kept| now.since(kept.noted) < SLOW_KEPT);
        slow.push(Arc::new(sample));
        slow.sort_by_key(|kept| std::cmp::Reverse(kept.ran));
        slow.truncate(SLOW_MAX);
        let Some(fastest) = slow.get(SLOW_MAX - 1).and_then(|kept| kept.ran) else { return Bar::default() };
        let oldest = slow.iter().map(|kept| kept.noted).min().unwrap_or(now);
        Bar { over: fastest, until: oldest + SLOW_KEPT }
    }

    /// The last that failed, the oldest first.
    pub(crate) fn failed(&self) -> Vec<Arc<Sample>> {
        locked(&self.failed).iter().cloned().collect()
    }

    /// The slowest of the minute before `now`.
    pub(crate) fn slow(&self, now: Timestamp) -> Vec<Arc<Sample>> {
        locked(&self.slow).iter().filter(|kept| now.since(kept.noted) < SLOW_KEPT).cloned().collect()
    }
}

/// The first bytes of a text, as many as are kept of what a turn failed with.
pub(crate) fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(ERROR_MAX)].to_owned()
}

/// The first bytes of a value as JSON.
pub(crate) fn cut_json(value: &impl Serialize) -> String {
    let mut kept = Kept(Vec::new());
    // It ends where there is no more room.
    let _ = serde_json::to_writer(&mut kept, value);
    cut(&String::from_utf8_lossy(&kept.0))
}

struct Kept(Vec<u8>);

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = ERROR_MAX - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if room == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len().min(room)) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Failures that a shard keeps, if they are not all of the last moment.
const FAILED_MAX: usize = 64;
const FAILED_WITHIN: Duration = Duration::from_millis(64);
/// Slow turns that a shard keeps, for how long, and from when on one is slow.
const SLOW_MAX: usize = 32;
const SLOW_KEPT: Duration = Duration::from_secs(60);
const SLOW_MIN: Duration = Duration::from_millis(1);
/// Bytes of an error that are kept.
const ERROR_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::key::Kind;

    fn sample(at_ms: u64, ran_ms: u64) -> Sample {
        let actor = ActorId::unchecked(Kind::intern("sampled"), 1);
        let (noted, ran) = (Timestamp::from_nanos(at_ms * 1_000_000), Some(Duration::from_millis(ran_ms)));
        let (at, method) = (Wall(at_ms), 0);
        Sample { noted, at, actor, method, caller: None, queued: None, ran, failed: None, error: None, trace: None }
    }

    #[test]
    fn the_slowest_of_the_last_minute_are_kept() {
        let samples = Samples::default();
        let mut bar = Bar::default();
        for ran in 1..=40 {
            assert!(bar.is_passed(Duration::from_millis(ran), Timestamp::from_nanos(0)), "{ran} is slower than all");
            bar = samples.note_slow(sample(ran, ran));
        }
        assert_eq!(bar.over, Duration::from_millis(9));
        let now = Timestamp::from_nanos(41_000_000);
        assert!(!bar.is_passed(Duration::from_millis(9), now) && bar.is_passed(Duration::from_millis(10), now));
        assert_eq!(samples.slow(now).len(), SLOW_MAX);
        let later = Timestamp::from_nanos(60_009_000_000);
        assert!(bar.is_passed(Duration::from_millis(2), later), "the first of them is too old by then");
        assert_eq!(samples.slow(later).len(), SLOW_MAX - 1);
        assert_eq!(samples.note_slow(sample(200_000, 2)), Bar::default(), "all others are too old");
        assert_eq!(samples.slow(Timestamp::from_nanos(200_000_000_000)).len(), 1);
    }

    #[test]
    fn the_last_failures_are_kept_and_of_a_flood_some() {
        let samples = Samples::default();
        let mut kept = 0;
        for nanos in (0..1_000_000_000).step_by(10_000) {
            let now = Timestamp::from_nanos(nanos);
            if samples.takes_failure(now) {
                kept += 1;
                samples.note_failure(Sample { noted: now, ..sample(0, 0) });
            }
        }
        assert!((64..=1_064).contains(&kept), "{kept} of a hundred thousand in a second");
        assert_eq!(samples.failed().len(), FAILED_MAX);
    }

    #[test]
    fn what_a_turn_failed_with_is_cut() {
        assert_eq!(cut_json(&("a", 1)), r#"["a",1]"#);
        assert_eq!(cut_json(&"é".repeat(4_000)).len(), ERROR_MAX - 1, "no half of a character");
        assert_eq!(cut(&"é".repeat(4_000)).len(), ERROR_MAX);
    }
}
