//! The way of a message to a spawned actor: its key says where it is, so nobody is asked.

use std::rc::Rc;
use std::sync::Arc;

use greenroom_protocols::directory::Epoch;

use super::keeper::{Keeper, KeeperInterface};
use super::key::{Address, KEEPER, dead, reserved};
use crate::actor::error::Refusal;
use crate::actor::interface::Interface;
use crate::actor::key::{ActorId, Kind};
use crate::actor::reference::{Inner, Route};
use crate::cluster::Order;
use crate::here::Here;
use crate::here::kinds::{AnyKind, KindEntry, factory};
use crate::here::location::Location;
use crate::shard::activation::AnyActivation;
use crate::shard::mail::{AnyMail, Form};
use crate::shard::raw::RawCall;
use crate::shard::submit::refuse_reply;
use crate::shard::{Shard, ShardPort};

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

    /// The shard of this node that the key of a spawned actor names.
    pub(crate) fn home_of_spawned(&self, key: &str) -> Option<ShardPort> {
        let address = Address::parse(key)?;
        self.shards().get(usize::from(address.shard)).copied().filter(|_| address.node() == self.me())
    }
}

impl Shard {
    /// Takes a message for a spawned actor on its way.
    pub(crate) fn submit_spawned(&self, target: &Arc<Inner>, mail: &mut dyn AnyMail) -> Result<(), Refusal> {
        let id = &target.id;
        let Some(address) = Address::parse(&id.key).filter(|_| !target.forged) else { return Err(reserved(&id.key)) };
        match self.port().node.locate_spawned(id, &address)? {
            Location::Here { shard, .. } if shard == self.id() => {
                let activation = self.spawned_at(id, &address)?;
                target.set_route(Route::Here(shard, activation.slot()));
                activation.offer(self, mail.envelope())?;
                if mail.form() == Form::Taken { Ok(()) } else { Err(dead(id)) }
            }
            Location::Here { shard, .. } => {
                self.post_parcel(shard, target, mail);
                Ok(())
            }
            Location::There { node, grant } => self.send_away(node, grant, target, mail),
            Location::Wait | Location::Abroad | Location::Moving { .. } => Err(Refusal::Recovering),
        }
    }

    /// Takes a message that came as bytes, for a spawned actor, on its way.
    pub(crate) fn submit_spawned_raw(&self, call: RawCall<'_>, id: ActorId) {
        let Some(address) = Address::parse(&id.key) else { return refuse_reply(call.reply, reserved(&id.key)) };
        let node = self.port().node.clone();
        // Keepers answer nodes. Who comes by a door is none.
        if address.number == KEEPER && call.journey.from == node.me() {
            return refuse_reply(call.reply, node.unknown_kind(id.kind.name()));
        }
        match node.locate_spawned(&id, &address) {
            Ok(Location::Here { shard, .. }) if shard == self.id() => match self.spawned_at(&id, &address) {
                Ok(activation) => {
                    let hash = id.stable_hash();
                    self.remember(hash, activation.slot());
                    self.offer_raw(activation, call, id.kind, hash);
                }
                Err(refusal) => self.turn_down(&id, call, refusal),
            },
            Ok(Location::Here { shard, .. }) => self.pass_on(call, id, shard),
            Ok(Location::There { node: to, grant }) => {
                let RawCall { key, route, payload, reply, deadline, chain, journey } = call;
                self.forward(to, grant, key, route, payload, reply, deadline, &chain, journey);
            }
            Ok(Location::Wait | Location::Abroad | Location::Moving { .. }) => {
                self.turn_down(&id, call, Refusal::Recovering)
            }
            Err(refusal) => self.turn_down(&id, call, refusal),
        }
    }

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
        let _ = keeper.clone().start(self);
        keeper
    }

    /// Whether the current turn is part of what `id` waits for.
    pub(super) fn waits_for_this_turn(&self, id: &ActorId) -> bool {
        self.cycle(&self.link_here(), id).is_some()
    }
}
