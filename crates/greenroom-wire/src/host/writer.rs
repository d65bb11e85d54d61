//! Appends a frame field by field.

use bytes::{BufMut, BytesMut};

use crate::error::EncodeError;
use crate::varint::{Head, LENGTH_LEN};

/// A frame under construction at the end of a batch.
pub(super) struct Writer<'b> {
    pub(super) batch: &'b mut BytesMut,
}

impl Writer<'_> {
    pub(super) fn u8(&mut self, value: u8) -> &mut Self {
        self.batch.put_u8(value);
        self
    }

    pub(super) fn varint(&mut self, value: u64) -> &mut Self {
        let mut head = Head::bare();
        head.varint(value);
        self.batch.put_slice(head.as_slice());
        self
    }

    /// Bytes without a length: the frame's rest.
    pub(super) fn rest(&mut self, bytes: &[u8]) -> &mut Self {
        self.batch.put_slice(bytes);
        self
    }

    pub(super) fn bytes(&mut self, field: &'static str, bytes: &[u8], max: usize) -> Result<&mut Self, EncodeError> {
        if bytes.len() > max {
            return Err(EncodeError::TextTooLong { field, len: bytes.len(), max });
        }
        Ok(self.varint(bytes.len() as u64).rest(bytes))
    }

    pub(super) fn text(&mut self, field: &'static str, text: &str, max: usize) -> Result<&mut Self, EncodeError> {
        self.bytes(field, text.as_bytes(), max)
    }
}

/// Appends what `write` does as one frame of `frame_type`; leaves the batch as it was on an error.
pub(super) fn frame(
    batch: &mut BytesMut,
    frame_len_max: u32,
    frame_type: u8,
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = batch.len();
    batch.put_slice(Head::new(frame_type).as_slice());
    let result = write(&mut Writer { batch }).and_then(|()| {
        let len = batch.len() - start - LENGTH_LEN;
        let within = u32::try_from(len).ok().filter(|len| *len <= frame_len_max);
        let len = within.ok_or(EncodeError::FrameTooLong { len, max: frame_len_max })?;
        batch[start..start + LENGTH_LEN].copy_from_slice(&len.to_le_bytes());
        Ok(())
    });
    if result.is_err() {
        batch.truncate(start);
    }
    result
}
