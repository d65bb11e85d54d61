//! One loaded hint of a range, and the record and tick that come of it.

use std::time::Duration;

use super::attempts::{Attempts, TickAttempt};
use super::{Action, Etag, Fold, Found, GRACE, Hint, HintName, Now, Plan, Position, Record, Tombstone, Wall, WorkId};
use crate::time::Timestamp;

/// One hint that is loaded, and what comes of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Work<K, P> {
    pub(super) at: Position,
    pub(super) tag: Etag,
    pub(super) hint: Hint<K>,
    pub(super) stage: Stage<P>,
    /// The tick whose turn has run, until its record has moved on.
    pub(super) ran: Option<Ran>,
    /// How often it was put off by the store or the cluster.
    pub(super) tries: u32,
    /// How often its actor did not take the tick.
    pub(super) refused: u32,
    /// The tick whose turns have failed, by registration and due time, and how many have.
    pub(super) failed: Option<(u64, Wall, u32)>,
    /// Turns of the tick that may have taken their process down.
    pub(super) attempts: Attempts,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage<P> {
    /// Waits for its time.
    Due,
    Paused(Timestamp),
    Reading,
    Delivering(Found<P>, Fold),
    /// The next hint is made, for the record to go to this due time.
    Hinting(Found<P>, Wall),
    /// The record moves on to a hint that comes up then.
    Writing(Wall),
    /// The record is written as it is, so that no earlier write can come true.
    Fencing,
    /// An attempt is recorded, before its turn begins.
    Recording(TickAttempt),
    /// The record is to say that no attempt runs any more, before the pause that ends then.
    Clearing(TickAttempt, Timestamp),
    Removing,
    Dropping,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ran {
    pub(super) registration: u64,
    pub(super) due: Wall,
    pub(super) next: Option<Wall>,
}

impl<K: Clone, P: Plan> Work<K, P> {
    /// A hint whose time has not come.
    pub(super) fn new(at: Position, tag: Etag, hint: Hint<K>) -> Self {
        Self {
            at,
            tag,
            hint,
            stage: Stage::Due,
            ran: None,
            tries: 0,
            refused: 0,
            failed: None,
            attempts: Attempts::default(),
        }
    }

    /// Looks at the record again after a while.
    pub(super) fn pause(&mut self, now: Now) {
        self.stage = Stage::Paused(now.clock + pause_after(self.tries).min(PAUSE_MAX));
        self.tries += 1;
    }

    /// Counts a refusal by the tick's actor, and pauses. Other failures do not lengthen this pause: the store and the cluster may have
    /// failed, or an earlier turn of the tick run, for minutes before the first refusal.
    pub(super) fn refuse(&mut self, now: Now) {
        self.stage = Stage::Paused(now.clock + pause_after(self.refused).min(REFUSED_PAUSE_MAX));
        self.refused += 1;
    }

    /// Ends its pause, and takes what went wrong before for the cluster's doing.
    pub(super) fn retry(&mut self) {
        (self.tries, self.refused) = (0, 0);
        if let Stage::Paused(until) = &mut self.stage {
            *until = Timestamp::default();
        }
    }

    /// Counts a failed turn of the tick that `found` is due for, and pauses: the number of its failed turns.
    pub(super) fn fail(&mut self, now: Now, found: &Found<P>) -> u32 {
        let Record { registration, due, .. } = found.record;
        let is_same = |(known, at, _): &(u64, Wall, u32)| (*known, *at) == (registration, due);
        let before = self.failed.filter(is_same).map_or(0, |(.., failed)| failed);
        self.failed = Some((registration, due, before + 1));
        let pause = FAILED_PAUSE_MIN * 4_u32.saturating_pow(before.min(8));
        self.stage = Stage::Paused(now.clock + pause.min(REFUSED_PAUSE_MAX));
        before + 1
    }

    pub(super) fn drop_hint(&mut self, id: WorkId, out: &mut Vec<Action<K, P>>) {
        self.stage = Stage::Dropping;
        out.push(Action::DropHint { work: id, hint: HintName { at: self.at, tag: self.tag.clone() } });
    }

    /// A write that names this hint may still come true: not once the record has another version.
    pub(super) fn fence(&mut self, id: WorkId, now: Now, found: Found<P>, out: &mut Vec<Action<K, P>>) {
        if self.tries < FENCE_TRIES {
            // As a rule it is just about to.
            return self.pause(now);
        }
        self.stage = Stage::Fencing;
        out.push(Action::Write { work: id, of: self.hint.of.clone(), record: found.record, expected: found.tag });
    }

    /// The tick's turn has run: on to the next one.
    pub(super) fn move_on(&mut self, id: WorkId, now: Now, mut found: Found<P>, out: &mut Vec<Action<K, P>>) {
        let ran = self.ran.as_ref().map(|ran| (ran.registration, ran.due));
        assert_eq!(
            ran,
            Some((found.record.registration, found.record.due)),
            "a record moves on before its tick has run"
        );
        found.record.attempt = None;
        match self.ran.as_ref().and_then(|ran| ran.next) {
            Some(next) => self.make_hint(id, found, next, next, out),
            None => {
                let until = now.wall + GRACE;
                found.record.plan = Err(Tombstone);
                self.make_hint(id, found, until, until, out);
            }
        }
    }

    /// Sends the tick, of which `deaths` turns have taken their process down: a suspect's attempt is recorded first.
    pub(super) fn deliver(
        &mut self,
        id: WorkId,
        fold: Fold,
        deaths: u32,
        found: Found<P>,
        out: &mut Vec<Action<K, P>>,
    ) {
        let of = self.hint.of.clone();
        let attempt = TickAttempt { deaths, is_running: true };
        if deaths > 0 && found.record.attempt != Some(attempt) {
            self.stage = Stage::Recording(attempt);
            let record = Record { attempt: Some(attempt), ..found.record };
            return out.push(Action::Write { work: id, of, record, expected: found.tag });
        }
        self.attempts.begin();
        let (record, is_alone) = (found.record.clone(), deaths >= TOGETHER_MAX);
        self.stage = Stage::Delivering(found, fold);
        out.push(Action::Deliver { work: id, of, record, fold, is_alone });
    }

    /// Before a pause: the record of a suspect says that no attempt at it runs, so that a later owner counts none.
    pub(super) fn clear(&mut self, id: WorkId, found: Found<P>, out: &mut Vec<Action<K, P>>) {
        let Stage::Paused(until) = self.stage else { return };
        let Some(attempt) = found.record.attempt.filter(|attempt| attempt.is_running) else { return };
        let attempt = TickAttempt { is_running: false, ..attempt };
        self.stage = Stage::Clearing(attempt, until);
        let record = Record { attempt: Some(attempt), ..found.record };
        out.push(Action::Write { work: id, of: self.hint.of.clone(), record, expected: found.tag });
    }

    /// Gives the tick up, as so many turns of it have taken their process down: its record stays, and does not come up any more.
    pub(super) fn park(&mut self, id: WorkId, mut found: Found<P>, deaths: u32, out: &mut Vec<Action<K, P>>) {
        out.push(Action::ReportParked { of: self.hint.of.clone(), deaths });
        found.record.attempt = Some(TickAttempt { deaths, is_running: false });
        let due = found.record.due;
        self.make_hint(id, found, due, Wall::PARKED, out);
    }

    pub(super) fn make_hint(
        &mut self,
        id: WorkId,
        found: Found<P>,
        due: Wall,
        wake: Wall,
        out: &mut Vec<Action<K, P>>,
    ) {
        let hint = Hint { of: self.hint.of.clone(), expected: Some(found.tag.clone()) };
        self.stage = Stage::Hinting(found, due);
        out.push(Action::CreateHint { work: id, wake, hint });
    }
}

/// Returns the pause after a failure that `before` others of its sort came before.
fn pause_after(before: u32) -> Duration {
    PAUSE_MIN * 2_u32.saturating_pow(before.min(16))
}

/// The first pause after a failure.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// The longest while the store or the cluster fails: no longer, as what is due is late already when they are back.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The longest while an actor does not take its tick.
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(60);
/// The first pause after a turn that has failed by an exception; the next ones are four times as long each.
const FAILED_PAUSE_MIN: Duration = Duration::from_secs(1);
/// Times that an actor may refuse a tick before the reminder leaves memory for a while, if others need the room.
pub(super) const TRIES: u32 = 7;
/// For how long, at least.
pub(super) const POSTPONED: Duration = Duration::from_secs(60);
/// Looks at a record before a write is taken for one that will never come.
const FENCE_TRIES: u32 = 3;
/// Deaths from which on no other suspect of its owner runs beside a tick.
const TOGETHER_MAX: u32 = 2;
