//! States of actors in hosts: the node keeps them, hosts get them with a seat and send changes with a turn's end.

use bytes::Bytes;
use greenroom_reliable::fields::Change;
use greenroom_reliable::ledger::FieldChanges;
use greenroom_wire::codec;
use greenroom_wire::host::{Fields, FieldsWriter, Form};

use super::kind::Foreign;
use crate::actor::cx::Cx;
use crate::actor::error::{Doubt, Refusal};
use crate::actor::version_gap::VersionGap;
use crate::reliable::hosted::Journaled;
use crate::state::{Slot, StateError};

/// The states of one actor.
#[derive(Default)]
pub(crate) struct States {
    all: Vec<Kept>,
}

/// A state, as the store has it.
struct Kept {
    name: String,
    /// The version of its type that whoever wrote it last, or may write it first, has said.
    version: u8,
    slot: Slot,
    /// Its payload; `None` if there is none yet.
    value: Option<Bytes>,
}

/// The changes that a frame brings: of states in a store, each as a whole, or of fields in a journal.
pub(super) fn changes(fields: &Fields<'_>) -> Vec<FieldChanges> {
    let change = |entry: &str, value: Option<&[u8]>| Change {
        entry: entry.to_owned(),
        value: value.map(Bytes::copy_from_slice),
    };
    let of = |(name, form): (&str, Form<'_>)| {
        let changes = match form {
            Form::Whole(value) => vec![change("", Some(value))],
            Form::Entries(entries) => entries.iter().map(|(entry, value)| change(entry, value)).collect(),
        };
        FieldChanges { field: name.to_owned().into(), changes }
    };
    fields.iter().map(of).collect()
}

/// What a host is given of an actor with its seat.
#[derive(Default)]
pub(super) struct Given {
    pub(super) fields: FieldsWriter,
    /// The state that a state machine is in, if it has ever jumped.
    pub(super) state: Option<String>,
}

/// What became of changes.
pub(super) enum Stated {
    Saved,
    Unsaved(Doubt),
}

impl Foreign {
    /// Whether anything of the actor is stored.
    pub(super) fn is_kept(&self) -> bool {
        !self.states.all.is_empty() || self.journaled.is_some()
    }

    /// What its host is given of it.
    pub(super) fn given(&self) -> Given {
        Given { fields: self.fields(), state: self.journaled.as_ref().and_then(Journaled::state) }
    }

    fn fields(&self) -> FieldsWriter {
        let mut fields = FieldsWriter::new();
        for (name, entries) in self.journaled.iter().flat_map(Journaled::fields) {
            // What is over a bound here was so when its host wrote it.
            let _ = match entries.get("") {
                Some(value) if entries.len() == 1 => fields.whole(name, value),
                _ => fields.entries(name, entries.iter().map(|(entry, value)| (entry.as_str(), Some(&value[..])))),
            };
        }
        for Kept { name, value, .. } in &self.states.all {
            if let Some(value) = value {
                // Descriptions bound the names and their number.
                let _ = fields.whole(name, value);
            }
        }
        fields
    }

    /// Reads its states.
    ///
    /// # Errors
    /// A state cannot be read, or was written by a newer version than any host's.
    pub(super) async fn load(&mut self, cx: &Cx) -> Result<(), Refusal> {
        let Some(kind) = cx.port.node.kinds().foreign(cx.id.kind) else { return Ok(()) };
        if kind.said().options.reliable {
            self.journaled = Some(Journaled::of(cx));
            return Ok(());
        }
        let states = kind.said().description.states.clone();
        if !states.is_empty() {
            cx.enter_namespace().await.map_err(|message| Refusal::Activation { message })?;
        }
        self.states.all.clear();
        for state in states {
            let slot = Slot::default();
            let failed = |error: StateError| Refusal::Activation { message: error.to_string() };
            let site = cx.site(&state.name).map_err(|message| Refusal::Activation { message })?;
            let value = slot.load_bytes(cx, &site).await.map_err(failed)?;
            if let Some(value) = &value
                && let Ok(payload) = codec::parse(value)
                && payload.type_version > state.version
            {
                let node = (cx.port.node.name(), state.version);
                return Err(VersionGap::unread_of(&cx.id, &state.name, payload.type_version, node).into());
            }
            self.states.all.push(Kept { name: state.name, version: state.version, slot, value });
        }
        Ok(())
    }

    /// True if another activation has written one of its states.
    pub(super) async fn is_changed(&self, cx: &Cx) -> Result<bool, StateError> {
        for Kept { name, slot, .. } in &self.states.all {
            let site = cx.site(name).map_err(|why| StateError::not_loaded(name, why))?;
            if slot.is_changed(cx, &site).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes what a turn has changed. If it cannot, the activation ends: the next one reads what is stored.
    pub(super) async fn save(&mut self, cx: &Cx, changes: Vec<FieldChanges>) -> Stated {
        let stated = self.write(cx, changes).await;
        if let Stated::Unsaved(_) = stated {
            end_unsaved();
        }
        stated
    }

    async fn write(&mut self, cx: &Cx, changes: Vec<FieldChanges>) -> Stated {
        let kind = cx.port.node.kinds().foreign(cx.id.kind);
        for FieldChanges { field: name, mut changes } in changes {
            let unsaved = |message: String| Stated::Unsaved(Doubt::Unsaved { message });
            let whole = changes.pop().filter(|change| changes.is_empty() && change.entry.is_empty());
            let Some(value) = whole.and_then(|change| change.value) else {
                return unsaved(format!("the change of {name:?} comes by entries, and it is a state of a store"));
            };
            let Some(kept) = self.states.all.iter_mut().find(|kept| kept.name == name) else {
                return unsaved(format!("the kind's description names no state {name:?}"));
            };
            // The actor may have come to a host of a newer version since it was read, and never goes back (L23).
            let newest = || {
                kind.and_then(|kind| {
                    kind.said().description.states.iter().find(|state| state.name == name).map(|state| state.version)
                })
            };
            let version = match codec::parse(&value) {
                Ok(payload) => payload.type_version,
                Err(error) => return unsaved(format!("state {name:?} is no payload: {error}")),
            };
            if version != kept.version && !(kept.version..=newest().unwrap_or(kept.version)).contains(&version) {
                return unsaved(format!(
                    "state {name:?} was written as version {version}, and the description says {}",
                    newest().unwrap_or(kept.version)
                ));
            }
            let site = match cx.site(&name) {
                Ok(site) => site,
                Err(message) => return unsaved(message),
            };
            match kept.slot.save_bytes(cx, &site, &value).await {
                Ok(()) => (kept.value, kept.version) = (Some(value), version),
                // What is stored now counts, whatever it is.
                Err(error) => return unsaved(cx.note(error).to_string()),
            }
        }
        Stated::Saved
    }

    /// Removes a state from its store.
    pub(super) async fn clear(&mut self, cx: &Cx, name: &str) -> Result<(), Doubt> {
        let unsaved = |message: String| Doubt::Unsaved { message };
        let Some(kept) = self.states.all.iter_mut().find(|kept| kept.name == name) else {
            return Err(unsaved(format!("the kind's description names no state {name:?}")));
        };
        let site = cx.site(name).map_err(unsaved)?;
        kept.slot.clear(cx, &site).await.map_err(|error| unsaved(cx.note(error).to_string()))?;
        kept.value = None;
        Ok(())
    }

    /// A state as it was last read or written; its payload, empty if there is none.
    pub(super) fn value(&self, name: &str) -> Option<Bytes> {
        let kept = self.states.all.iter().find(|kept| kept.name == name)?;
        Some(kept.value.clone().unwrap_or_default())
    }
}

/// Ends the current turn's activation: the next one reads what is stored.
fn end_unsaved() {
    crate::shard::Shard::with(|shard| {
        if let Some(shard) = shard {
            shard.end_current(crate::actor::interface::Why::Unsaved);
        }
    });
}
