//! Failures of spawned actors, and the ends that follow from them.

use std::rc::Rc;

use greenroom_protocols::supervision::Decision;
use greenroom_world::Timestamp;

use super::key::{Address, number};
use super::kin::Parent;
use crate::actor::interface::Why;
use crate::actor::key::ActorId;
use crate::shard::activation::AnyActivation;
use crate::shard::{Shard, Slot};

/// What becomes of an activation that has failed.
pub(crate) enum Fate {
    /// It is made anew when its time has come.
    Restart,
    /// It ends. Its parent, if it has one here, fails then.
    End { escalate: Option<Parent> },
}

impl Shard {
    /// The activation that has this number.
    pub(super) fn numbered(&self, number: u64) -> Option<Rc<dyn AnyActivation>> {
        let slot = Address { node: 0, birth: 0, shard: 0, number }.slot()?;
        self.activation(slot)
    }

    pub(super) fn end_numbered(&self, number: u64, why: Why) {
        if let Some(activation) = self.numbered(number) {
            activation.end(self, why);
        }
    }

    /// A spawned actor has failed, or is to be made anew with a sibling that has.
    pub(crate) fn decide(&self, slot: Slot, id: &ActorId, why: Why) -> Fate {
        self.part_from_kin(slot);
        let now = self.port().node.world().now();
        if why == Why::Together {
            // Who failed has noted when.
            return Fate::Restart;
        }
        let roll = self.port().node.world().random();
        let (decision, siblings) = {
            let mut kin = self.kin.borrow_mut();
            (kin.failed(slot, now, roll), kin.together(slot))
        };
        match decision {
            Decision::Restart { after } => {
                tracing::warn!(actor = %id, pause = ?after, %why, "a spawned actor failed and is restarted");
                for sibling in siblings {
                    if let Some(activation) = self.numbered(sibling) {
                        self.kin.borrow_mut().restart_at(activation.slot(), now + after);
                        activation.end(self, Why::Together);
                    }
                }
                Fate::Restart
            }
            decision => {
                let parent = self.kin.borrow().find(slot).and_then(|kid| kid.parent);
                let escalate = parent.filter(|_| decision == Decision::Escalate);
                tracing::error!(actor = %id, %why, escalates = escalate.is_some(), "a spawned actor failed and ends");
                for sibling in siblings {
                    self.end_numbered(sibling, Why::Failed);
                }
                Fate::End { escalate }
            }
        }
    }

    /// Lets the parent of a failed actor fail.
    pub(crate) fn escalate(&self, parent: Parent) {
        match parent {
            Parent::Here(number) => self.end_numbered(number, Why::Escalated),
            Parent::Away(address) => self.keeper(address).escalate(address.number).send(),
        }
    }

    /// An activation's actor is gone, or about to be made anew: so are its children and what it watches.
    pub(crate) fn part_from_kin(&self, slot: Slot) {
        if self.kin.borrow().is_empty() {
            return;
        }
        let (here, elsewhere) = {
            let mut kin = self.kin.borrow_mut();
            kin.watches.remove_all(number(slot));
            kin.orphans(slot)
        };
        for child in here {
            self.end_numbered(child, Why::Parent);
        }
        for child in elsewhere {
            self.keeper(child).stop(child.number, Why::Parent).send();
        }
    }

    /// An activation has ended: whoever that matters to is told.
    pub(crate) fn leave_kin(&self, slot: Slot, why: Why) {
        {
            let mut kin = self.kin.borrow_mut();
            if kin.is_keeper(slot) {
                kin.keeper = None;
            }
            if kin.is_empty() {
                return;
            }
        }
        self.part_from_kin(slot);
        self.kin.borrow_mut().remove(slot, why);
        self.gauge_spawned();
        self.tell_askers(slot, why);
    }

    /// Whether an activation must not end for being idle: it has children.
    pub(crate) fn has_children(&self, slot: Slot) -> bool {
        self.kin.borrow().is_parent(slot)
    }

    /// Makes those anew whose time has come, and looks after what is watched elsewhere; says when to look again.
    pub(crate) fn look_after_kin(&self, now: Timestamp) -> Option<Timestamp> {
        if self.kin.borrow().is_empty() {
            return None;
        }
        loop {
            let due = self.kin.borrow_mut().take_restart(now);
            let Some(number) = due else { break };
            self.gauge_spawned();
            if let Some(activation) = self.numbered(number) {
                activation.restart(self);
            }
        }
        let watches = self.check_watched(now);
        let restart = self.kin.borrow().next_restart();
        [restart, watches].into_iter().flatten().min()
    }

    pub(super) fn gauge_spawned(&self) {
        let kin = self.kin.borrow();
        self.gauges().set_spawned(kin.len(), kin.restarted);
    }
}
