//! Turns of suspects, which may take this node down: those that run alone hold the node's permit.

use std::collections::BTreeMap;

use greenroom_protocols::delivery::TurnId;
use tokio::sync::OwnedSemaphorePermit;

use super::name::Named;

/// Suspects of one partition, from the wish to run them until their outcome is committed.
#[derive(Default)]
pub(super) struct Suspects(BTreeMap<TurnId, (Named, Option<OwnedSemaphorePermit>)>);

impl Suspects {
    /// A turn of `actor` waits until it may begin.
    pub(super) fn wait(&mut self, turn: TurnId, actor: Named) {
        self.0.insert(turn, (actor, None));
    }

    /// A turn may begin. It keeps its permit until its outcome is committed: until then a death of this node is a death during it.
    pub(super) fn admitted(&mut self, turn: TurnId, permit: Option<OwnedSemaphorePermit>) {
        if let Some((_, held)) = self.0.get_mut(&turn) {
            *held = permit;
        }
    }

    /// A turn has run alone for so long that other suspects may run beside it.
    pub(super) fn share(&mut self, turn: TurnId) {
        if let Some((_, held)) = self.0.get_mut(&turn) {
            *held = None;
        }
    }

    /// The outcome of a turn is committed.
    pub(super) fn committed(&mut self, turn: TurnId) {
        self.0.remove(&turn);
    }

    /// What turns of `actor` have done is undone.
    pub(super) fn undone(&mut self, actor: &Named) {
        self.0.retain(|_, (of, _)| of != actor);
    }
}
