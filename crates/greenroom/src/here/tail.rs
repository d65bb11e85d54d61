//! Turns that somebody follows as they end: which are meant, and those that are kept until they are taken.
//!
//! A shard looks here only while it times a turn anyway, or ends one that has waited: one load of a flag. Once somebody follows, it
//! times each turn. A tap that nobody has taken from for [`LEASE`] is closed by the shard itself, at its next turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_world::Timestamp;
use serde::{Deserialize, Serialize};

use super::built_in::is_built_in;
use super::meter::Class;
use super::samples::Sample;
use crate::actor::key::ActorId;

/// The taps of one shard.
#[derive(Default)]
pub(crate) struct Tail {
    open: AtomicBool,
    taps: Mutex<Vec<Tap>>,
}

/// Which turns are meant; what is `None` or false leaves all.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Meant {
    pub(crate) kind: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) outcome: Option<Outcome>,
    /// Those that ran for so many microseconds.
    pub(crate) over_micros: u64,
}

/// How a turn went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Ok,
    /// In any way that is none of `Ok`.
    Failed,
    Error,
    Broken,
    Refused,
    Late,
}

/// A turn that has ended, or a message that was refused.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub(crate) actor: &'a ActorId,
    pub(crate) method: &'a str,
    pub(crate) ran: Duration,
    pub(crate) failed: Option<Class>,
}

/// What a tap has seen.
#[derive(Default)]
pub(crate) struct Taken {
    /// Turns that were meant since it is open.
    pub(crate) matched: u64,
    /// The first of those since it was last taken from.
    pub(crate) turns: Vec<Sample>,
}

struct Tap {
    id: u64,
    meant: Meant,
    asked: Timestamp,
    taken: Taken,
}

impl Tail {
    /// Whether somebody follows.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Keeps a turn for those that mean it.
    pub(crate) fn note(&self, now: Timestamp, ended: Ended<'_>, sample: impl Fn() -> Sample) {
        let mut taps = self.lock();
        taps.retain(|tap| now.since(tap.asked) < LEASE);
        self.open.store(!taps.is_empty(), Ordering::Relaxed);
        for tap in taps.iter_mut().filter(|tap| tap.meant.holds(ended)) {
            tap.taken.matched += 1;
            if tap.taken.turns.len() < KEPT_MAX {
                tap.taken.turns.push(sample());
            }
        }
    }

    /// What the tap of this number has seen since it was last asked; `None` if it was not there, and is opened.
    pub(crate) fn take(&self, now: Timestamp, id: u64, meant: &Meant) -> Option<Taken> {
        let mut taps = self.lock();
        taps.retain(|tap| now.since(tap.asked) < LEASE);
        if let Some(tap) = taps.iter_mut().find(|tap| tap.id == id) {
            tap.asked = now;
            let turns = std::mem::take(&mut tap.taken.turns);
            return Some(Taken { matched: tap.taken.matched, turns });
        }
        if taps.len() < TAPS_MAX {
            taps.push(Tap { id, meant: meant.clone(), asked: now, taken: Taken::default() });
        }
        self.open.store(!taps.is_empty(), Ordering::Relaxed);
        None
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Tap>> {
        self.taps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meant {
    fn holds(&self, ended: Ended<'_>) -> bool {
        let is = |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
        let kind = ended.actor.kind.name();
        !is_built_in(kind)
            && is(&self.kind, kind)
            && is(&self.method, ended.method)
            && self.outcome.is_none_or(|outcome| outcome.holds(ended.failed))
            && ended.ran.as_micros() >= u128::from(self.over_micros)
            && self.key.as_deref().is_none_or(|wanted| &*ended.actor.key == wanted)
    }
}

impl Outcome {
    pub(crate) const ALL: [Self; 6] = [Self::Ok, Self::Failed, Self::Error, Self::Broken, Self::Refused, Self::Late];

    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Error => Class::Error.name(),
            Self::Broken => Class::Broken.name(),
            Self::Refused => Class::Refused.name(),
            Self::Late => Class::Late.name(),
        }
    }

    fn holds(self, failed: Option<Class>) -> bool {
        match (self, failed) {
            (Self::Ok, failed) => failed.is_none(),
            (Self::Failed, failed) => failed.is_some(),
            (one, Some(class)) => one.name() == class.name(),
            (_, None) => false,
        }
    }
}

/// Silence after which a tap is closed.
pub(crate) const LEASE: Duration = Duration::from_secs(5);
/// Turns that a tap keeps until it is taken from; of more it knows the number.
pub(crate) const KEPT_MAX: usize = 100;
/// Taps that a shard has at once.
const TAPS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use greenroom_protocols::reminders::Wall;

    use super::*;
    use crate::actor::key::Kind;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * 1_000_000_000)
    }

    fn actor(key: &str) -> ActorId {
        ActorId::unchecked(Kind::intern("followed"), key)
    }

    fn note(tail: &Tail, now: Timestamp, actor: &ActorId, ran_ms: u64, failed: Option<Class>) {
        let ran = Duration::from_millis(ran_ms);
        tail.note(now, Ended { actor, method: "post", ran, failed }, || Sample {
            noted: now,
            at: Wall(0),
            actor: actor.clone(),
            method: 0,
            caller: None,
            queued: None,
            ran: Some(ran),
            failed,
            error: None,
            trace: None,
        });
    }

    #[test]
    fn who_follows_gets_what_is_meant_and_the_number_of_what_is_not_kept() {
        let tail = Tail::default();
        let (ada, bob) = (actor("ada"), actor("bob"));
        let meant = Meant { key: Some("ada".to_owned()), over_micros: 2_000, ..Meant::default() };
        assert!(!tail.is_open() && tail.take(at(1), 7, &meant).is_none());
        for _ in 0..KEPT_MAX + 20 {
            note(&tail, at(1), &ada, 2, None);
            note(&tail, at(1), &ada, 1, None);
            note(&tail, at(1), &bob, 2, None);
        }
        let taken = tail.take(at(2), 7, &meant).expect("it is open");
        assert_eq!((taken.matched, taken.turns.len()), (KEPT_MAX as u64 + 20, KEPT_MAX));
        assert!(tail.take(at(2), 7, &meant).is_some_and(|taken| taken.turns.is_empty()), "each is taken once");
    }

    #[test]
    fn a_tap_that_nobody_takes_from_is_closed_by_the_next_turn() {
        let tail = Tail::default();
        let ada = actor("ada");
        tail.take(at(1), 7, &Meant::default());
        note(&tail, at(5), &ada, 1, None);
        assert!(tail.is_open());
        note(&tail, at(7), &ada, 1, None);
        assert!(!tail.is_open());
    }

    #[test]
    fn a_failure_is_meant_by_its_name_and_as_one_of_all() {
        let holds = |outcome: Outcome| [None, Some(Class::Error), Some(Class::Late)].map(|class| outcome.holds(class));
        assert_eq!(holds(Outcome::Ok), [true, false, false]);
        assert_eq!(holds(Outcome::Failed), [false, true, true]);
        assert_eq!(holds(Outcome::Late), [false, false, true]);
    }
}
