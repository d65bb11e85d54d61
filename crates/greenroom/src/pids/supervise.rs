//! Failures of spawned actors, and the ends that follow from them.

use std::cell::RefCell;
use std::rc::Rc;

use greenroom_protocols::supervision::Decision;
use greenroom_world::Timestamp;

use super::key::{Address, number};
use super::kin::{Kin, Parent};
use crate::actor::interface::Why;
use crate::actor::key::ActorId;
use crate::observe::events::Happened;
use crate::shard::activation::AnyActivation;
use crate::shard::parts::{Fate, ShardPart, Then};
use crate::shard::{Shard, Slot};

impl ShardPart for RefCell<Kin> {
    /// Makes those anew whose time has come, and looks after what is watched elsewhere.
    fn look(&self, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        if self.borrow().is_empty() {
            return None;
        }
        loop {
            let due = self.borrow_mut().take_restart(now);
            let Some(number) = due else { break };
            shard.gauge_spawned();
            if let Some(activation) = shard.numbered(number) {
                activation.restart(shard);
            }
        }
        let watches = shard.check_watched(now);
        let restart = self.borrow().next_restart();
        [restart, watches].into_iter().flatten().min()
    }

    /// The shard's keeper.
    fn servant(&self) -> Option<Slot> {
        self.borrow().keeper
    }

    /// Whether it has children.
    fn needs(&self, slot: Slot) -> bool {
        self.borrow().is_parent(slot)
    }

    fn viewed(&self, shard: &Shard) {
        shard.tell_of_lost_nodes();
    }

    fn children(&self, shard: &Shard, slot: Slot, max: usize) -> Vec<String> {
        shard.list_children(slot, max)
    }

    fn failed(&self, shard: &Shard, slot: Slot, id: &ActorId, why: Why) -> Option<Fate> {
        Some(shard.decide_spawned(slot, id, why))
    }

    /// Its children are gone with it, and what it watches.
    fn lost(&self, shard: &Shard, slot: Slot) {
        if self.borrow().is_empty() {
            return;
        }
        let (here, elsewhere) = {
            let mut kin = self.borrow_mut();
            kin.watches.remove_all(number(slot));
            kin.orphans(slot)
        };
        for child in here {
            shard.end_numbered(child, Why::Parent);
        }
        for child in elsewhere {
            shard.keeper(child).stop(child.number, Why::Parent).send();
        }
    }

    /// Whoever it matters to is told.
    fn ended(&self, shard: &Shard, slot: Slot, why: Why) {
        {
            let mut kin = self.borrow_mut();
            if kin.is_keeper(slot) {
                kin.keeper = None;
            }
            if kin.is_empty() {
                return;
            }
        }
        self.lost(shard, slot);
        self.borrow_mut().remove(slot, why);
        shard.gauge_spawned();
        shard.tell_askers(slot, why);
    }
}

impl Shard {
    /// Its spawned actors, and who watches whom.
    pub(super) fn kin(&self) -> &RefCell<Kin> {
        self.part()
    }

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
    fn decide_spawned(&self, slot: Slot, id: &ActorId, why: Why) -> Fate {
        self.kin().lost(self, slot);
        let now = self.port().node.world().now();
        if why == Why::Together {
            // Who failed has noted when.
            return Fate::Restart;
        }
        let roll = self.port().node.world().random();
        let (decision, siblings) = {
            let mut kin = self.kin().borrow_mut();
            (kin.failed(slot, now, roll), kin.together(slot))
        };
        match decision {
            Decision::Restart { after } => {
                tracing::warn!(actor = %id, pause = ?after, %why, "a spawned actor failed and is restarted");
                self.port().node.happened(Happened::Restarted { actor: id.to_string(), why: why.to_string() });
                for sibling in siblings {
                    if let Some(activation) = self.numbered(sibling) {
                        self.kin().borrow_mut().restart_at(activation.slot(), now + after);
                        activation.end(self, Why::Together);
                    }
                }
                Fate::Restart
            }
            decision => {
                let parent = self.kin().borrow().find(slot).and_then(|kid| kid.parent);
                let escalate = parent.filter(|_| decision == Decision::Escalate);
                tracing::error!(actor = %id, %why, escalates = escalate.is_some(), "a spawned actor failed and ends");
                self.port().node.happened(Happened::Failed { actor: id.to_string(), why: why.to_string() });
                for sibling in siblings {
                    self.end_numbered(sibling, Why::Failed);
                }
                Fate::End { then: escalate.map(|parent| Box::new(move |shard: &Shard| shard.escalate(parent)) as Then) }
            }
        }
    }

    /// Lets the parent of a failed actor fail.
    fn escalate(&self, parent: Parent) {
        match parent {
            Parent::Here(number) => self.end_numbered(number, Why::Escalated),
            Parent::Away(address) => self.keeper(address).escalate(address.number).send(),
        }
    }

    pub(super) fn gauge_spawned(&self) {
        let kin = self.kin().borrow();
        self.gauges().set_spawned(kin.len(), kin.restarted);
    }
}
