//! When the states of an activation are loaded and saved.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use greenroom_world::Timestamp;

use super::Shard;
use super::activation::{Activation, Phase};
use super::frames::Caller;
use super::late::HOOK;
use crate::actor::error::Doubt;
use crate::actor::interface::{Behaviour, Why};
use crate::state::Saving;

impl<A: Behaviour> Activation<A> {
    /// Whether there is anything to load before the first turn.
    pub(super) const LOADS: bool = A::OPTIONS.persistent || A::STORED || A::OPTIONS.reliable;

    /// True if its states are records that another activation may write.
    pub(super) const RELOADS: bool = (A::OPTIONS.persistent || A::STORED || A::FOREIGN) && !A::OPTIONS.reliable;

    /// True if it reads its states again before anything else begins.
    pub(super) fn must_reload(&self) -> bool {
        Self::RELOADS && self.is_stale.get()
    }

    /// Begins to read the states again, as no turn runs.
    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    pub(super) fn begin_reload(self: &Rc<Self>, shard: &Shard) {
        self.is_stale.set(false);
        self.exclusive.set(true);
        let this = self.clone();
        let turn = Box::pin(async move {
            if let Some(actor) = &mut *this.actor.borrow_mut() {
                this.reload(actor).await;
            }
        });
        shard.begin_turn(self.clone(), HOOK, Timestamp::NEVER, Caller::NOBODY, turn);
    }

    /// Reads the states again. An activation that cannot ends: the next one reads them, or refuses what waits.
    async fn reload(&self, actor: &mut A) {
        if self.saves_late() {
            // If another instance has saved, this goes on with what that has written.
            self.save_late(actor).await;
        }
        if let Err(error) = actor.refresh(&self.cx).await {
            tracing::warn!(actor = %self.cx.id, %error, "an activation ends whose states could not be read again");
            end_current(Why::Unsaved);
        }
    }

    /// What follows an exclusive turn of a kind that saves by itself.
    pub(super) async fn turn_done(&self, actor: &mut A) {
        self.save_by(A::OPTIONS.saving, actor).await;
    }

    /// Saves after an exclusive turn, as `saving` says.
    pub(super) async fn save_by(&self, saving: Saving, actor: &mut A) {
        match saving {
            Saving::Explicit => {}
            Saving::EachTurn => self.save_turn(actor).await,
            Saving::Every(period) => self.save_in(self.now() + period),
        }
    }

    /// Saves what the turn has changed, then lets its reply go.
    async fn save_turn(&self, actor: &mut A) {
        let saved = actor.save_changed(&self.cx).await;
        let held = self.cx.state.as_ref().and_then(|state| state.holder.take());
        match saved {
            Ok(()) => {
                if let Some(held) = held {
                    held.release();
                }
            }
            Err(error) => {
                let error = self.cx.note(error);
                tracing::warn!(actor = %self.cx.id, %error, "a turn's state was not saved");
                if let Some(held) = held {
                    held.fail(Doubt::Unsaved { message: error.to_string() }.into());
                }
            }
        }
    }

    /// Asks for a save at `due`, unless one is asked for already.
    fn save_in(&self, due: Timestamp) {
        let Some(state) = &self.cx.state else { return };
        if state.due.load(Ordering::Relaxed) == 0 {
            state.due.store(due.as_nanos(), Ordering::Relaxed);
            Shard::with(|shard| {
                if let Some(shard) = shard {
                    shard.save_at(self.slot, due);
                }
            });
        }
    }

    /// Whether a change waits to be saved.
    pub(super) fn saves_late(&self) -> bool {
        matches!(A::OPTIONS.saving, Saving::Every(_))
            && self.cx.state.as_ref().is_some_and(|state| state.due.load(Ordering::Relaxed) != 0)
    }

    /// Begins the save that is due; when to look again otherwise.
    pub(super) fn save_if_due(self: &Rc<Self>, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        if !self.saves_late() || self.phase.get() != Phase::Ready {
            return None;
        }
        let due = Timestamp::from_nanos(self.cx.state.as_ref()?.due.load(Ordering::Relaxed));
        if due > now {
            return Some(due);
        }
        if !self.idle() {
            return Some(now);
        }
        self.begin_save(shard);
        None
    }

    #[expect(clippy::await_holding_refcell_ref, reason = "turns are admitted by the same rules as borrows")]
    fn begin_save(self: &Rc<Self>, shard: &Shard) {
        self.exclusive.set(true);
        let this = self.clone();
        let turn = Box::pin(async move {
            if let Some(actor) = &mut *this.actor.borrow_mut() {
                this.save_late(actor).await;
            }
        });
        shard.begin_turn(self.clone(), HOOK, Timestamp::NEVER, Caller::NOBODY, turn);
    }

    /// Saves what has changed since the last save. What fails is tried again after the kind's period.
    pub(super) async fn save_late(&self, actor: &mut A) {
        let Some(state) = &self.cx.state else { return };
        state.due.store(0, Ordering::Relaxed);
        let saved = actor.save_changed(&self.cx).await;
        if let Err(error) = saved {
            tracing::error!(actor = %self.cx.id, %error, "what was answered since the last save is not saved yet");
            if let crate::StateError::Superseded { .. } = error {
                end_current(Why::Unsaved);
            } else if let Saving::Every(period) = A::OPTIONS.saving {
                self.save_in(self.now() + period);
            }
        }
    }

    /// Whether updates of versioned states would be lost if the activation ended now.
    pub(super) fn is_unsettled(&self) -> bool {
        A::STORED
            && self
                .actor
                .borrow_mut()
                .as_mut()
                .is_some_and(|actor| actor.stored().iter().any(|(_, field)| !field.is_settled()))
    }

    /// Hands what only this activation has to the one in another cluster that stays.
    pub(super) async fn yield_states(&self, actor: &mut A) {
        for (_, field) in actor.stored() {
            if let Err(error) = field.yields().await {
                tracing::error!(actor = %self.cx.id, %error, "a duplicate ends with updates that the instance that stays has not");
            }
        }
    }

    /// Lets updates of versioned states be confirmed before the activation ends.
    pub(super) async fn settle(&self, actor: &mut A) {
        for (_, field) in actor.stored() {
            if !field.is_settled()
                && let Err(error) = field.settle(&self.cx).await
            {
                tracing::error!(actor = %self.cx.id, %error, "an activation ends with updates that are not confirmed");
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.cx.port.node.world().now()
    }
}

/// Ends the activation of the current turn.
fn end_current(why: Why) {
    Shard::with(|shard| {
        if let Some(shard) = shard {
            shard.end_current(why);
        }
    });
}
