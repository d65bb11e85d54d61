//! The fields of an actor, whatever their types.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::change::{decode, encoded};
use super::{Field, FieldError};

/// One field of an actor's state.
pub enum Part<'a> {
    /// It knows itself what has changed.
    Entries(&'a mut (dyn Field + Send)),
    /// It is compared with what was last written, and written whole.
    Whole(&'a mut (dyn Whole + Send)),
}

/// A field that is written whole: any plain serde value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept in a journal",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it, or mark the field `#[volatile]`: each activation then \
            begins with its default"
)]
pub trait Whole {
    /// What is written of it; nothing if that is what was written `last`.
    ///
    /// # Errors
    /// [`FieldError`] if it has no encoding.
    fn write(&self, last: Option<&Bytes>) -> Result<Option<Bytes>, FieldError>;

    /// Becomes what was written.
    ///
    /// # Errors
    /// [`FieldError`] if that is not of the field's type.
    fn read(&mut self, written: &[u8]) -> Result<(), FieldError>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Whole for T {
    fn write(&self, last: Option<&Bytes>) -> Result<Option<Bytes>, FieldError> {
        encoded(self, |written| last.is_none_or(|last| last != written).then(|| Bytes::copy_from_slice(written)))
    }

    fn read(&mut self, written: &[u8]) -> Result<(), FieldError> {
        *self = decode("", written)?;
        Ok(())
    }
}
