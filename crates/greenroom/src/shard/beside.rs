//! What runs on a shard beside turns: it belongs to no turn, so it keeps no activation from its own.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use greenroom_world::{LocalFuture, Timestamp};

use super::activation::HasTurns;
use super::cancel::CallKey;
use super::chain::{Chain, Link};
use super::frames::Caller;
use super::turns::{Access, Job};
use super::{Shard, Slot};
use crate::actor::interface::Why;
use crate::actor::key::{ActorId, Kind};
use crate::state::Held;
use crate::stream::feed::Tie;

/// In an activation's place: there is none.
struct Beside {
    id: ActorId,
}

/// Whether it is the name of something that runs beside turns, and may run for ever.
pub(super) fn is_beside(id: &ActorId) -> bool {
    id.kind.name() == BESIDE
}

/// What runs beside each activation's turns, by the activation's slot.
#[derive(Default)]
pub(super) struct Ties(BTreeMap<(u32, u32), Vec<Weak<Tie>>>);

impl Ties {
    /// Activations that something was tied to.
    #[cfg(feature = "rehearsal")]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Shard {
    /// Runs `task` beside the turns of `actor`, until it is over.
    pub(crate) fn begin_beside(&self, actor: Option<&ActorId>, task: LocalFuture) {
        let key = actor.map(ToString::to_string).unwrap_or_default();
        let id = ActorId::unchecked(Kind::intern(BESIDE), key);
        let caller = Caller::Apart { chain: Chain::NONE, call: CallKey::NONE };
        let job = Job { access: Access::Read, method: u16::MAX };
        self.begin_turn(Rc::new(Beside { id }), job, Timestamp::NEVER, caller, task);
    }

    /// A tie to the current turn's activation.
    pub(crate) fn tie_current(&self) -> Option<Arc<Tie>> {
        let activation = self.current_activation()?;
        let slot = activation.slot();
        let tie = Tie::new(activation.id().clone());
        // What runs beside turns has no activation to be tied to.
        self.activation(slot).filter(|found| found.id() == activation.id())?;
        let mut ties = self.ties.borrow_mut();
        let tied = ties.0.entry((slot.index, slot.generation)).or_default();
        if tied.len() == tied.capacity() {
            tied.retain(|tie| tie.strong_count() > 0);
        }
        tied.push(Arc::downgrade(&tie));
        Some(tie)
    }

    /// Whether anything runs beside the turns of the activation in `slot`.
    pub(super) fn is_tied(&self, slot: Slot) -> bool {
        let ties = self.ties.borrow();
        let tied = ties.0.get(&(slot.index, slot.generation));
        tied.is_some_and(|tied| tied.iter().any(|tie| tie.strong_count() > 0))
    }

    /// Ends what runs beside the turns of an activation that has ended.
    pub(super) fn end_ties(&self, slot: Slot) {
        if self.ties.borrow().0.is_empty() {
            return;
        }
        let tied = self.ties.borrow_mut().0.remove(&(slot.index, slot.generation));
        for tie in tied.into_iter().flatten() {
            if let Some(tie) = tie.upgrade() {
                tie.end();
            }
        }
    }
}

impl HasTurns for Beside {
    fn id(&self) -> &ActorId {
        &self.id
    }

    fn slot(&self) -> Slot {
        Slot { index: u32::MAX, generation: 0 }
    }

    fn turn_ended(self: Rc<Self>, _: &Shard, _: Job, _: Option<&str>) {}

    fn hold(&self, reply: Box<dyn Held>) {
        reply.release();
    }

    fn keep(&self, _: Timestamp) {}

    fn end(self: Rc<Self>, _: &Shard, _: Why) {}

    fn waiting(&self) -> usize {
        0
    }

    fn each_waiter(&self, _: &mut dyn FnMut(&Link)) {}

    fn method_name(&self, _: u16) -> String {
        String::new()
    }

    fn name_of(&self, _: u16) -> String {
        self.id.to_string()
    }
}

/// How it is called in call chains and logs: a name that no kind of a user's has, as it is not an identifier.
const BESIDE: &str = "beside ";
