//! An actor in the directory: in 16 bytes, as there may be millions, each in the tables of its host and of its range's owner.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::actor::key::{ActorId, Key, Kind};

/// An actor in the directory: compared by its hash first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Entry {
    /// The upper bits of the hash, which say its range, and the number of its kind.
    pub(super) word: u64,
    key: Key,
}

impl Entry {
    pub(crate) fn new(id: ActorId) -> Self {
        Self::hashed(&id, id.stable_hash())
    }

    /// That of an actor whose hash is known.
    pub(super) fn hashed(id: &ActorId, hash: u64) -> Self {
        Self { word: (hash & HASH) | u64::from(id.kind.number()), key: id.key.clone() }
    }

    /// Comes before all actors of this hash, and is none: no actor has this key.
    pub(super) fn before(hash: u64) -> Self {
        Self { word: hash & HASH, key: Key::from("") }
    }

    pub(crate) fn id(&self) -> ActorId {
        ActorId::unchecked(self.kind(), self.key.clone())
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::of_number(self.word as u16)
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Whether its hash may be this one: all that is kept of it is as here.
    pub(super) fn may_hash_to(&self, hash: u64) -> bool {
        self.word & HASH == hash & HASH
    }

    /// The same on every node of every cluster.
    pub(crate) fn hash(&self) -> u64 {
        self.id().stable_hash()
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.id(), f)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.id().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ActorId::deserialize(deserializer).map(Self::new)
    }
}

/// The bits of a hash that are kept; below is the kind.
const HASH: u64 = !0xFFFF;

#[cfg(test)]
mod tests {
    use greenroom_protocols::directory::range_of;

    use super::*;

    #[test]
    fn an_entry_has_its_name_its_hash_and_its_range() {
        let id = ActorId::unchecked(Kind::intern("entry_test"), "one");
        let entry = Entry::new(id.clone());
        assert_eq!((entry.id(), entry.hash()), (id.clone(), id.stable_hash()));
        assert_eq!(range_of(entry.word), range_of(id.stable_hash()));
        assert!(entry.may_hash_to(id.stable_hash()) && !entry.may_hash_to(!id.stable_hash()));
        assert!(Entry::before(id.stable_hash()) < entry);
        assert_ne!(entry, Entry::new(ActorId::unchecked(Kind::intern("entry_test_other"), "one")));
        assert_eq!(size_of::<Entry>(), 16);
    }
}
