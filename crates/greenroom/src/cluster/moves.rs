//! Moves of activations to other nodes and from there, as a shard sees them: see the directory's protocol for moves.
//!
//! What an activation that has left carries is kept here, and a copy goes to the target, on the connection that calls go on. Both
//! then ask the owner of the actor's range, the source only after a while. Messages for the actor wait here in their order until it is
//! decided who has it, and follow it.

mod carried;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use greenroom_protocols::directory::{Epoch, Move, Placed};
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use self::carried::Carried;
use super::directory::{Entry, MoveEnd, MoveWord};
use super::{ControlMessage, Order};
use crate::actor::error::Refusal;
use crate::actor::interface::Travels;
use crate::actor::key::{ActorId, Kind};
use crate::observe::events::{Happened, Moved};
use crate::shard::chain::Link;
use crate::shard::parts::ShardPart;
use crate::shard::seed::Seed;
use crate::shard::trips::{Departed, Told, Trip, TripEnd};
use crate::shard::{AnyParcel, CARRIES, Item, LETTERS, Shard};

/// The moves of one shard that are not decided.
#[derive(Default)]
pub(super) struct Moves {
    /// What was said, behind their hashes, of actors whose states are still to come: by who sends them.
    letters: BTreeMap<(NodeId, u64, Epoch), Bytes>,
    /// States that came, and those that left.
    undecided: BTreeMap<ActorId, Undecided>,
}

struct Undecided {
    from: Placed,
    /// The floor of the actor's range when its state began to be held here.
    since: Epoch,
    state: Bytes,
    /// What who sent it says of it; nothing of those that left.
    letter: Bytes,
    /// Who hears what becomes of it; nobody of those that came.
    told: Told,
    held: Vec<Box<dyn AnyParcel>>,
    ask_at: Timestamp,
}

impl ShardPart for RefCell<Moves> {
    fn look(&self, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        self.borrow_mut().ask_again(shard, now)
    }

    fn departs(&self, shard: &Shard, departed: Departed) -> Option<Departed> {
        shard.depart(departed);
        None
    }

    fn told(&self, shard: &Shard, from: NodeId, channel: u8, payload: &[u8]) {
        match channel {
            CARRIES => shard.take_state(from, payload),
            LETTERS => self.borrow_mut().take_letter(from, payload),
            _ => {}
        }
    }

    /// What waits for actors that are on the move.
    fn refuse_waiting(&self, refusal: &Refusal) {
        let mut held = Vec::new();
        for undecided in self.borrow_mut().undecided.values_mut() {
            held.append(&mut undecided.held);
        }
        for parcel in held {
            parcel.refuse(refusal.clone());
        }
    }
}

impl Moves {
    /// Keeps what `peer` says of an actor whose state comes next: who is not interested loses nothing.
    fn take_letter(&mut self, peer: NodeId, payload: &[u8]) {
        let Some((hash, rest)) = payload.split_first_chunk::<8>() else { return };
        let Some((epoch, letter)) = rest.split_first_chunk::<8>() else { return };
        let (hash, epoch) = (u64::from_le_bytes(*hash), Epoch(u64::from_le_bytes(*epoch)));
        if letter.len() <= LETTER_LEN_MAX && self.letters.len() < LETTERS_MAX {
            self.letters.insert((peer, hash, epoch), Bytes::copy_from_slice(letter));
        }
    }

    /// Asks the owners again for what is undecided; says when to look again.
    fn ask_again(&mut self, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        let node = &shard.port().node;
        for (id, undecided) in &mut self.undecided {
            if undecided.ask_at <= now {
                undecided.ask_at = now + ASK_AGAIN_AFTER;
                node.order(Order::Claim(Move { key: Entry::new(id.clone()), from: undecided.from, to: node.me() }));
            }
        }
        self.undecided.values().map(|undecided| undecided.ask_at).min()
    }
}

impl Shard {
    fn moves(&self) -> &RefCell<Moves> {
        self.part()
    }

    /// Sends the state of an activation that has ended on its way.
    fn depart(&self, departed: Departed) {
        let (node, Departed { id, epoch, trip, state }) = (&self.port().node, departed);
        let since = node.directory().map_or(Epoch::default(), |directory| directory.depart(&id, epoch));
        let from = Placed { node: node.me(), epoch };
        let Trip { to, letter, told, .. } = trip;
        let ask_at =
            if self.send_state(to, &id, from, &state, &letter) { self.now() + TAKE_BACK_AFTER } else { self.now() };
        let undecided = Undecided { from, since, state, letter: Bytes::new(), told, held: Vec::new(), ask_at };
        self.moves().borrow_mut().undecided.insert(id, undecided);
    }

    /// Sends a state to `to`, and before it what is said of it there; false if there is no way or no room.
    fn send_state(&self, to: NodeId, id: &ActorId, from: Placed, state: &[u8], letter: &[u8]) -> bool {
        let says = |out: &mut BytesMut| {
            out.put_u64_le(id.stable_hash());
            out.put_u64_le(from.epoch.0);
            out.put_slice(letter);
        };
        let carries = |out: &mut BytesMut| Carried::write(id, from, state, out);
        match letter {
            [] => self.lane_tell(to, &[(CARRIES, &carries)]),
            _ => self.lane_tell(to, &[(LETTERS, &says), (CARRIES, &carries)]),
        }
    }

    /// A state has come: asks the owner for its actor, or tells who sent it that it is not taken.
    fn take_state(&self, peer: NodeId, payload: &[u8]) {
        let Some(carried) = Carried::read(payload) else {
            return tracing::warn!(%peer, "a state that came cannot be read");
        };
        let Some(kind) = Kind::known(carried.kind) else { return };
        let Ok(id) = ActorId::new(kind, carried.key) else { return };
        let from = Placed { node: peer, epoch: carried.epoch };
        let wish = Move { key: Entry::new(id.clone()), from, to: self.port().node.me() };
        let letter = self.moves().borrow_mut().letters.remove(&(peer, wish.key.hash(), from.epoch)).unwrap_or_default();
        let state = Bytes::copy_from_slice(carried.state);
        // Not every kind is to be had on every shard.
        match self.port().node.choose_shard(kind.name(), self.index(), false) {
            at if at == self.id() => self.take_carried(wish, state, letter),
            at => self.post(at, Item::Run(Box::new(move |shard| shard.take_carried(wish, state, letter)))),
        }
    }

    fn take_carried(&self, wish: Move<Entry>, state: Bytes, letter: Bytes) {
        let id = wish.key.id();
        match self.keep_carried(&id, wish.from, state, letter) {
            Ok(()) => self.port().node.order(Order::Claim(wish)),
            Err(why) => {
                tracing::warn!(actor = %id, peer = %wish.from.node, why, "an actor that was to move here is not taken");
                self.port().node.order(Order::Say(wish.from.node, ControlMessage::Declined { wish }));
            }
        }
    }

    fn keep_carried(&self, id: &ActorId, from: Placed, state: Bytes, letter: Bytes) -> Result<(), String> {
        let node = &self.port().node;
        let Some(kind) = node.kinds().find(id.kind).filter(|kind| kind.travels() != Travels::Not) else {
            return Err(format!("kind {:?} is not hosted here", id.kind.name()));
        };
        kind.takes(&state)?;
        if node.is_handing_over() || !self.fence_open() {
            return Err("this node is about to leave".to_owned());
        }
        self.admits(id, from.node, &letter)?;
        let mut moves = self.moves().borrow_mut();
        if moves.undecided.len() >= UNDECIDED_MAX {
            return Err(format!("{UNDECIDED_MAX} actors are on the move here already"));
        }
        let known = moves.undecided.get(id).map(|known| known.from.epoch);
        let is_newer = known.is_none_or(|known| known < from.epoch);
        let since = node.directory().filter(|_| is_newer).and_then(|directory| directory.carry(id, self.id(), from));
        let Some(since) = since else { return Err("it is here already".to_owned()) };
        let held = moves.undecided.remove(id).map(|known| known.held).unwrap_or_default();
        let ask_at = self.now() + ASK_AGAIN_AFTER;
        let undecided = Undecided { from, since, state, letter, told: Told::default(), held, ask_at };
        moves.undecided.insert(id.clone(), undecided);
        Ok(())
    }

    /// Keeps a message for an actor that is on the move.
    pub(crate) fn hold_for_move(&self, id: &ActorId, parcel: Box<dyn AnyParcel>) {
        let mut moves = self.moves().borrow_mut();
        match moves.undecided.get_mut(id) {
            Some(undecided) if undecided.held.len() < HELD_MAX => undecided.held.push(parcel),
            Some(_) => {
                drop(moves);
                let queue = format!("what waits for {id}, which is on the move,");
                parcel.refuse(Refusal::Overloaded { queue, bound: HELD_MAX as u64 });
            }
            // It has just been decided.
            None => {
                drop(moves);
                self.park(parcel);
            }
        }
    }

    /// The node that `wish` names does not take it: asks the owner to have it back.
    pub(crate) fn declined(&self, wish: &Move<Entry>) {
        let mut moves = self.moves().borrow_mut();
        let Some(undecided) = moves.undecided.get_mut(&wish.key.id()) else { return };
        if undecided.from == wish.from && wish.from.node == self.port().node.me() {
            undecided.ask_at = self.now();
        }
    }

    /// The owner has decided a move; `host` is the new host, if it said so itself.
    pub(crate) fn decided(&self, wish: &Move<Entry>, word: MoveWord) {
        let node = &self.port().node;
        let id = &wish.key.id();
        let known = |undecided: &Undecided| (undecided.from == wish.from).then_some(undecided.since);
        let Some(since) = self.moves().borrow().undecided.get(id).and_then(known) else { return };
        // Without a lease nothing begins here. It is asked for again.
        let Some(directory) = node.directory().filter(|_| self.fence_open()) else { return };
        let end = directory.end_move(node, wish, word, (self.id(), since));
        if let MoveEnd::Again = end {
            return;
        }
        let Some(undecided) = self.moves().borrow_mut().undecided.remove(id) else { return };
        let Undecided { state, letter, told, held, .. } = undecided;
        if let MoveEnd::Here(epoch) = end {
            told.ended(TripEnd::Back);
            let bytes = state.len();
            self.arrive(wish, epoch, state);
            self.note_arrived(id, wish.from.node, &letter);
            self.note_carried(id, bytes);
        } else {
            let host = match word {
                MoveWord::Superseded { host } => host,
                _ => None,
            };
            if told.is_nobody() && !node.is_draining() {
                self.tell_moved(id, host.unwrap_or(wish.to));
            }
            told.ended(TripEnd::Moved);
            if let Some(host) = host {
                self.goes_straight(id.stable_hash(), host);
            }
        }
        for parcel in held {
            self.refill_budget();
            parcel.deliver(self);
        }
    }

    /// An actor has gone to the node `to` as somebody asked for it.
    fn tell_moved(&self, id: &ActorId, to: NodeId) {
        let node = &self.port().node;
        let to = node.member(to).map_or_else(|| to.to_string(), |member| member.name);
        let (actor, from) = (id.to_string(), node.name().to_owned());
        let moved = Moved { from, to, shards: None, why: "it was asked for".to_owned() };
        node.happened(Happened::Moved { actor, moved });
    }

    /// Activates an actor that is this node's now with its state.
    fn arrive(&self, wish: &Move<Entry>, epoch: Epoch, state: Bytes) {
        let (node, id) = (&self.port().node, &wish.key.id());
        self.refill_budget();
        // A hook that fails tells who waits; the next message activates the actor anew.
        if let Err(refusal) = self.activate(id.clone(), epoch, Seed::Carried(state), Link::None) {
            tracing::error!(actor = %id, %refusal, "an actor that moved here could not be activated");
        }
        if wish.from.node != node.me() {
            node.order(Order::Say(wish.from.node, ControlMessage::Took { wish: wish.clone() }));
        }
        node.order(Order::Settled(wish.key.clone(), Placed { node: node.me(), epoch }));
    }

    /// Whether it is not decided yet where some actor is.
    pub(crate) fn has_undecided(&self) -> bool {
        !self.moves().borrow().undecided.is_empty()
    }
}

/// States that may be undecided at once on one shard: those that come beyond are turned away.
const UNDECIDED_MAX: usize = 16_384;
/// What may be said of an actor that moves, in bytes.
const LETTER_LEN_MAX: usize = 4096;
/// Letters whose actors are still to come, on one shard: each comes right behind its letter, so that there are few.
const LETTERS_MAX: usize = 1024;
/// Messages that may wait for one actor on the move.
const HELD_MAX: usize = 4096;
/// Time after which who sent a state takes its actor back.
const TAKE_BACK_AFTER: Duration = Duration::from_millis(1500);
/// Time after which an owner that has not decided is asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(300);
