//! Watches: who is told when an actor has ended.
//!
//! A watch is kept by the shard of who watches, and is over when it has been told: so it is told once. The shard of the
//! watched actor is asked to say when that ends, and asked again every few seconds, as what it says may be lost; when its
//! node leaves the cluster, the view says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use greenroom_world::Timestamp;
use tokio::sync::oneshot;

use super::ended::Ended;
use super::keeper::KeeperRef;
use super::key::{Address, number};
use crate::actor::error::Refusal;
use crate::actor::interface::Why;
use crate::actor::key::ActorId;
use crate::actor::reference::Ref;
use crate::here::port::Port;
use crate::shard::{Item, Shard, Slot};

/// The watches of one shard.
#[derive(Default)]
pub(crate) struct Watches {
    /// By who is watched.
    watched: BTreeMap<Address, Vec<Watch>>,
    /// Whom activations of this shard watch.
    by_watcher: BTreeMap<u64, BTreeSet<Address>>,
    /// The keepers that want to hear of the end of an activation here.
    askers: BTreeMap<u64, BTreeSet<Address>>,
    /// When those elsewhere are next asked whether they live.
    due: Option<Timestamp>,
}

pub(super) struct Watch {
    pub(super) id: ActorId,
    pub(super) to: Deliver,
}

/// What happens when the watched actor has ended.
pub(super) enum Deliver {
    /// The `ended` hook of an activation here runs.
    Hook(u64),
    /// Somebody waits for it.
    Told(oneshot::Sender<Why>),
    /// A spawned actor here ends: it was its parent.
    StopChild(u64),
    /// It was a child of an activation here.
    Child(u64),
}

impl Watches {
    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty() && self.askers.is_empty()
    }

    fn insert(&mut self, address: Address, watch: Watch) {
        if let Deliver::Hook(watcher) = watch.to {
            self.by_watcher.entry(watcher).or_default().insert(address);
        }
        self.watched.entry(address).or_default().push(watch);
    }

    /// Whether the activation watches `address` already.
    fn has(&self, address: &Address, watcher: u64) -> bool {
        self.by_watcher.get(&watcher).is_some_and(|watched| watched.contains(address))
    }

    fn take(&mut self, address: &Address) -> Vec<Watch> {
        let watches = self.watched.remove(address).unwrap_or_default();
        for watch in &watches {
            if let Deliver::Hook(watcher) = watch.to {
                self.forget(address, watcher);
            }
        }
        watches
    }

    fn forget(&mut self, address: &Address, watcher: u64) {
        if let Some(watched) = self.by_watcher.get_mut(&watcher) {
            watched.remove(address);
            if watched.is_empty() {
                self.by_watcher.remove(&watcher);
            }
        }
    }

    /// Ends the watch of `address` by the activation.
    pub(super) fn remove(&mut self, address: &Address, watcher: u64) {
        self.forget(address, watcher);
        self.retain(address, |to| !matches!(to, Deliver::Hook(hook) if *hook == watcher));
    }

    /// Ends all watches of the activation.
    pub(super) fn remove_all(&mut self, watcher: u64) {
        for address in self.by_watcher.remove(&watcher).unwrap_or_default() {
            self.retain(&address, |to| !matches!(to, Deliver::Hook(hook) if *hook == watcher));
        }
    }

    fn retain(&mut self, address: &Address, keep: impl Fn(&Deliver) -> bool) {
        if let Some(watches) = self.watched.get_mut(address) {
            watches.retain(|watch| keep(&watch.to));
            if watches.is_empty() {
                self.watched.remove(address);
            }
        }
    }

    /// Whom to ask whether they live, by the keepers to ask.
    fn unheard_of(&mut self, here: &Address) -> BTreeMap<Address, Vec<u64>> {
        let mut asked: BTreeMap<Address, Vec<u64>> = BTreeMap::new();
        self.watched.retain(|address, watches| {
            watches.retain(|watch| !matches!(&watch.to, Deliver::Told(waiting) if waiting.is_closed()));
            if !watches.is_empty() && address.keeper() != *here {
                asked.entry(address.keeper()).or_default().push(address.number);
            }
            !watches.is_empty()
        });
        asked
    }
}

impl Shard {
    /// The keeper of this shard.
    pub(super) fn keeper_address(&self) -> Address {
        let node = &self.port().node;
        Address { node: node.me().0, birth: node.birth(), shard: self.index(), number: super::key::KEEPER }
    }

    /// The address of an activation of this shard.
    pub(super) fn address(&self, slot: Slot) -> Address {
        Address { number: number(slot), ..self.keeper_address() }
    }

    /// A reference to a keeper.
    pub(super) fn keeper(&self, at: Address) -> KeeperRef {
        Ref::made(at.keeper().key(), Some(self.port().clone())).into()
    }

    /// Watches `address` until `to` has been told of its end.
    pub(super) fn watch_actor(&self, address: Address, id: ActorId, to: Deliver) {
        let here = self.keeper_address();
        if let Deliver::Hook(watcher) = to
            && self.kin().borrow().watches.has(&address, watcher)
        {
            return;
        }
        self.kin().borrow_mut().watches.insert(address, Watch { id, to });
        if address.keeper() == here {
            if !address.slot().is_some_and(|slot| self.lives(slot)) {
                let why = self.kin().borrow().why(address.number);
                self.tell_ended(&address, why);
            }
        } else if self.port().node.is_lost(address.node()) {
            self.tell_ended(&address, Why::NodeLost);
        } else {
            let due = self.now() + CHECK_INTERVAL;
            self.kin().borrow_mut().watches.due.get_or_insert(due);
            self.keeper(here).ask(address, vec![address.number]).send();
        }
    }

    /// Whether the activation in `slot` has not ended.
    fn lives(&self, slot: Slot) -> bool {
        self.activation(slot).is_some()
    }

    /// Tells all who watch `address` here that it has ended.
    pub(super) fn tell_ended(&self, address: &Address, why: Why) {
        let watches = self.kin().borrow_mut().watches.take(address);
        for Watch { id, to } in watches {
            match to {
                Deliver::Hook(watcher) => {
                    if let Some(watcher) = self.numbered(watcher) {
                        watcher.notify(self, Ended { id, why });
                    }
                }
                Deliver::Told(waiting) => {
                    // Who does not wait any more need not know.
                    let _ = waiting.send(why);
                }
                Deliver::StopChild(child) => self.end_numbered(child, Why::Parent),
                Deliver::Child(parent) => self.kin().borrow_mut().child_gone(parent, address),
            }
        }
    }

    /// The keeper at `from` wants to hear of the ends of these; says which have ended already.
    pub(super) fn asked(&self, numbers: Vec<u64>, from: Address) -> Vec<(u64, Why)> {
        let mut ended = Vec::new();
        for number in numbers {
            if self.numbered(number).is_some() {
                self.kin().borrow_mut().watches.askers.entry(number).or_default().insert(from);
            } else {
                ended.push((number, self.kin().borrow().why(number)));
            }
        }
        ended
    }

    /// Tells all who asked that the activation in `slot` has ended.
    pub(super) fn tell_askers(&self, slot: Slot, why: Why) {
        let address = self.address(slot);
        self.tell_ended(&address, why);
        let askers = self.kin().borrow_mut().watches.askers.remove(&address.number);
        for asker in askers.into_iter().flatten() {
            self.keeper(asker).ended(address, why).send();
        }
    }

    /// Asks whether those live that are watched elsewhere, when it is time; says when it next is.
    pub(super) fn check_watched(&self, now: Timestamp) -> Option<Timestamp> {
        let due = self.kin().borrow().watches.due?;
        if due > now {
            return Some(due);
        }
        let here = self.keeper_address();
        let asked = self.kin().borrow_mut().watches.unheard_of(&here);
        let next = (!asked.is_empty()).then(|| now + CHECK_INTERVAL);
        self.kin().borrow_mut().watches.due = next;
        for (keeper, numbers) in asked {
            for some in numbers.chunks(ASKED_AT_ONCE) {
                self.keeper(here).ask(keeper, some.to_vec()).send();
            }
        }
        next
    }

    /// Takes in that the cluster has changed.
    pub(super) fn tell_of_lost_nodes(&self) {
        let node = self.port().node.clone();
        let lost: Vec<Address> = {
            let mut kin = self.kin().borrow_mut();
            for askers in kin.watches.askers.values_mut() {
                askers.retain(|asker| !node.is_lost(asker.node()));
            }
            kin.watches.askers.retain(|_, askers| !askers.is_empty());
            kin.watches.watched.keys().filter(|watched| node.is_lost(watched.node())).copied().collect()
        };
        for address in lost {
            self.tell_ended(&address, Why::NodeLost);
        }
    }
}

/// Waits for the end of the actor at `address`.
pub(super) async fn ended(id: ActorId, address: Address, port: Option<Arc<Port>>) -> Result<Ended, Refusal> {
    let (told, waiting) = oneshot::channel();
    let watched = id.clone();
    let watch = move |shard: &Shard| shard.watch_actor(address, watched, Deliver::Told(told));
    Shard::with(|shard| match (shard, &port) {
        (Some(shard), port) if port.as_ref().is_none_or(|port| Arc::ptr_eq(&port.node, &shard.port().node)) => {
            watch(shard);
            Ok(())
        }
        (_, Some(port)) => {
            let entrance = port.node.entrance(id.stable_hash());
            entrance.push(Item::Run(Box::new(watch))).map_err(|_| Refusal::Stopping)
        }
        (_, None) => Err(Refusal::Unbound),
    })?;
    match waiting.await {
        Ok(why) => Ok(Ended { id, why }),
        Err(_) => Err(Refusal::Stopping),
    }
}

/// Time between two questions whether the actors that are watched elsewhere still live: what says so may have been lost.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Actors in one question.
const ASKED_AT_ONCE: usize = 1000;
