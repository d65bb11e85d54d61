//! The actors of a partition that are in memory, and their turns.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_protocols::delivery::{Effects, Life, Outcome, Ownership, TurnId};
use greenroom_protocols::directory::Epoch;
use greenroom_reliable::ledger::{StoredField, TurnChanges};
use greenroom_wire::ExtensionView;
use greenroom_world::Timestamp;
use tokio::sync::oneshot;

use super::again::{Doubted, Fields, Record};
use super::births::Births;
use super::kept::Memory;
use super::name::{Body, Letter, Machine, Named, Payload, Sealed};
use super::takings::{Ended, Fate, Takings};
use crate::actor::error::{Failure, HOST_LOST_ACTIVATING, Refusal};
use crate::actor::key::{ActorId, Kind};
use crate::actor::reply::{ReplyForm, WireReply, encode_failure};
use crate::here::port::Port;
use crate::shard::activation::AnyActivation;
use crate::shard::baggage::Baggage;
use crate::shard::calls::Completion;
use crate::shard::chain::{Chain, Link};
use crate::shard::envelope::IncomingCall;
use crate::shard::{Shard, Slot};

/// All actors in memory.
pub(super) struct Cast {
    pub(super) port: Arc<Port>,
    pub(super) epoch: Epoch,
    /// Whether turns are run again.
    pub(super) rerun: bool,
    /// Whether they may be later.
    pub(super) may_rerun: bool,
    births: Births,
    pub(super) actors: BTreeMap<Named, Actor>,
    turns: BTreeMap<TurnId, Turn>,
    /// Turns of actors whose kind a host is to offer yet.
    stranded: BTreeMap<TurnId, Named>,
    /// Methods that came to something else when they were run again, by actor, with what was found.
    pub(super) faulty: BTreeMap<(Named, Arc<str>), String>,
}

#[derive(Default)]
pub(super) struct Actor {
    slot: Option<Slot>,
    /// What the journal holds, until an activation is made of it.
    stored: Option<Vec<StoredField>>,
    /// Turns that have ended and are not committed.
    uncommitted: usize,
    /// The turn that waits for the fields to be read.
    waiting: Option<(TurnId, Sealed)>,
    reading: bool,
    used: Timestamp,
    /// Where turns are run again: what there was before the turn that runs.
    pub(super) before: Option<Box<Fields>>,
}

struct Turn {
    actor: Named,
    takings: Arc<Takings>,
    /// Whether somebody outside waits for the answer.
    called: bool,
    /// Where turns are run again.
    doubted: Option<Box<Doubted>>,
}

/// How a turn has ended.
pub(super) enum End {
    Done(Ended),
    /// Its message goes to the actor's own queue.
    Deferred,
    /// It has no effects, and this is why.
    Failed(String),
    /// It has no effects, as the host in which it ran died.
    Died,
    /// This node may not run turns now: the next ownership does.
    Again,
    /// It is run again before its end is believed.
    Twice(Begun),
}

/// What has become of a turn that was to begin.
pub(super) enum Begun {
    Runs(TurnId, oneshot::Receiver<Completion>),
    Ended(TurnId, Completion),
    Fails(TurnId, Outcome<Named, Body>),
    /// The actor's fields must be read first.
    Reads(Named),
    /// No host has offered its kind here yet: it is begun again later.
    Strands(TurnId, Sealed),
    Waits,
}

impl Cast {
    pub(super) fn new(port: Arc<Port>, owner: Ownership, life: Life) -> Self {
        let births = Births::new(owner, life);
        let epoch = Epoch(owner.epoch.0);
        let (actors, turns, faulty) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let rerun = port.node.config().reliable.rerun;
        let stranded = BTreeMap::new();
        Self { port, epoch, rerun, may_rerun: rerun, births, actors, turns, stranded, faulty }
    }

    pub(super) fn len(&self) -> usize {
        self.actors.len()
    }

    pub(super) fn is_in_memory(&self, kind: &str, key: &str) -> bool {
        let actor = Named { kind: kind.to_owned().into(), key: key.into() };
        self.actors.get(&actor).is_some_and(|entry| entry.slot.is_some())
    }

    /// Whether anything of the actor is in memory.
    #[cfg(feature = "rehearsal")]
    pub(super) fn knows(&self, actor: &Named) -> bool {
        self.actors.contains_key(actor)
    }

    /// Lets the next turns create actors of these names.
    #[cfg(feature = "rehearsal")]
    pub(super) fn give_births(&mut self, births: Births) {
        self.births = births;
    }

    /// Keeps what there is of the actor before its next turn, which runs twice; or forgets it, where that does not.
    #[cfg(feature = "rehearsal")]
    pub(super) fn know_before(&mut self, actor: &Named, fields: Option<&Fields>) {
        if let Some(entry) = self.actors.get_mut(actor) {
            entry.before = fields.cloned().map(Box::new);
        }
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
    pub(super) fn read(&mut self, actor: &Named, fields: Result<Vec<StoredField>, String>, now: Timestamp) -> Begun {
        let Some(entry) = self.actors.get_mut(actor).filter(|entry| entry.reading) else { return Begun::Waits };
        entry.reading = false;
        let waiting = entry.waiting.take();
        match (fields, waiting) {
            (Ok(fields), waiting) => {
                entry.stored = Some(fields);
                waiting.map_or(Begun::Waits, |(turn, letter)| self.begin(turn, &letter, now))
            }
            // Its records are loaded anew for the next try, and the machine hears what is wrong with them.
            (Err(error), Some((turn, _))) => Begun::Fails(turn, Outcome::Failed(error)),
            (Err(_), None) => Begun::Waits,
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
    pub(super) fn begin(&mut self, turn: TurnId, letter: &Sealed, now: Timestamp) -> Begun {
        Shard::with(|shard| match shard {
            Some(shard) => self.begin_on(shard, turn, letter, now),
            None => Begun::Waits,
        })
    }

    /// Begins a turn whose kind was not there, unless that is forgotten.
    pub(super) fn begin_stranded(&mut self, turn: TurnId, letter: &Sealed, now: Timestamp) -> Begun {
        if self.stranded.contains_key(&turn) { self.begin(turn, letter, now) } else { Begun::Waits }
    }

    fn begin_on(&mut self, shard: &Shard, turn: TurnId, letter: &Sealed, now: Timestamp) -> Begun {
        let called = letter.call.is_some();
        let method = match &letter.body {
            Body::Call { method, .. } => method,
            // The incarnation is what its commit writes.
            Body::Created => return Begun::Fails(turn, Outcome::Done(Box::default())),
            Body::Reply { .. } | Body::Output(_) => {
                return Begun::Fails(turn, Outcome::Failed("the message is none".to_owned()));
            }
        };
        let kinds = self.port.node.kinds();
        if kinds.contains(&letter.to.kind) {
            self.stranded.remove(&turn);
        } else if self.port.node.may_be_offered(&letter.to.kind) {
            self.stranded.insert(turn, letter.to.clone());
            return Begun::Strands(turn, letter.clone());
        }
        let Some(kind) = Kind::known(&letter.to.kind).filter(|kind| kinds.find(*kind).is_some()) else {
            let name = self.port.node.name();
            let kind = &letter.to.kind;
            let failed =
                format!("kind {kind:?} is not registered on node {name:?}; register it on all nodes with a journal");
            return Begun::Fails(turn, Outcome::Failed(failed));
        };
        // Its records could not have been loaded under a name that is none.
        let id = ActorId::unchecked(kind, &letter.to.key);
        let Some(index) = kinds.index(&letter.to.kind, method) else {
            let route = kinds.route(&letter.to.kind, method);
            return fails(turn, called, kinds.unknown_method(&route));
        };
        let (rerun, may_rerun) = (self.rerun, self.may_rerun);
        if rerun && let Some(found) = self.faulty.get(&(letter.to.clone(), method.clone())) {
            return Begun::Fails(turn, Outcome::Failed(found.clone()));
        }
        let entry = self.actors.entry(letter.to.clone()).or_default();
        entry.used = now;
        let live = entry.slot.and_then(|slot| shard.activation(slot)).filter(|found| *found.id() == id);
        let activation = match (live, entry.stored.take()) {
            (Some(live), _) => live,
            (None, Some(stored)) => {
                entry.before = may_rerun.then(|| Box::new(Fields::of(&stored)));
                let made = shard.activate_apart(id.clone(), self.epoch, Memory::seed(stored));
                match made.and_then(|slot| Ok((slot, shard.activation(slot).ok_or(Refusal::Moved)?))) {
                    Ok((slot, activation)) => {
                        entry.slot = Some(slot);
                        activation
                    }
                    Err(refusal) => return Begun::Fails(turn, Outcome::Failed(refusal.to_string())),
                }
            }
            (None, None) => {
                entry.waiting = Some((turn, letter.clone()));
                if entry.uncommitted > 0 || std::mem::replace(&mut entry.reading, true) {
                    return Begun::Waits;
                }
                return Begun::Reads(letter.to.clone());
            }
        };
        let again = rerun.then(|| (Box::default(), Doubted::new(letter, index)));
        self.offer(shard, turn, (letter, index), activation, again)
    }

    /// Lets an activation take a message.
    pub(super) fn offer(
        &mut self,
        shard: &Shard,
        turn: TurnId,
        (letter, method): (&Letter, u16),
        activation: Rc<dyn AnyActivation>,
        again: Option<(Box<Record>, Box<Doubted>)>,
    ) -> Begun {
        let Body::Call { arguments, carried, .. } = &letter.body else { return Begun::Waits };
        let (record, doubted) = again.unzip();
        let takings = Arc::new(Takings::new(letter.to.clone(), self.births.clone(), record));
        let baggage = Baggage { holdback: Some(takings.clone()), ..unpacked(carried.as_ref()) };
        let (actor, called) = (letter.to.clone(), letter.call.is_some());
        let (sender, mut receiver) = oneshot::channel();
        let number = self.port.node.next_outside();
        let reply = match called {
            true => WireReply::gateway(sender, number, ReplyForm::asked_by(&arguments.0)),
            false => WireReply::runner(sender, number),
        };
        let incoming = IncomingCall {
            method,
            payload: &arguments.0,
            reply,
            deadline: Timestamp::NEVER,
            chain: Chain { link: Link::None, baggage: Some(Arc::new(baggage)) },
        };
        let refused = activation.offer_wire(shard, incoming);
        self.turns.insert(turn, Turn { actor, takings, called, doubted });
        if let Err((refusal, reply)) = refused {
            let refusal = refusal.unwrap_or(Refusal::Moved);
            reply.finish(Completion::Failed(Box::new(refusal.into())));
        }
        match receiver.try_recv() {
            Ok(completion) => Begun::Ended(turn, completion),
            Err(_) => Begun::Runs(turn, receiver),
        }
    }

    /// Takes in the end of a turn. `None` for a turn that is not known any more.
    pub(super) fn end(&mut self, turn: TurnId, completion: Option<Completion>) -> Option<End> {
        let Turn { actor, takings, called, doubted } = self.turns.remove(&turn)?;
        let end = ended(turn, &actor, &takings, called, completion);
        let end = match doubted {
            Some(doubted) => self.run_over(turn, doubted, end),
            None => end,
        };
        if let (End::Done(ended), Some(entry)) = (&end, self.actors.get_mut(&actor)) {
            entry.uncommitted += 1;
            if let Some(before) = &mut entry.before {
                before.change(&ended.changes.1);
            }
            if ended.effects.halts {
                let slot = entry.slot.take();
                // Who comes next under the name finds nothing of it.
                entry.stored = Some(Vec::new());
                cut(slot);
            }
        }
        Some(end)
    }

    /// Takes an actor's activation away, with a turn that runs: what it did is not committed.
    pub(super) fn cut(&mut self, actor: &Named) {
        if let Some(entry) = self.actors.remove(actor) {
            cut(entry.slot);
        }
        self.turns.retain(|_, turn| turn.actor != *actor);
        self.stranded.retain(|_, stranded| stranded != actor);
    }

    pub(super) fn cut_all(&mut self) {
        self.turns.clear();
        self.stranded.clear();
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

/// What a turn has come to by itself.
fn ended(turn: TurnId, actor: &Named, takings: &Takings, called: bool, completion: Option<Completion>) -> End {
    let fate = takings.fate();
    let failed = End::Failed;
    let answer = match completion {
        _ if fate == Some(Fate::Deferred) => return End::Deferred,

        _ if fate == Some(Fate::Died) => return End::Died,
        Some(_) if let Some(Fate::Failed(why)) = fate => return failed(why),
        Some(_) if let Some(Fate::Stuck(why)) = fate => {
            return if called { failed(why) } else { End::Deferred };
        }
        Some(_) if let (Some(Fate::Unhandled(why)), false) = (&fate, called) => return failed(why.clone()),
        Some(_) if let Some(Fate::Ignored(message) | Fate::Unhandled(message)) = fate => {
            let (status, payload) = encode_failure(&Refusal::Invalid { field: String::new(), message }.into());
            (status.to_byte(), payload)
        }
        Some(Completion::Wire { status, payload, .. }) => (status.to_byte(), payload),
        Some(Completion::Failed(failure)) => match *failure {
            Failure::Refused(refusal) if called && is_callers_fault(&refusal) => {
                let (status, payload) = encode_failure(&refusal.into());
                (status.to_byte(), payload)
            }
            Failure::Refused(refusal) if is_callers_fault(&refusal) => return failed(refusal.to_string()),
            Failure::Refused(Refusal::Activation { message }) if message == HOST_LOST_ACTIVATING => return End::Died,
            Failure::Refused(Refusal::Activation { message }) => return failed(message),
            Failure::Refused(refusal) => {
                tracing::debug!(%actor, %refusal, "a turn could not begin; its partition is recovered");
                return End::Again;
            }
            Failure::Unknown(doubt) => return failed(doubt.to_string()),
            Failure::Cycle(path) => return failed(path.join(" -> ")),
        },
        Some(Completion::Value(_)) | None => return failed("the turn was dropped unfinished".to_owned()),
    };
    let (status, payload) = answer;
    let answer = called.then(|| Body::Reply { status, payload: Payload(payload) });
    if let Some(state) = takings.stray_jump() {
        return failed(format!("{actor} jumps to {state:?} in a read, which changes nothing; take `&mut self`"));
    }
    End::Done(takings.end(turn, answer))
}

pub(super) fn cut(slot: Option<Slot>) {
    Shard::with(|shard| {
        if let (Some(shard), Some(slot)) = (shard, slot) {
            shard.cut_apart(slot);
        }
    });
}

/// What came with a message. What cannot be read is nothing that a turn should fail for.
pub(super) fn unpacked(carried: Option<&Payload>) -> Baggage {
    let Some(carried) = carried else { return Baggage::default() };
    let read = ExtensionView::parse(&carried.0).and_then(Baggage::read);
    read.map_or_else(|_| Baggage::default(), |baggage| Baggage { tick: None, ..Baggage::clone(&baggage) })
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
    let effects = Box::new(Effects { answer, ..Effects::default() });
    Begun::Fails(turn, Outcome::Done(effects))
}

/// The idle time of kinds that are not hosted here.
const SHORT: std::time::Duration = std::time::Duration::from_secs(10);
