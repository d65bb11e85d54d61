//! How an actor's fields are loaded, and what a turn has changed of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use greenroom_reliable::fields::{Change, FieldError, Part};
use greenroom_reliable::ledger::{FieldChanges, StoredField};

use crate::actor::cx::Cx;
use crate::shard::Shard;
use crate::state::StateError;

/// An actor whose fields can be kept in a journal: `#[derive(Actor)]` implements it where all fields but those marked
/// `#[volatile]` are serde values, or of the types [`Register`](super::Register), [`Map`](super::Map),
/// [`Queue`](super::Queue) and [`Set`](super::Set).
#[diagnostic::on_unimplemented(
    message = "the fields of `{Self}` cannot be kept in a journal",
    note = "write `#[derive(Actor)]` above `struct {Self}`, derive `Serialize` and `Deserialize` for its fields' types, and \
            mark those that are not to be kept `#[volatile]`"
)]
pub trait Kept {
    /// The fields that are kept, by name.
    fn kept(&mut self) -> Vec<(&'static str, Part<'_>)>;
}

/// What is known of an activation's fields in the journal.
#[derive(Default)]
pub(crate) struct Memory(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// What was last written of the fields that are written whole.
    whole: BTreeMap<&'static str, Bytes>,
    /// Fields and entries that there are.
    entries: BTreeSet<(String, String)>,
}

/// Makes `actor` what the journal holds of it.
///
/// # Errors
/// [`StateError::NotLoaded`].
#[doc(hidden)]
pub fn load<A: Kept>(cx: &Cx, actor: &mut A) -> Result<(), StateError> {
    let stored = Shard::with(|shard| shard.and_then(|shard| shard.hall().take_stored(cx.id()))).unwrap_or_default();
    let Some(state) = &cx.state else { return Ok(()) };
    let mut known = state.memory.0.lock().unwrap_or_else(PoisonError::into_inner);
    known
        .take_in(actor, &stored)
        .map_err(|(field, error)| StateError::not_loaded(&format!("{}.{field}", cx.id()), error))
}

/// Gives what the current turn has changed to its takings.
///
/// # Errors
/// [`StateError::NotSaved`]: a value has no encoding; the turn has failed.
#[doc(hidden)]
pub fn collect<A: Kept>(cx: &Cx, actor: &mut A) -> Result<(), StateError> {
    let baggage = Shard::with(|shard| shard.and_then(Shard::baggage));
    let (Some(takings), Some(state)) = (baggage.as_ref().and_then(|baggage| baggage.takings.as_ref()), &cx.state)
    else {
        return Ok(());
    };
    let mut known = state.memory.0.lock().unwrap_or_else(PoisonError::into_inner);
    let changed = known.changes(actor);
    let changed = changed.map_err(|(field, error)| StateError::not_saved(&format!("{}.{field}", cx.id()), error))?;
    let entries = if takings.halts() { known.entries.iter().cloned().collect() } else { Vec::new() };
    takings.put(changed, entries);
    Ok(())
}

impl Known {
    fn take_in<A: Kept>(&mut self, actor: &mut A, stored: &[StoredField]) -> Result<(), (&'static str, FieldError)> {
        let names =
            stored.iter().flat_map(|(field, entries)| entries.iter().map(|(entry, _)| (field.clone(), entry.clone())));
        self.entries = names.collect();
        for (name, part) in actor.kept() {
            let found = stored.iter().find(|(field, _)| field == name).map(|(_, entries)| entries.as_slice());
            match part {
                Part::Entries(field) => field.load(found.unwrap_or_default()).map_err(|error| (name, error))?,
                Part::Whole(whole) => {
                    if let Some((_, value)) = found.and_then(<[_]>::first) {
                        whole.read(value).map_err(|error| (name, error))?;
                        self.whole.insert(name, value.clone());
                    }
                }
            }
        }
        Ok(())
    }

    fn changes<A: Kept>(&mut self, actor: &mut A) -> Result<Vec<FieldChanges>, (&'static str, FieldError)> {
        let mut changed = Vec::new();
        for (name, part) in actor.kept() {
            let changes = match part {
                Part::Entries(field) => field.changes().map_err(|error| (name, error))?,
                Part::Whole(whole) => {
                    let value = whole.write().map_err(|error| (name, error))?;
                    if self.whole.get(name) == Some(&value) {
                        continue;
                    }
                    self.whole.insert(name, value.clone());
                    vec![Change { entry: String::new(), value: Some(value) }]
                }
            };
            for Change { entry, value } in &changes {
                let entry = (name.to_owned(), entry.clone());
                if value.is_some() {
                    self.entries.insert(entry)
                } else {
                    self.entries.remove(&entry)
                };
            }
            if !changes.is_empty() {
                changed.push(FieldChanges { field: name.to_owned(), changes });
            }
        }
        Ok(changed)
    }
}
