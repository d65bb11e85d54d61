//! What runs beside turns, on a stage: streams make one item after the other, each in a step of its own, and deliveries that are tried until they are
//! acknowledged say when they wait for their next try.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Held, Maker, Shard, What};
use crate::shard::ShardId;
use crate::shard::calls::Completion;

/// What a task is about that delivers something until it is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Insists {
    /// It delivers nothing now.
    #[default]
    Not,
    /// A try is under way.
    Tries,
    /// It waits for its next try.
    Rests,
}

/// Runs `run` on the shard of this thread if that is `home`, and on a stage; else gives it back.
pub(crate) fn begin_on_stage<F: FnOnce(&Shard)>(home: ShardId, run: F) -> Option<F> {
    Shard::with(|shard| match shard.filter(|shard| shard.rehearsal.is_on() && shard.id() == home) {
        Some(shard) => {
            run(shard);
            None
        }
        None => Some(run),
    })
}

/// Whether what runs here is on a stage.
pub(crate) fn is_staged() -> bool {
    Shard::with(|shard| shard.is_some_and(|shard| shard.rehearsal.is_on()))
}

/// Goes on in a step of its own.
#[derive(Default)]
pub(crate) struct NextStep(bool);

impl Future for NextStep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) || !is_staged() {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Lets a stage know what the task that runs here is about.
pub(crate) fn note_insists(how: Insists) {
    Shard::with(|shard| {
        let Some(shard) = shard.filter(|shard| shard.rehearsal.is_on()) else { return };
        let Some(frame) = shard.current() else { return };
        let mut makers = shard.rehearsal.turns.borrow_mut();
        makers.iter_mut().filter(|maker| maker.turn == frame.id).for_each(|maker| maker.insists = how);
    });
}

impl Shard {
    /// Whether some delivery waits for its next try.
    pub(super) fn has_to_try_again(&self) -> bool {
        self.insists(Insists::Rests, |_| true)
    }

    /// Whether it is the answer to a delivery that came: without it, what was delivered comes again.
    pub(super) fn acknowledges(&self, held: &Held) -> bool {
        let acknowledges =
            matches!(&held.what, What::Answer { completion, .. } if !matches!(completion, Completion::Failed(_)));
        acknowledges && self.insists(Insists::Tries, |maker| maker.at == held.at)
    }

    fn insists(&self, how: Insists, is_meant: impl Fn(&Maker) -> bool) -> bool {
        let (makers, turns) = (self.rehearsal.turns.borrow(), self.turns.borrow());
        makers.iter().any(|maker| maker.insists == how && is_meant(maker) && turns.find(maker.turn).is_some())
    }
}
