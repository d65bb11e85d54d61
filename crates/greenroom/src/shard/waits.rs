//! Turns that have run for long, and who waits for them.

use std::time::Duration;

use greenroom_world::Timestamp;
use serde::{Deserialize, Serialize};

use super::Shard;
use super::beside::is_beside;
use crate::actor::spent::Seconds;
use crate::observe::events::Happened;

/// A turn that has run for long, as one node sees it: part of [`Waits`](crate::Waits).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LongTurn {
    /// The actor.
    pub actor: String,
    /// The actor and its method: `chat_room/lobby.post`.
    pub turn: String,
    /// For how many seconds it has run.
    pub running_seconds: f64,
    /// The actors that wait for this turn, or behind it in the actor's mailbox; at most 64 are named.
    pub waiters: Vec<String>,
    /// Messages in the actor's mailbox.
    pub queued: u64,
}

impl Shard {
    /// The turns of this shard that have run for `over`, the longest first, at most so many.
    pub(crate) fn long_turns(&self, over: Duration, max: usize) -> Vec<LongTurn> {
        let now = self.clock();
        let mut long: Vec<_> = {
            let turns = self.turns.borrow();
            let long = turns.iter().filter(|turn| now.since(turn.began) >= over && !is_beside(turn.activation.id()));
            long.map(|turn| (turn.began, turn.activation.clone(), turn.job, turn.link.clone())).collect()
        };
        long.sort_by_key(|(began, ..)| *began);
        long.truncate(max);
        let told = long.into_iter().map(|(began, activation, job, link)| {
            let mut waiters: Vec<String> = self.awaited_by(&link).into_iter().collect();
            activation.each_waiter(&mut |link| {
                if waiters.len() < WAITERS_MAX {
                    waiters.extend(self.awaited_by(link));
                }
            });
            waiters.sort();
            waiters.dedup();
            LongTurn {
                actor: activation.id().to_string(),
                turn: activation.name_of(job.method),
                running_seconds: now.since(began).as_secs_f64(),
                waiters,
                queued: activation.waiting() as u64,
            }
        });
        told.collect()
    }

    /// Warns of turns that have run for the node's `long_turn`, each once; when to look again.
    pub(super) fn warn_of_long_turns(&self, now: Timestamp) -> Option<Timestamp> {
        let over = self.port.node.config().long_turn;
        if over.is_zero() {
            return None;
        }
        let due = self.long_look.get();
        if now < due {
            return (due != Timestamp::NEVER).then_some(due);
        }
        let mut turns = self.turns.borrow_mut();
        let (mut next, mut any): (Option<Timestamp>, bool) = (None, false);
        for turn in turns.iter_mut() {
            let ends = turn.began + over;
            any |= ends <= now;
            if ends <= now && !std::mem::replace(&mut turn.told, true) && !is_beside(turn.activation.id()) {
                let (name, ran) = (turn.activation.name_of(turn.job.method), Seconds(now.since(turn.began)));
                let queued = turn.activation.waiting();
                let (actor, ran_for) = (turn.activation.id().to_string(), now.since(turn.began));
                let long = Happened::LongTurn { actor, turn: name.clone(), ran: ran_for, queued };
                self.port.node.happened(long);
                tracing::warn!(turn = %name, queued, "a turn has run for {ran}; `greenroom waits` says who waits for whom");
            } else if ends > now {
                next = Some(next.map_or(ends, |next| next.min(ends)));
            }
        }
        drop(turns);
        if any || !self.gauges().long_turns().is_empty() {
            // As long as there is one it is looked whether it still runs.
            self.gauges().set_long_turns(self.long_turns(over, LONG_MAX));
            next = Some(next.map_or(now + LOOKS_AGAIN, |next| next.min(now + LOOKS_AGAIN)));
        }
        // A turn that begins to wait from now on is not long before that.
        self.long_look.set(next.unwrap_or(now + over));
        next
    }
}

/// Long turns that are published.
const LONG_MAX: usize = 64;
/// Time after which it is looked again whether they run.
const LOOKS_AGAIN: Duration = Duration::from_secs(1);
/// Waiters of one turn that are named.
const WAITERS_MAX: usize = 64;
