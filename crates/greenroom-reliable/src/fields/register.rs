//! One value.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::change::{decode, encode};
use super::{Change, Field, FieldError};

/// One value, written when it was changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Register<T> {
    value: T,
    changed: bool,
}

impl<T> Register<T> {
    /// A register that holds `value`, of which nothing is written yet.
    pub fn new(value: T) -> Self {
        Self { value, changed: false }
    }

    /// The value.
    pub fn get(&self) -> &T {
        &self.value
    }

    /// Puts `value` in the place of the one before.
    pub fn set(&mut self, value: T) {
        *self.get_mut() = value;
    }

    /// The value, to be changed: it is written at the end of the turn.
    pub fn get_mut(&mut self) -> &mut T {
        self.changed = true;
        &mut self.value
    }
}

impl<T: Serialize + DeserializeOwned> Field for Register<T> {
    fn load(&mut self, entries: &[(String, Bytes)]) -> Result<(), FieldError> {
        if let Some((entry, value)) = entries.first() {
            self.value = decode(entry, value)?;
        }
        self.changed = false;
        Ok(())
    }

    fn changes(&mut self) -> Result<Vec<Change>, FieldError> {
        if !std::mem::take(&mut self.changed) {
            return Ok(Vec::new());
        }
        Ok(vec![Change { entry: String::new(), value: Some(encode(&self.value)?) }])
    }
}
