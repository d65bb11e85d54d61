//! What a turn has done that must not be seen before it is committed.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use greenroom_protocols::delivery::{self, Delivery, Destination, Effects, Outgoing, Timer, TurnId};
use greenroom_protocols::reminders::Wall;
use greenroom_reliable::ledger::{FieldChanges, TurnChanges};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::again::Record;
use super::births::{self, Births};
use super::name::{Body, Letter, Named, Payload, Sealed};
use super::outputs::OUTLET;
use crate::actor::error::Refusal;
use crate::actor::key::{Key, check};
use crate::actor::reference::Inner;
use crate::here::built_in::is_built_in;
use crate::pids::key::reserved;
use crate::shard::Shard;
use crate::shard::baggage::{Baggage, Load};
use crate::shard::holdback::{Holdback, Unsent, holdback};
use crate::shard::one_way::Told;
use crate::shard::submit::Callee;

/// What one turn of a reliable actor keeps back until its commit.
pub(super) struct Takings {
    by: Named,
    births: Births,
    taken: Mutex<Taken>,
}

/// Those of the turn that runs here, if it is one of a reliable actor.
pub(super) fn takings() -> Option<Arc<Takings>> {
    let holdback: Arc<dyn Any + Send + Sync> = holdback()?;
    holdback.downcast().ok()
}

/// What becomes of a turn beside its effects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// The message goes to the actor's own queue.
    Deferred,
    /// The state does not want the message: it is done, and who waits for an answer is told.
    Ignored(String),
    /// The state does not know the message. Who waits is told; else the turn has failed.
    Unhandled(String),
    /// This program does not know the state. Who waits is told; else the message waits for a program that does.
    Stuck(String),
    /// The turn has failed.
    Failed(String),
    /// The host in which it ran died.
    Died,
}

#[derive(Default)]
struct Taken {
    sends: Vec<Outgoing<Named, Body>>,
    /// Names of timers that are cancelled.
    cancels: Vec<String>,
    timers: Vec<Timer<Named, Body>>,
    /// Messages to actors that are not reliable: they leave after the commit, once or not at all.
    later: Vec<Later>,
    halts: bool,
    /// The machine state to go to.
    jump: Option<Arc<str>>,
    fate: Option<Fate>,
    /// Whether the turn's changes are in `fields`, as those of all turns but reads.
    collected: bool,
    fields: Vec<FieldChanges>,
    /// All entries that the actor has, if it halts.
    entries: Vec<(String, String)>,
    bytes: usize,
    /// Where turns are run again: what this run gets.
    record: Option<Box<Record>>,
}

/// Something to be done on the shard after the commit.
pub(super) type Later = Box<dyn FnOnce(&Shard) + Send>;

impl Takings {
    pub(super) fn new(by: Named, births: Births, record: Option<Box<Record>>) -> Self {
        Self { by, births, taken: Mutex::new(Taken { record, ..Taken::default() }) }
    }

    /// Whose turn it is.
    pub(super) fn by(&self) -> &Named {
        &self.by
    }

    /// Forgets what the turn has done: it begins again, and gets the same.
    pub(super) fn begin_again(&self) {
        let mut taken = self.taken();
        let record = taken.record.as_ref().map(|record| Box::new(record.again()));
        *taken = Taken { record, ..Taken::default() };
    }

    /// Does something with what this run gets, where turns are run again.
    fn record<T>(&self, with: impl FnOnce(&mut Record) -> T) -> Option<T> {
        self.taken().record.as_deref_mut().map(with)
    }

    /// Where turns are run again: the place of the turn's next choice, and what was chosen there.
    pub(super) fn chosen<T: DeserializeOwned>(&self) -> Option<(usize, Option<T>)> {
        self.record(Record::chosen)
    }

    pub(super) fn choose<T: Serialize>(&self, at: usize, value: &T) {
        self.record(|record| record.choose(at, value));
    }

    /// The choice at the turn's next place for one: what was chosen there, or else `value`.
    pub(super) fn choose_bytes(&self, value: Bytes) -> Bytes {
        self.record(|record| record.choose_bytes(value.clone())).unwrap_or(value)
    }

    /// What a timer is called that its host sets now under a name that it has drawn.
    pub(super) fn name_timer(&self, name: &str) -> String {
        self.record(|record| record.name_timer(name)).unwrap_or_else(|| name.to_owned())
    }

    /// What a timer of a host's is called.
    pub(super) fn timer(&self, name: &str) -> String {
        self.record(|record| record.timer(name)).unwrap_or_else(|| name.to_owned())
    }

    /// Counts a read that the turn awaits.
    pub(super) fn count_read(&self) {
        self.record(Record::call);
    }

    /// Keeps whom the turn sends a message that leaves after the commit.
    pub(super) fn tell(&self, whom: impl FnOnce() -> String) {
        self.record(|record| record.tell(whom()));
    }

    /// Where turns are run again: the place of the next read that the turn awaits, and what was answered there.
    pub(super) fn begin_read(&self) -> Option<(usize, Option<Bytes>)> {
        self.record(Record::begin_read)
    }

    pub(super) fn end_read(&self, at: usize, answer: Bytes) {
        self.record(|record| record.end_read(at, answer));
    }

    /// The time for this turn, if it is `now`.
    pub(super) fn time(&self, now: Wall) -> Wall {
        self.record(|record| record.time(now)).unwrap_or(now)
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_back(&self, shard: &Shard, message: Unsent) -> Result<(), Refusal> {
        let target = &message.target;
        check(&target.id.key)?;
        if target.forged {
            return Err(reserved(&target.id.key));
        }
        let node = &shard.port().node;
        if !node.is_reliable(target.id.kind, message.interface) {
            let load = shard.load(message.own)?;
            self.record(|record| record.tell(format!("{}.{}", target.id, message.method)));
            let own = load.map(|load| Box::new(Baggage::clone(&load)));
            let later = Unsent { own, ..message };
            self.later(Box::new(move |shard| later.send(shard)));
            return Ok(());
        }
        let outgoing = self.outgoing(shard, message)?;
        self.keep(outgoing);
        Ok(())
    }

    /// Keeps a message to a reliable actor back.
    pub(super) fn keep(&self, outgoing: Outgoing<Named, Body>) {
        self.taken().sends.push(outgoing);
    }

    /// Keeps back what is to be done after the commit.
    pub(super) fn later(&self, later: Later) {
        self.taken().later.push(later);
    }

    /// Keeps a message back that is to be sent when it is due; `name` is what it is cancelled by.
    ///
    /// # Errors
    /// [`Refusal`]: it can never be sent.
    pub(super) fn send_at(
        &self,
        shard: &Shard,
        message: Unsent,
        due: Wall,
        name: Option<String>,
    ) -> Result<(), Refusal> {
        let target = &message.target;
        if !shard.port().node.is_reliable(target.id.kind, message.interface) {
            let message = format!(
                "{} is not reliable, so no timer of {} can be for it; let {} get the timer's message, and send from there",
                target.id, self.by, self.by
            );
            return Err(Refusal::Invalid { field: String::new(), message });
        }
        let outgoing = self.outgoing(shard, message)?;
        self.keep_until(outgoing, due, name);
        Ok(())
    }

    /// Keeps a message to a reliable actor back that is to be sent when it is due.
    pub(super) fn keep_until(&self, outgoing: Outgoing<Named, Body>, due: Wall, name: Option<String>) {
        let mut taken = self.taken();
        if let Some(name) = &name {
            taken.timers.retain(|timer| timer.name.as_ref() != Some(name));
        }
        taken.timers.push(Timer { due, slot: delivery::Slot::default(), outgoing, name });
    }

    /// Cancels the actor's timer of this name.
    pub(super) fn cancel(&self, name: &str) {
        let mut taken = self.taken();
        taken.timers.retain(|timer| timer.name.as_deref() != Some(name));
        taken.cancels.push(name.to_owned());
    }

    fn outgoing(&self, shard: &Shard, message: Unsent) -> Result<Outgoing<Named, Body>, Refusal> {
        let Unsent { target, own, method, call, .. } = message;
        let delivery = own.as_ref().map_or(Delivery::ExactlyOnce, |own| own.delivery);
        let load = shard.load(own)?;
        self.letter(shard, Named::of(&target.id), method, call.arguments()?, (load, delivery))
    }

    /// A message to the reliable actor `to`.
    ///
    /// # Errors
    /// [`Refusal`]: it can never be sent.
    pub(super) fn letter(
        &self,
        shard: &Shard,
        to: Named,
        method: &str,
        arguments: Bytes,
        (load, delivery): (Load, Delivery),
    ) -> Result<Outgoing<Named, Body>, Refusal> {
        let partitions = shard.port().node.config().reliable.partitions;
        let birth = to.check(partitions)?;
        let arguments = Payload(arguments);
        let carried = load.as_ref().map_or(Ok(None), |load| load.carried())?.map(Payload);
        let body = Body::Call { method: method.into(), arguments, carried };
        self.taken().bytes += size(&body) + to.key.len();
        let to_partition = Destination::Partition(to.partition(partitions));
        let envelope = Letter { from: Some(self.by.clone()), to, birth, creates: false, call: None, body }.into();
        Ok(Outgoing { to: to_partition, delivery, envelope })
    }

    /// Lets an actor of `kind` come into being with this turn's commit: its key.
    pub(super) fn create(&self, kind: &'static str, partitions: u32) -> Key {
        let birth = self.record(|record| record.birth(|| self.births.next())).unwrap_or_else(|| self.births.next());
        let key = Key::from(births::key(birth));
        let to = Named { kind: kind.into(), key: key.clone() };
        let partition = Destination::Partition(to.partition(partitions));
        let (from, body) = (Some(self.by.clone()), Body::Created);
        let envelope = Sealed::from(Letter { from, to, birth: Some(birth), creates: true, call: None, body });
        let mut taken = self.taken();
        taken.bytes += letter_size(&envelope);
        taken.sends.push(Outgoing { to: partition, delivery: Delivery::ExactlyOnce, envelope });
        key
    }

    /// Keeps an output back, for the outlet of this number.
    pub(super) fn output(&self, number: u32, outlet: &str, body: Bytes) {
        let to = Named { kind: OUTLET.into(), key: outlet.into() };
        let body = Body::Output(Payload(body));
        let mut taken = self.taken();
        taken.bytes += size(&body);
        let envelope = Letter { from: Some(self.by.clone()), to, birth: None, creates: false, call: None, body }.into();
        let (to, delivery) = (Destination::Outside(number), Delivery::AtLeastOnce);
        taken.sends.push(Outgoing { to, delivery, envelope });
    }

    /// Lets the actor halt with this turn.
    pub(super) fn halt(&self) {
        self.taken().halts = true;
    }

    /// Lets the actor be in another machine state from the next turn on.
    pub(super) fn jump(&self, state: Arc<str>) {
        self.taken().jump = Some(state);
    }

    /// Where it will be.
    pub(super) fn jumps_to(&self) -> Option<Arc<str>> {
        self.taken().jump.clone()
    }

    /// Where it would be if the turn were not a read.
    pub(super) fn stray_jump(&self) -> Option<Arc<str>> {
        let taken = self.taken();
        taken.jump.clone().filter(|_| !taken.collected)
    }

    /// Decides what becomes of the turn; the first word counts.
    pub(super) fn end_as(&self, fate: Fate) {
        self.taken().fate.get_or_insert(fate);
    }

    /// Lets the turn fail, as something in it cannot be.
    pub(super) fn fail(&self, why: String) {
        self.end_as(Fate::Failed(why));
    }

    pub(super) fn fate(&self) -> Option<Fate> {
        self.taken().fate.clone()
    }

    pub(super) fn halts(&self) -> bool {
        self.taken().halts
    }

    /// Takes in what the turn has changed, and the entries that the actor has if it halts.
    pub(super) fn put(&self, fields: Vec<FieldChanges>, entries: Vec<(String, String)>) {
        let mut taken = self.taken();
        let sizes = fields.iter().flat_map(|field| &field.changes);
        taken.bytes +=
            sizes.map(|change| change.entry.len() + change.value.as_ref().map_or(0, Bytes::len)).sum::<usize>();
        (taken.fields, taken.entries, taken.collected) = (fields, entries, true);
    }

    /// All of it: the effects, the changes of fields, and what is to be done after the commit.
    pub(super) fn end(&self, turn: TurnId, answer: Option<Body>) -> Ended {
        let taken = std::mem::take(&mut *self.taken());
        let Taken { sends, cancels, timers, later, halts, jump, fate: _, collected, fields, entries, bytes, record } =
            taken;
        let operations = fields.iter().map(|field| field.changes.len()).sum::<usize>() + entries.len();
        let answer_bytes = answer.as_ref().map_or(0, size);
        let bytes = bytes + answer_bytes;
        let reconsider = jump.is_some();
        let effects =
            Effects { sends, cancels, timers, halts, reconsider, answer, answer_bytes, operations, bytes }.into();
        let changes = match halts {
            true => TurnChanges::Halted(self.by.clone(), entries),
            false => TurnChanges::Fields(self.by.clone(), fields),
        };
        let told = record.as_ref().map(|record| record.told().to_vec()).unwrap_or_default();
        // A read commits nothing.
        let record = record.filter(|record| collected && record.is_whole());
        Ended { effects, changes: (turn, changes), later, told, record }
    }
}

impl Holdback for Takings {
    // It must not be answered as if it had sent all.
    fn send(&self, shard: &Shard, message: Unsent, told: Told) -> Result<(), Refusal> {
        let (kind, method) = (message.interface.kind, message.method);
        let sent = self.keep_back(shard, message);
        if let (Err(refusal), Told::Nobody) = (&sent, told) {
            self.fail(format!("{} cannot send {method} to {kind}: {refusal}", self.by));
        }
        sent
    }

    fn check_call(&self, target: &Inner, Callee { kind, method }: Callee) -> Result<(), Refusal> {
        if method.is_repeatable() && !is_built_in(kind) {
            self.record(Record::call);
            return Ok(());
        }
        let message = format!(
            "the reliable actor {} awaits {kind}.{} of {}, which would act before the turn is committed; write `.send()`, \
             and let the other actor answer with a message of its own",
            self.by, method.name, target.id
        );
        Err(Refusal::Invalid { field: String::new(), message })
    }
}

/// What a turn has come to.
pub(super) struct Ended {
    pub(super) effects: Box<Effects<Named, Body>>,
    pub(super) changes: (TurnId, TurnChanges<Named>),
    pub(super) later: Vec<Later>,
    /// For a second run: what it gets, unless nobody knows all of that, and whom the first one has told.
    pub(super) record: Option<Box<Record>>,
    pub(super) told: Vec<String>,
}

#[cfg(feature = "rehearsal")]
impl Ended {
    /// That of a turn that has come to these effects, and changed nothing.
    pub(super) fn of(actor: &Named, turn: TurnId, effects: Box<Effects<Named, Body>>) -> Self {
        let changes = (turn, TurnChanges::Fields(actor.clone(), Vec::new()));
        Self { effects, changes, later: Vec::new(), record: None, told: Vec::new() }
    }

    /// Whether it makes anything true but its answer.
    pub(super) fn is_seen(&self) -> bool {
        let Effects { sends, cancels, timers, halts, reconsider, .. } = &*self.effects;
        let changes = !matches!(&self.changes.1, TurnChanges::Fields(_, fields) if fields.is_empty());
        let sends = !(sends.is_empty() && cancels.is_empty() && timers.is_empty() && self.later.is_empty());
        changes || sends || *halts || *reconsider
    }
}

/// How many bytes a message has, about.
pub(super) fn letter_size(letter: &Letter) -> usize {
    size(&letter.body) + letter.to.key.len() + letter.from.as_ref().map_or(0, |from| from.key.len())
}

fn size(body: &Body) -> usize {
    match body {
        Body::Call { method, arguments, carried } => {
            method.len() + arguments.0.len() + carried.as_ref().map_or(0, |carried| carried.0.len())
        }
        Body::Reply { payload, .. } | Body::Output(payload) => payload.0.len(),
        Body::Created => 0,
    }
}

impl fmt::Debug for Takings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Takings").field("by", &self.by).finish_non_exhaustive()
    }
}
