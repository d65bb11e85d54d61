//! Fields of reliable actors: they are in memory whole, and write only what a turn has changed.
//!
//! Each field is a small store of entries under short names. [`Field::load`] takes what the journal holds,
//! [`Field::changes`] gives what is different since it was asked last.

mod change;
mod map;
mod part;
mod queue;
mod register;
mod set;

use bytes::Bytes;

pub use change::{Change, FieldError};
pub use map::Map;
pub use part::{Part, Whole};
pub use queue::Queue;
pub use register::Register;
pub use set::Set;

/// A part of an actor's state that is written by entries.
pub trait Field {
    /// Takes in all its entries: name and value, in the order of the names.
    ///
    /// # Errors
    /// [`FieldError`] if an entry cannot be read.
    fn load(&mut self, entries: &[(String, Bytes)]) -> Result<(), FieldError>;

    /// What has changed since the last call, or since the field was loaded: each entry at most once.
    ///
    /// # Errors
    /// [`FieldError`] if a value cannot be written; the changes are then lost, and the turn has failed.
    fn changes(&mut self) -> Result<Vec<Change>, FieldError>;
}

#[cfg(test)]
mod tests;
