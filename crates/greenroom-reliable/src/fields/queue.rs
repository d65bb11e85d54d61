//! Values in the order in which they came.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::change::{decode, encode};
use super::{Change, Field, FieldError};

/// Values in the order in which they came: in at the back, out at the front. Each is written once, and removed once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Queue<T> {
    values: VecDeque<T>,
    /// The number of the first value; the others follow.
    first: u64,
    /// Numbers whose entries differ from what is written.
    changed: BTreeSet<u64>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { values: VecDeque::new(), first: 0, changed: BTreeSet::new() }
    }
}

impl<T> Queue<T> {
    /// Puts `value` at the back.
    pub fn push(&mut self, value: T) {
        self.changed.insert(self.first + self.values.len() as u64);
        self.values.push_back(value);
    }

    /// Takes the value at the front.
    pub fn pop(&mut self) -> Option<T> {
        let value = self.values.pop_front()?;
        self.changed.insert(self.first);
        self.first += 1;
        Some(value)
    }

    /// The value at the front.
    pub fn front(&self) -> Option<&T> {
        self.values.front()
    }

    /// The value at the front, to be changed: it is written at the end of the turn.
    pub fn front_mut(&mut self) -> Option<&mut T> {
        let value = self.values.front_mut()?;
        self.changed.insert(self.first);
        Some(value)
    }

    /// Takes everything away.
    pub fn clear(&mut self) {
        while self.pop().is_some() {}
    }

    /// All values from the front on.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<T: Serialize + DeserializeOwned> Field for Queue<T> {
    fn load(&mut self, entries: &[(String, Bytes)]) -> Result<(), FieldError> {
        self.changed.clear();
        self.first = match entries.first() {
            Some((name, _)) => number_of(name)?,
            None => 0,
        };
        self.values = entries.iter().map(|(name, value)| decode(name, value)).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn changes(&mut self) -> Result<Vec<Change>, FieldError> {
        let change = |number: u64| {
            let value = number.checked_sub(self.first).and_then(|index| self.values.get(index as usize));
            Ok(Change { entry: format!("{number:016x}"), value: value.map(encode).transpose()? })
        };
        let changes = std::mem::take(&mut self.changed).into_iter().map(change).collect();
        if self.values.is_empty() {
            // As one that is loaded: nobody can tell from what is written which numbers there were.
            self.first = 0;
        }
        changes
    }
}

fn number_of(name: &str) -> Result<u64, FieldError> {
    u64::from_str_radix(name, 16).map_err(|error| FieldError::Unreadable {
        entry: name.to_owned(),
        reason: format!("its name is not a number: {error}"),
    })
}
