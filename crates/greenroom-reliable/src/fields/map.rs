//! Values by keys.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::change::{decode, encode, name_of};
use super::{Change, Field, FieldError};

/// Values by keys, in the order of the keys. What a turn inserts, changes or removes is written entry by entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Map<K, V> {
    entries: BTreeMap<K, V>,
    changed: BTreeSet<K>,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), changed: BTreeSet::new() }
    }
}

impl<K: Ord + Clone, V> Map<K, V> {
    /// The value under `key`.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key)
    }

    /// The value under `key`, to be changed: it is written at the end of the turn.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (known, _) = self.entries.get_key_value(key)?;
        self.changed.insert(known.clone());
        self.entries.get_mut(key)
    }

    /// Puts `value` under `key`, and gives what was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.changed.insert(key.clone());
        self.entries.insert(key, value)
    }

    /// Takes away what is under `key`, and gives it.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (key, value) = self.entries.remove_entry(key)?;
        self.changed.insert(key);
        Some(value)
    }

    /// Takes everything away.
    pub fn clear(&mut self) {
        self.changed.extend(std::mem::take(&mut self.entries).into_keys());
    }

    /// Whether there is a value under `key`.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.entries.contains_key(key)
    }

    /// All keys and values, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<K, V> Field for Map<K, V>
where
    K: Ord + Clone + Serialize + DeserializeOwned,
    V: Serialize + DeserializeOwned,
{
    fn load(&mut self, entries: &[(String, Bytes)]) -> Result<(), FieldError> {
        self.changed.clear();
        self.entries = entries.iter().map(|(name, entry)| decode(name, entry)).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn changes(&mut self) -> Result<Vec<Change>, FieldError> {
        let change = |key: K| {
            let value = self.entries.get_key_value(&key).map(|entry| encode(&entry)).transpose()?;
            Ok(Change { entry: name_of(&key)?, value })
        };
        std::mem::take(&mut self.changed).into_iter().map(change).collect()
    }
}
