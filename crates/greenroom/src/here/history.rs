//! The last turns of actors, for kinds whose history is kept: an interceptor like any other, so that the others pay nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use greenroom_world::Timestamp;

use crate::actor::key::ActorId;
use crate::intercept::{CallInfo, End, Interceptor, Outcome};
use crate::shard::Shard;
use crate::shard::inspect::PastTurn;

/// The last turns of the actors of one kind on one node.
pub(crate) struct History {
    len_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    actors: BTreeMap<ActorId, Ring>,
    /// The same, by when they were last heard of.
    heard: BTreeMap<u64, ActorId>,
    turns: u64,
}

#[derive(Default)]
struct Ring {
    last: u64,
    turns: VecDeque<Past>,
}

#[derive(Clone)]
struct Past {
    method: &'static str,
    ended: Timestamp,
    queued: Duration,
    took: Duration,
    outcome: Outcome,
    caller: Option<Box<str>>,
}

impl History {
    /// Keeps so many turns of each actor, at most [`LEN_MAX`].
    pub(crate) fn new(len_max: u32) -> Self {
        Self { len_max: (len_max as usize).min(LEN_MAX), kept: Mutex::default() }
    }

    /// How many turns of an actor are kept, and those of `id`, as of `now`.
    pub(crate) fn of(&self, id: &ActorId, now: Timestamp) -> (usize, Vec<PastTurn>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = kept.actors.get(id).into_iter().flat_map(|ring| ring.turns.iter());
        (self.len_max, turns.map(|past| past.told(now)).collect())
    }

    fn note(&self, id: &ActorId, past: Past) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { actors, heard, turns } = &mut *kept;
        *turns += 1;
        if !actors.contains_key(id)
            && actors.len() >= ACTORS_MAX
            && let Some((_, forgotten)) = heard.pop_first()
        {
            actors.remove(&forgotten);
        }
        let ring = actors.entry(id.clone()).or_default();
        heard.remove(&std::mem::replace(&mut ring.last, *turns));
        heard.insert(*turns, id.clone());
        if ring.turns.len() == self.len_max {
            ring.turns.pop_front();
        }
        ring.turns.push_back(past);
    }
}

impl Interceptor for History {
    fn finished(&self, call: &CallInfo<'_>, end: &End) {
        let Some(ended) = Shard::with(|shard| shard.map(Shard::clock)) else { return };
        let (method, queued, caller) = (call.method(), call.queued(), call.caller().map(Box::from));
        self.note(call.actor(), Past { method, ended, queued, took: end.took, outcome: end.outcome, caller });
    }
}

impl Past {
    fn told(&self, now: Timestamp) -> PastTurn {
        let outcome = match self.outcome {
            Outcome::Ok => "ok",
            Outcome::Error => "error",
            Outcome::Broken => "broken",
            Outcome::Refused => "refused",
        };
        PastTurn {
            method: self.method.to_owned(),
            ago_seconds: now.since(self.ended).as_secs_f64(),
            queued_seconds: self.queued.as_secs_f64(),
            took_seconds: self.took.as_secs_f64(),
            outcome: outcome.to_owned(),
            caller: self.caller.as_deref().map(str::to_owned),
        }
    }
}

/// Turns of one actor that are kept, whatever the configuration says.
const LEN_MAX: usize = 1000;
/// Actors of one kind whose turns are kept; those that were heard of longest ago are forgotten.
const ACTORS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::key::Kind;

    fn id(key: usize) -> ActorId {
        ActorId::unchecked(Kind::intern("diary"), key)
    }

    fn past(at: u64) -> Past {
        let (queued, took) = (Duration::ZERO, Duration::ZERO);
        Past { method: "write", ended: Timestamp::from_nanos(at), queued, took, outcome: Outcome::Ok, caller: None }
    }

    #[test]
    fn the_last_turns_are_kept_in_their_order() {
        let history = History::new(3);
        (0..5).for_each(|at| history.note(&id(1), past(at * 1_000_000_000)));
        let (len_max, turns) = history.of(&id(1), Timestamp::from_nanos(4_000_000_000));
        assert_eq!(len_max, 3);
        assert_eq!(turns.iter().map(|turn| turn.ago_seconds).collect::<Vec<_>>(), [2.0, 1.0, 0.0]);
        assert!(history.of(&id(2), Timestamp::from_nanos(0)).1.is_empty());
    }

    #[test]
    fn who_was_heard_of_longest_ago_is_forgotten_first() {
        let history = History::new(1);
        (0..ACTORS_MAX).for_each(|key| history.note(&id(key), past(0)));
        history.note(&id(0), past(1));
        history.note(&id(ACTORS_MAX), past(2));
        let known = |key: usize| !history.of(&id(key), Timestamp::from_nanos(2)).1.is_empty();
        assert!(known(0) && !known(1) && known(2) && known(ACTORS_MAX));
        assert_eq!(history.kept.lock().unwrap().actors.len(), ACTORS_MAX);
    }
}
