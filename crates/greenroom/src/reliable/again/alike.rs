//! Whether two runs of a turn come to the same: by what is meant, as hash maps have another order in each run.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use greenroom_protocols::delivery::Outgoing;
use greenroom_reliable::fields::Change;
use greenroom_reliable::ledger::{FieldChanges, StoredField, TurnChanges};
use greenroom_wire::codec;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::super::cast::unpacked;
use super::super::name::{Body, Named};

/// What the journal will hold of an actor when all turns that have ended are committed.
#[derive(Clone, Default)]
pub(in crate::reliable) struct Fields(BTreeMap<String, BTreeMap<String, Bytes>>);

impl Fields {
    pub(in crate::reliable) fn of(stored: &[StoredField]) -> Self {
        Self(stored.iter().map(|(field, entries)| (field.clone(), entries.iter().cloned().collect())).collect())
    }

    pub(in crate::reliable) fn stored(&self) -> Vec<StoredField> {
        self.0.iter().map(|(field, entries)| (field.clone(), entries.clone().into_iter().collect())).collect()
    }

    pub(in crate::reliable) fn change(&mut self, changes: &TurnChanges<Named>) {
        match changes {
            TurnChanges::Halted(..) => self.0.clear(),
            TurnChanges::Fields(_, changed) => {
                for FieldChanges { field, changes } in changed {
                    // Names are copied for what is new alone.
                    if !self.0.contains_key(&**field) {
                        self.0.insert(field.to_string(), BTreeMap::new());
                    }
                    let Some(entries) = self.0.get_mut(&**field) else { continue };
                    for Change { entry, value } in changes {
                        match (value, entries.get_mut(entry)) {
                            (Some(value), Some(known)) => known.clone_from(value),
                            (Some(value), None) => _ = entries.insert(entry.clone(), value.clone()),
                            (None, _) => _ = entries.remove(entry),
                        }
                    }
                }
            }
        }
    }

    /// The first field that is another one after `second` than after `first`.
    pub(super) fn other(&self, first: &TurnChanges<Named>, second: &TurnChanges<Named>) -> Option<String> {
        if first == second {
            return None;
        }
        let after = |changes| {
            let mut after = self.clone();
            after.change(changes);
            after.0
        };
        let (first, second) = (after(first), after(second));
        let none = BTreeMap::new();
        let mut names = first.keys().chain(second.keys());
        names.find(|name| !same(first.get(*name).unwrap_or(&none), second.get(*name).unwrap_or(&none))).cloned()
    }
}

fn same(first: &BTreeMap<String, Bytes>, second: &BTreeMap<String, Bytes>) -> bool {
    first.len() == second.len()
        && first.iter().zip(second).all(|((one, value), (other, wanted))| one == other && payloads(value, wanted))
}

/// Whether two messages are the same, traces apart.
pub(super) fn messages(first: &Outgoing<Named, Body>, second: &Outgoing<Named, Body>) -> bool {
    let (one, other) = (&first.envelope, &second.envelope);
    let heads = (first.to, first.delivery, &one.to, one.birth, one.creates)
        == (second.to, second.delivery, &other.to, other.birth, other.creates);
    heads && bodies(&one.body, &other.body)
}

pub(super) fn bodies(first: &Body, second: &Body) -> bool {
    match (first, second) {
        (
            Body::Call { method, arguments, carried },
            Body::Call { method: other, arguments: wanted, carried: carries },
        ) => {
            let contexts = || unpacked(carried.as_ref()).context == unpacked(carries.as_ref()).context;
            method == other && payloads(&arguments.0, &wanted.0) && contexts()
        }
        (Body::Reply { status, payload }, Body::Reply { status: other, payload: wanted }) => {
            status == other && payloads(&payload.0, &wanted.0)
        }
        (Body::Output(payload), Body::Output(wanted)) => {
            let plain = |output: &Bytes| serde_json::from_slice::<Plain>(output).ok();
            payload == wanted || plain(&payload.0).is_some_and(|meant| Some(meant) == plain(&wanted.0))
        }
        (first, second) => first == second,
    }
}

/// Whether two payloads mean the same.
fn payloads(first: &Bytes, second: &Bytes) -> bool {
    let plain = |payload: &Bytes| codec::decode::<Plain>(payload).ok();
    first == second || plain(first).is_some_and(|meant| Some(meant) == plain(second))
}

/// A value of any type. The entries of its maps have one order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Plain {
    Nothing,
    Bool(bool),
    Whole(i128),
    /// By its bits.
    Real(u64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Plain>),
    Map(BTreeMap<Plain, Plain>),
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyPlain)
    }
}

struct AnyPlain;

impl<'de> Visitor<'de> for AnyPlain {
    type Value = Plain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Plain, E> {
        Ok(Plain::Nothing)
    }

    fn visit_none<E: Error>(self) -> Result<Plain, E> {
        Ok(Plain::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Plain, D::Error> {
        Plain::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Plain, D::Error> {
        Plain::deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Plain, E> {
        Ok(Plain::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Plain, E> {
        Ok(Plain::Whole(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Plain, E> {
        Ok(Plain::Whole(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Plain, E> {
        Ok(Plain::Real(value.to_bits()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Plain, E> {
        Ok(Plain::Text(value.to_owned()))
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<Plain, E> {
        Ok(Plain::Bytes(value.to_vec()))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Plain, S::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Plain::List(list))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut entries: M) -> Result<Plain, M::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry()? {
            map.insert(key, value);
        }
        Ok(Plain::Map(map))
    }
}
