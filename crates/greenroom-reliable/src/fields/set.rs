//! Keys without values.

use std::borrow::Borrow;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Change, Field, FieldError, Map};

/// Values of which each is there once, in their order. What a turn inserts or removes is written one by one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set<T> {
    members: Map<T, ()>,
}

impl<T> Default for Set<T> {
    fn default() -> Self {
        Self { members: Map::default() }
    }
}

impl<T: Ord + Clone> Set<T> {
    /// Puts `value` in; whether it was not there before.
    pub fn insert(&mut self, value: T) -> bool {
        !self.members.contains_key(&value) && self.members.insert(value, ()).is_none()
    }

    /// Takes `value` away; whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.members.remove(value).is_some()
    }

    /// Takes everything away.
    pub fn clear(&mut self) {
        self.members.clear();
    }

    /// Whether `value` is there.
    pub fn contains<Q: Ord + ?Sized>(&self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.members.contains_key(value)
    }

    /// All values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.members.iter().map(|(value, ())| value)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl<T: Ord + Clone + Serialize + DeserializeOwned> Field for Set<T> {
    fn load(&mut self, entries: &[(String, Bytes)]) -> Result<(), FieldError> {
        self.members.load(entries)
    }

    fn changes(&mut self) -> Result<Vec<Change>, FieldError> {
        self.members.changes()
    }
}
