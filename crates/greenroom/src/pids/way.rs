//! The way of a message to a spawned actor: its key says where it is, so nobody is asked.

use std::rc::Rc;
use std::sync::Arc;

use greenroom_protocols::directory::Epoch;

use super::keeper::{Keeper, KeeperInterface};
use super::key::{Address, KEEPER, dead, is_reserved, reserved};
use super::spawn::Spawners;
use crate::actor::error::Refusal;
use crate::actor::interface::Interface;
use crate::actor::key::{ActorId, Kind};
use crate::cluster::Order;
use crate::here::Here;
use crate::here::kinds::{AnyKind, KindEntry, factory};
use crate::here::location::Location;
use crate::shard::Shard;
use crate::shard::activation::AnyActivation;
use crate::shard::chain::Link;
use crate::shard::seed::Seed;
use crate::shard::underway::{Underway, Way};

impl Here {
    /// Where the actor at `address` is, if it still can be there.
    pub(crate) fn locate_spawned(&self, id: &ActorId, address: &Address) -> Result<Location, Refusal> {
        if self.me() != address.node() {
            let view = self.view();
            return if view.member(address.node()).is_some() {
                Ok(Location::There { node: address.node(), grant: None })
            } else if self.is_lost(address.node()) {
                Err(dead(id))
            } else {
                // It has joined after all that is known here.
                self.order(Order::Refresh(view.view.version + 1));
                let reason = "it is not known here yet".to_owned();
                Err(Refusal::Unreachable { node: address.node().to_string(), reason })
            };
        }
        let any_birth = address.number == KEEPER && address.birth == 0;
        match self.shards().get(usize::from(address.shard)) {
            Some(port) if any_birth || address.birth == self.birth() => {
                Ok(Location::Here { shard: port.id, slot: address.slot(), epoch: Epoch(0) })
            }
            _ => Err(dead(id)),
        }
    }
}

impl Way for Spawners {
    fn takes(&self, _: &Here, message: &dyn Underway) -> bool {
        is_reserved(&message.id().key)
    }

    fn send(&self, shard: &Shard, message: &mut dyn Underway) -> Result<(), Refusal> {
        let (node, id) = (&shard.port().node, message.id().clone());
        let Some(address) = Address::parse(&id.key).filter(|_| !message.is_forged()) else {
            return Err(reserved(&id.key));
        };
        // Keepers answer nodes. Who comes by a door is none.
        if address.number == KEEPER && message.interface().is_none() && message.journey(node).from == node.me() {
            return Err(node.unknown_kind(id.kind.name()));
        }
        match node.locate_spawned(&id, &address)? {
            Location::Here { shard: at, .. } if at == shard.id() => {
                let activation = shard.spawned_at(&id, &address)?;
                message.found(shard, at, activation.slot());
                message.offer(shard, activation).map_err(|refusal| match refusal {
                    Refusal::Moved => dead(&id),
                    other => other,
                })
            }
            Location::Here { shard: at, .. } => {
                shard.pass_on(message, at);
                Ok(())
            }
            Location::There { node: to, grant } => message.send_to(shard, to, grant),
            Location::Wait | Location::Abroad | Location::Moving { .. } | Location::Passing { .. } => {
                Err(Refusal::Recovering)
            }
        }
    }
}

impl Shard {
    /// The activation of this shard that is at `address`.
    fn spawned_at(&self, id: &ActorId, address: &Address) -> Result<Rc<dyn AnyActivation>, Refusal> {
        match address.slot() {
            Some(slot) => self.activation(slot).filter(|found| found.id() == id).ok_or_else(|| dead(id)),
            None if id.kind.name() == KeeperInterface::KIND => Ok(self.keeper_here()),
            None => Err(dead(id)),
        }
    }

    /// This shard's keeper, made when it is first asked something.
    fn keeper_here(&self) -> Rc<dyn AnyActivation> {
        let known = self.kin().borrow().keeper.and_then(|slot| self.activation(slot));
        if let Some(keeper) = known {
            return keeper;
        }
        let entry = Arc::new(KindEntry::<Keeper>::spawned(factory::<Keeper>(), self.port().node.config()));
        let id = ActorId::unchecked(Kind::intern(KeeperInterface::KIND), self.keeper_address().key());
        let keeper = self.enter_spawned(|slot| entry.activation(self, id, Epoch(1), slot));
        self.kin().borrow_mut().keeper = Some(keeper.slot());
        self.gauge_activations();
        // It makes itself and has no hook: nothing can go wrong.
        let _ = keeper.clone().start(self, Seed::Fresh, Link::None);
        keeper
    }

    /// Whether the current turn is part of what `id` waits for.
    pub(super) fn waits_for_this_turn(&self, id: &ActorId) -> bool {
        self.cycle(&self.link_here(), id).is_some()
    }
}
