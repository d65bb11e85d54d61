//! Operations on stores, held back until somebody chooses when they are done, and how that ends.

use std::rc::Rc;

use tokio::sync::oneshot;

use super::{Party, Shard, What, mix};
use crate::shard::beside;

/// How an operation on a store ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It is not done, and whoever asked is told so.
    Refused,
    /// It is not done, and nobody knows.
    NotApplied,
    /// It is done, and nobody knows.
    Applied,
    /// It is done later, and nobody knows.
    AppliedLater,
}

impl Outcome {
    /// What may go wrong with a write, or with a read.
    pub(super) fn wrong(is_write: bool) -> &'static [Self] {
        match is_write {
            true => &[Self::Refused, Self::NotApplied, Self::Applied, Self::AppliedLater],
            false => &[Self::Refused],
        }
    }

    pub(super) fn told(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::NotApplied => "unknown, not applied",
            Self::Applied => "unknown, applied",
            Self::AppliedLater => "unknown, applied later",
        }
    }
}

/// An operation that waits for its step.
pub(super) struct Operation {
    pub(super) by: Party,
    /// `write account/ada`
    pub(super) name: String,
    pub(super) is_write: bool,
    pub(super) perform: Box<dyn FnOnce(Outcome)>,
}

/// Holds an operation back that the turn which runs here wants of a store, called `name` for people: its outcome comes when that is chosen. `None` where nobody
/// chooses.
pub fn hold_operation(name: impl FnOnce() -> String, is_write: bool) -> Option<oneshot::Receiver<Outcome>> {
    Shard::with(|shard| {
        let shard = shard.filter(|shard| shard.rehearsal.is_on() && !shard.rehearsal.falls.get())?;
        shard.current().filter(|frame| !beside::is_beside(frame.activation.id()))?;
        let (by, at) = shard.party();
        let (chosen, outcome) = oneshot::channel();
        // An error means that whoever waited is gone.
        let perform = Box::new(move |outcome| _ = chosen.send(outcome));
        shard.hold_operation(at, Operation { by, name: name(), is_write, perform });
        Some(outcome)
    })
}

/// Holds a write back that nobody waits for any more.
pub fn hold_late_write(name: impl FnOnce() -> String, write: impl FnOnce() + 'static) {
    Shard::with(|shard| {
        let Some(shard) = shard else { return };
        let (_, at) = shard.party();
        let perform = Box::new(move |_| write());
        shard.hold_operation(at, Operation { by: Party::Runtime, name: name(), is_write: true, perform });
    });
}

impl Shard {
    fn hold_operation(&self, at: u64, operation: Operation) {
        let number = mix(self.next_number(), OPERATION);
        self.rehearsal.hold(number, (at, at, 0), What::Operation(operation));
    }

    /// Does an operation, and lets go on who waits for it.
    pub(super) fn operate(&self, operation: Operation, outcome: Outcome) {
        let before = self.ready.borrow().len();
        (operation.perform)(outcome);
        self.resume_since(before);
    }
}

impl super::Stage {
    /// Lets actors with states be forgotten, too: `forget` forgets what they have saved.
    pub fn forget_states_by(&self, forget: impl Fn() + 'static) {
        self.shard.rehearsal.forget_states.replace(Some(Rc::new(forget)));
    }
}

/// Tells operations from messages.
const OPERATION: u64 = 9 << 60;
