//! What a turn has done that must not be seen before it is committed.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use greenroom_protocols::delivery::{Delivery, Destination, Effects, Outgoing, TurnId};
use greenroom_reliable::ledger::{FieldChanges, TurnChanges};

use super::name::{Body, Letter, Named, Payload};
use crate::actor::error::Refusal;
use crate::actor::interface::{Interface, Method};
use crate::actor::reference::Inner;
use crate::actor::reply::ReplyTo;
use crate::shard::Shard;
use crate::shard::submit::Told;
use crate::topic::actor::TOPICS;

/// What one turn of a reliable actor keeps back until its commit.
pub(crate) struct Takings {
    by: Named,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    sends: Vec<Outgoing<Named, Body>>,
    /// Messages to actors that are not reliable: they leave after the commit, once or not at all.
    later: Vec<Later>,
    halts: bool,
    fields: Vec<FieldChanges>,
    /// All entries that the actor has, if it halts.
    entries: Vec<(String, String)>,
    bytes: usize,
}

/// Something to be done on the shard after the commit.
pub(super) type Later = Box<dyn FnOnce(&Shard) + Send>;

impl Takings {
    pub(super) fn new(by: Named) -> Self {
        Self { by, taken: Mutex::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a message back.
    ///
    /// # Errors
    /// [`Refusal`]: it can never be sent.
    #[cold]
    pub(crate) fn send<M: Method>(
        &self,
        shard: &Shard,
        target: &std::sync::Arc<Inner>,
        method: M,
    ) -> Result<(), Refusal> {
        let node = &shard.port().node;
        if !node.is_reliable::<M::Interface>(target.id.kind) {
            let target = target.clone();
            let later: Later = Box::new(move |shard| {
                // What is refused is a dead letter, as of any other sender.
                let _ = shard.send(target, method, None, Told::Nobody);
            });
            self.taken().later.push(later);
            return Ok(());
        }
        crate::actor::key::check(&target.id.key)?;
        let to = Named::of(&target.id);
        let method_name = M::Interface::METHODS[usize::from(M::INDEX)].name;
        let arguments = encoded::<M::Interface>(&method.into_message(ReplyTo::nobody()))?;
        let partition = to.partition(node.config().reliable.partitions);
        let body = Body::Call { method: method_name.into(), arguments: Payload(arguments) };
        let mut taken = self.taken();
        taken.bytes += size(&body) + to.key.len();
        let envelope = Letter { from: Some(self.by.clone()), to, birth: None, creates: false, call: None, body };
        let (to, delivery) = (Destination::Partition(partition), Delivery::ExactlyOnce);
        taken.sends.push(Outgoing { to, delivery, envelope });
        Ok(())
    }

    /// Refuses a call that the turn awaits, if it would act before the commit.
    ///
    /// # Errors
    /// [`Refusal::Invalid`], which says what to do instead.
    #[cold]
    pub(crate) fn check_call<M: Method>(&self, target: &Inner) -> Result<(), Refusal> {
        let method = M::Interface::METHODS[usize::from(M::INDEX)];
        let kind = M::Interface::KIND;
        if method.read && kind != TOPICS && !kind.starts_with("greenroom.") {
            return Ok(());
        }
        let message = format!(
            "the reliable actor {} awaits {kind}.{} of {}, which would act before the turn is committed; write `.send()`, \
             and let the other actor answer with a message of its own",
            self.by, method.name, target.id
        );
        Err(Refusal::Invalid { field: String::new(), message })
    }

    /// Lets the actor halt with this turn.
    pub(crate) fn halt(&self) {
        self.taken().halts = true;
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
        (taken.fields, taken.entries) = (fields, entries);
    }

    /// All of it: the effects, the changes of fields, and what is to be done after the commit.
    pub(super) fn end(&self, turn: TurnId, answer: Option<Body>) -> Ended {
        let Taken { sends, later, halts, fields, entries, bytes } = std::mem::take(&mut *self.taken());
        let operations = fields.iter().map(|field| field.changes.len()).sum::<usize>() + entries.len();
        let bytes = bytes + answer.as_ref().map_or(0, size);
        let effects = Effects { sends, halts, reconsider: false, answer, operations, bytes };
        let changes = match halts {
            true => TurnChanges::Halted(self.by.clone(), entries),
            false => TurnChanges::Fields(self.by.clone(), fields),
        };
        Ended { effects, changes: (turn, changes), later }
    }
}

/// What a turn has come to.
pub(super) struct Ended {
    pub(super) effects: Effects<Named, Body>,
    pub(super) changes: (TurnId, TurnChanges<Named>),
    pub(super) later: Vec<Later>,
}

/// The arguments of a message, as a payload.
pub(super) fn encoded<I: Interface>(message: &I::Message) -> Result<Bytes, Refusal> {
    let mut out = BytesMut::new();
    I::encode(message, &mut out).map_err(|error| Refusal::Unsendable { message: error.to_string() })?;
    Ok(out.freeze())
}

/// How many bytes a message has, about.
pub(super) fn letter_size(letter: &Letter) -> usize {
    size(&letter.body) + letter.to.key.len() + letter.from.as_ref().map_or(0, |from| from.key.len())
}

fn size(body: &Body) -> usize {
    match body {
        Body::Call { method, arguments } => method.len() + arguments.0.len(),
        Body::Reply { payload, .. } => payload.0.len(),
    }
}

impl fmt::Debug for Takings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Takings").field("by", &self.by).finish_non_exhaustive()
    }
}
