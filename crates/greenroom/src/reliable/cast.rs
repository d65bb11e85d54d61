//! The actors of a partition that are in memory, and their turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_protocols::delivery::{Outcome, TurnId};
use greenroom_protocols::directory::Epoch;
use greenroom_reliable::ledger::{StoredField, TurnChanges};
use greenroom_wire::codec::{self, Codec};
use greenroom_world::Timestamp;
use tokio::sync::oneshot;

use super::name::{Body, Letter, Machine, Named, Payload};
use super::takings::{Ended, Takings};
use crate::actor::error::{Failure, Refusal};
use crate::actor::key::{ActorId, Kind};
use crate::actor::reply::{WireReply, encode_failure};
use crate::node::port::Port;
use crate::shard::baggage::Baggage;
use crate::shard::calls::Completion;
use crate::shard::envelope::IncomingCall;
use crate::shard::turns::{Chain, Link};
use crate::shard::{Shard, Slot};

/// All actors in memory.
pub(super) struct Cast {
    port: Arc<Port>,
    epoch: Epoch,
    actors: BTreeMap<Named, Actor>,
    turns: BTreeMap<TurnId, Turn>,
}

#[derive(Default)]
struct Actor {
    slot: Option<Slot>,
    /// What the journal holds, until an activation is made of it.
    stored: Option<Vec<StoredField>>,
    /// Turns that have ended and are not committed.
    uncommitted: usize,
    /// The turn that waits for the fields to be read.
    waiting: Option<(TurnId, Letter)>,
    reading: bool,
    used: Timestamp,
}

struct Turn {
    actor: Named,
    takings: Arc<Takings>,
    /// Whether somebody outside waits for the answer.
    called: bool,
}

/// What has become of a turn that was to begin.
pub(super) enum Begun {
    Runs(TurnId, oneshot::Receiver<Completion>),
    Ended(TurnId, Completion),
    Fails(TurnId, Outcome<Named, Body>),
    /// The actor's fields must be read first.
    Reads(Named),
    Waits,
}

impl Cast {
    pub(super) fn new(port: Arc<Port>, epoch: u64) -> Self {
        Self { port, epoch: Epoch(epoch), actors: BTreeMap::new(), turns: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.actors.len()
    }

    pub(super) fn is_in_memory(&self, kind: &str, key: &str) -> bool {
        let actor = Named { kind: kind.into(), key: key.into() };
        self.actors.get(&actor).is_some_and(|entry| entry.slot.is_some())
    }

    /// Whose changes these are.
    pub(super) fn changed(changes: &TurnChanges<Named>) -> &Named {
        match changes {
            TurnChanges::Fields(actor, _) | TurnChanges::Halted(actor, _) => actor,
        }
    }

    /// Takes in what the journal holds of an actor.
    pub(super) fn loaded(&mut self, actor: &Named, fields: Vec<StoredField>) {
        self.cut(actor);
        let entry = self.actors.entry(actor.clone()).or_default();
        entry.stored = Some(fields);
    }

    /// Takes in the fields of an actor whose activation has ended by itself, and begins the turn that waits for them.
    pub(super) fn read(&mut self, actor: &Named, fields: Vec<StoredField>, now: Timestamp) -> Begun {
        let Some(entry) = self.actors.get_mut(actor).filter(|entry| entry.reading) else { return Begun::Waits };
        entry.reading = false;
        entry.stored = Some(fields);
        match entry.waiting.take() {
            Some((turn, letter)) => self.begin(turn, letter, now),
            None => Begun::Waits,
        }
    }

    /// Takes in that a turn of `actor` is committed.
    pub(super) fn committed(&mut self, actor: &Named) -> Begun {
        let Some(entry) = self.actors.get_mut(actor) else { return Begun::Waits };
        entry.uncommitted = entry.uncommitted.saturating_sub(1);
        if entry.uncommitted == 0 && entry.waiting.is_some() && !entry.reading {
            entry.reading = true;
            return Begun::Reads(actor.clone());
        }
        Begun::Waits
    }

    /// Begins a turn.
    pub(super) fn begin(&mut self, turn: TurnId, letter: Letter, now: Timestamp) -> Begun {
        Shard::with(|shard| match shard {
            Some(shard) => self.begin_on(shard, turn, letter, now),
            None => Begun::Waits,
        })
    }

    fn begin_on(&mut self, shard: &Shard, turn: TurnId, letter: Letter, now: Timestamp) -> Begun {
        let called = letter.call.is_some();
        let Body::Call { method, arguments } = &letter.body else {
            return Begun::Fails(turn, Outcome::Failed("the message is none".to_owned()));
        };
        let kinds = self.port.node.kinds();
        let id = ActorId { kind: Kind::intern(&letter.to.kind), key: (&*letter.to.key).into() };
        if kinds.find(id.kind).is_none() {
            let name = self.port.node.name();
            let kind = &letter.to.kind;
            let failed =
                format!("kind {kind:?} is not registered on node {name:?}; register it on all nodes with a journal");
            return Begun::Fails(turn, Outcome::Failed(failed));
        }
        let Some(index) = kinds.index(&letter.to.kind, method) else {
            let route = kinds.route(&letter.to.kind, method);
            return fails(turn, called, kinds.unknown_method(&route));
        };
        let entry = self.actors.entry(letter.to.clone()).or_default();
        entry.used = now;
        let live = entry.slot.and_then(|slot| shard.activation(slot)).filter(|found| *found.id() == id);
        let activation = match (live, entry.stored.take()) {
            (Some(live), _) => live,
            (None, Some(stored)) => {
                shard.hall().put_stored(id.clone(), stored);
                let made = shard.activate_apart(id.clone(), self.epoch);
                shard.hall().take_stored(&id);
                match made.and_then(|slot| Ok((slot, shard.activation(slot).ok_or(Refusal::Moved)?))) {
                    Ok((slot, activation)) => {
                        entry.slot = Some(slot);
                        activation
                    }
                    Err(refusal) => return Begun::Fails(turn, Outcome::Failed(refusal.to_string())),
                }
            }
            (None, None) => {
                entry.waiting = Some((turn, letter));
                if entry.uncommitted > 0 || std::mem::replace(&mut entry.reading, true) {
                    return Begun::Waits;
                }
                let actor = entry.waiting.as_ref().map(|(_, letter)| letter.to.clone());
                return actor.map_or(Begun::Waits, Begun::Reads);
            }
        };
        let takings = Arc::new(Takings::new(letter.to.clone()));
        let baggage = Baggage { takings: Some(takings.clone()), ..Baggage::default() };
        let codec = codec::parse(&arguments.0).map_or(Codec::MessagePack, |payload| payload.codec);
        let (sender, mut receiver) = oneshot::channel();
        let incoming = IncomingCall {
            method: index,
            payload: &arguments.0,
            reply: WireReply::gateway(sender, self.port.node.next_outside(), codec),
            deadline: Timestamp::NEVER,
            chain: Chain { link: Link::None, baggage: Some(Arc::new(baggage)) },
        };
        self.turns.insert(turn, Turn { actor: letter.to.clone(), takings, called });
        if let Err((refusal, reply)) = activation.offer_wire(shard, incoming) {
            let refusal = refusal.unwrap_or(Refusal::Moved);
            reply.finish(Completion::Failed(Box::new(refusal.into())));
        }
        match receiver.try_recv() {
            Ok(completion) => Begun::Ended(turn, completion),
            Err(_) => Begun::Runs(turn, receiver),
        }
    }

    /// Takes in the end of a turn: what it has come to, or why it failed, or nothing if this node may not run turns now.
    /// `None` for a turn that is not known any more.
    pub(super) fn end(
        &mut self,
        turn: TurnId,
        completion: Option<Completion>,
    ) -> Option<Result<Ended, Option<String>>> {
        let Turn { actor, takings, called } = self.turns.remove(&turn)?;
        let answer = match completion {
            Some(Completion::Wire { status, payload, .. }) => (status.to_byte(), payload),
            Some(Completion::Failed(failure)) => match *failure {
                Failure::Refused(refusal) if called && is_callers_fault(&refusal) => {
                    let (status, payload) = encode_failure(&refusal.into());
                    (status.to_byte(), payload)
                }
                Failure::Refused(refusal) if is_callers_fault(&refusal) => return Some(Err(Some(refusal.to_string()))),
                Failure::Refused(Refusal::Activation { message }) => return Some(Err(Some(message))),
                Failure::Refused(refusal) => {
                    tracing::debug!(%actor, %refusal, "a turn could not begin; its partition is recovered");
                    return Some(Err(None));
                }
                Failure::Unknown(doubt) => return Some(Err(Some(doubt.to_string()))),
                Failure::Cycle(path) => return Some(Err(Some(path.join(" -> ")))),
            },
            Some(Completion::Value(_)) | None => return Some(Err(Some("the turn was dropped unfinished".to_owned()))),
        };
        let (status, payload) = answer;
        let answer = called.then(|| Body::Reply { status, payload: Payload(payload) });
        let ended = takings.end(turn, answer);
        if let Some(entry) = self.actors.get_mut(&actor) {
            entry.uncommitted += 1;
            if ended.effects.halts {
                let slot = entry.slot.take();
                // Who comes next under the name finds nothing of it.
                entry.stored = Some(Vec::new());
                cut(slot);
            }
        }
        Some(Ok(ended))
    }

    /// Takes an actor's activation away, with a turn that runs: what it did is not committed.
    pub(super) fn cut(&mut self, actor: &Named) {
        if let Some(entry) = self.actors.remove(actor) {
            cut(entry.slot);
        }
        self.turns.retain(|_, turn| turn.actor != *actor);
    }

    pub(super) fn cut_all(&mut self) {
        self.turns.clear();
        for entry in std::mem::take(&mut self.actors).into_values() {
            cut(entry.slot);
        }
    }

    /// Lets go of actors that have been idle for their kind's idle time.
    pub(super) fn sweep(&mut self, machine: &mut Machine, now: Timestamp) {
        let kinds = self.port.node.kinds();
        let idle = |kind: &str| Kind::known(kind).and_then(|kind| kinds.find(kind)).map_or(SHORT, |kind| kind.idle());
        let due: Vec<Named> = self
            .actors
            .iter()
            .filter(|(actor, entry)| entry.uncommitted == 0 && entry.used + idle(&actor.kind) <= now)
            .map(|(actor, _)| actor.clone())
            .collect();
        for actor in due {
            if machine.forget(&actor) {
                self.cut(&actor);
            }
        }
    }
}

fn cut(slot: Option<Slot>) {
    Shard::with(|shard| {
        if let (Some(shard), Some(slot)) = (shard, slot) {
            shard.cut_apart(slot);
        }
    });
}

/// Whether no retry helps, as the message is at fault.
fn is_callers_fault(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Invalid { .. } | Refusal::UnknownMethod { .. } | Refusal::Version(_) | Refusal::Denied { .. }
    )
}

/// A turn that cannot begin: who waits is told, and a message of another actor is tried again and then parked.
fn fails(turn: TurnId, called: bool, refusal: Refusal) -> Begun {
    if !called {
        return Begun::Fails(turn, Outcome::Failed(refusal.to_string()));
    }
    let (status, payload) = encode_failure(&refusal.into());
    let answer = Some(Body::Reply { status: status.to_byte(), payload: Payload(payload) });
    let effects = greenroom_protocols::delivery::Effects { answer, ..Default::default() };
    Begun::Fails(turn, Outcome::Done(effects))
}

/// The idle time of kinds that are not hosted here.
const SHORT: std::time::Duration = std::time::Duration::from_secs(10);
