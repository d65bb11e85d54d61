//! How an actor's fields are loaded, and what a turn has changed of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use greenroom_reliable::fields::{Change, FieldError, Part, Whole};
use greenroom_reliable::ledger::{FieldChanges, StoredField};

use super::machine::STATE;
use super::takings::takings;
use crate::actor::cx::Cx;
use crate::shard::seed::Seed;
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

/// Asserts that an actor's fields can be kept, where the actor is named.
#[doc(hidden)]
pub const fn kept<A: Kept>() {}

/// What is known of an activation's fields in the journal.
#[derive(Default)]
pub(super) struct Memory(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// What the journal holds, until it is loaded.
    unread: Vec<StoredField>,
    /// What was last written of the fields that are written whole.
    whole: BTreeMap<&'static str, Bytes>,
    /// Entries that there are, by fields.
    entries: BTreeMap<Cow<'static, str>, BTreeSet<String>>,
    /// Of a state machine: its states, and the one that it is in.
    states: &'static [&'static str],
    state: Option<Arc<str>>,
}

impl Memory {
    /// That of the actor whose `cx` it is, once its fields are loaded.
    pub(super) fn of(cx: &Cx) -> Option<&Self> {
        cx.state.as_ref()?.memory.get()?.downcast_ref()
    }

    /// What an activation begins with of which the journal holds `stored`.
    pub(super) fn seed(stored: Vec<StoredField>) -> Seed {
        Seed::Kept(Box::new(Self(Mutex::new(Known { unread: stored, ..Known::default() }))))
    }

    fn begin(cx: &Cx) -> Option<&Self> {
        cx.state.as_ref()?.memory.get_or_init(|| Box::<Self>::default()).downcast_ref()
    }

    /// What the journal holds, once.
    pub(super) fn take(&self) -> Vec<StoredField> {
        std::mem::take(&mut self.known().unread)
    }

    pub(super) fn states(&self) -> &'static [&'static str] {
        self.known().states
    }

    pub(super) fn state(&self) -> Option<Arc<str>> {
        self.known().state.clone()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes `actor` what the journal holds of it; `states` are those of a state machine.
///
/// # Errors
/// [`StateError::NotLoaded`].
#[doc(hidden)]
pub fn load<A: Kept>(cx: &Cx, actor: &mut A, states: &'static [&'static str]) -> Result<(), StateError> {
    let Some(memory) = Memory::begin(cx) else { return Ok(()) };
    let mut known = memory.known();
    let stored = std::mem::take(&mut known.unread);
    known.states = states;
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
    let (Some(takings), Some(memory)) = (takings(), Memory::of(cx)) else { return Ok(()) };
    if takings.fate().is_some() {
        return Ok(());
    }
    let mut known = memory.known();
    // What a turn removes before it halts is in the journal still.
    let mut entries = if takings.halts() { known.all_entries() } else { BTreeSet::new() };
    let changed = known.changes(actor).and_then(|mut changed| {
        changed.extend(known.jump(takings.jumps_to()).map_err(|error| (STATE, error))?);
        Ok(changed)
    });
    let changed = changed.map_err(|(field, error)| StateError::not_saved(&format!("{}.{field}", cx.id()), error))?;
    if takings.halts() {
        entries.extend(known.all_entries());
    }
    takings.put(changed, entries.into_iter().collect());
    Ok(())
}

impl Known {
    /// Fields and entries that there are.
    fn all_entries(&self) -> BTreeSet<(String, String)> {
        let of = |(field, entries): (&Cow<'static, str>, &BTreeSet<String>)| {
            let field = field.to_string();
            entries.iter().map(move |entry| (field.clone(), entry.clone())).collect::<Vec<_>>()
        };
        self.entries.iter().flat_map(of).collect()
    }

    fn take_in<A: Kept>(&mut self, actor: &mut A, stored: &[StoredField]) -> Result<(), (&'static str, FieldError)> {
        let names = |entries: &[(String, Bytes)]| entries.iter().map(|(entry, _)| entry.clone()).collect();
        self.entries = stored.iter().map(|(field, entries)| (field.clone().into(), names(entries))).collect();
        let mut state: String = self.states.first().copied().unwrap_or_default().to_owned();
        if let Some((_, entries)) = stored.iter().find(|(field, _)| field == STATE)
            && let Some((_, value)) = entries.first()
        {
            Whole::read(&mut state, value).map_err(|error| (STATE, error))?;
        }
        self.state = Some(state.into());
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

    /// Goes to another machine state: what is written of that.
    fn jump(&mut self, to: Option<Arc<str>>) -> Result<Option<FieldChanges>, FieldError> {
        let Some(to) = to.filter(|to| self.state.as_ref() != Some(to)) else { return Ok(None) };
        let value = Whole::write(&to.to_string(), None)?;
        self.state = Some(to);
        self.entries.entry(STATE.into()).or_default().insert(String::new());
        let changes = vec![Change { entry: String::new(), value }];
        Ok(Some(FieldChanges { field: STATE.into(), changes }))
    }

    fn changes<A: Kept>(&mut self, actor: &mut A) -> Result<Vec<FieldChanges>, (&'static str, FieldError)> {
        let mut changed = Vec::new();
        for (name, part) in actor.kept() {
            let changes = match part {
                Part::Entries(field) => field.changes().map_err(|error| (name, error))?,
                Part::Whole(whole) => {
                    let written = whole.write(self.whole.get(name)).map_err(|error| (name, error))?;
                    let Some(value) = written else { continue };
                    self.whole.insert(name, value.clone());
                    vec![Change { entry: String::new(), value: Some(value) }]
                }
            };
            if changes.is_empty() {
                continue;
            }
            let entries = self.entries.entry(name.into()).or_default();
            for Change { entry, value } in &changes {
                match value {
                    Some(_) if entries.contains(entry) => {}
                    Some(_) => _ = entries.insert(entry.clone()),
                    None => _ = entries.remove(entry),
                }
            }
            changed.push(FieldChanges { field: name.into(), changes });
        }
        Ok(changed)
    }
}
