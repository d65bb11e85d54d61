//! A call's extension block: what only some calls carry, each part under a tag. A reader skips the tags that it does
//! not know.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::error::FrameError;
use crate::limit::{EXTENSION_FIELDS_MAX, EXTENSION_LEN_MAX};
use crate::reader::Reader;
use crate::varint::Head;

/// The tags of a call's extension block. One is never used again for something else.
pub mod tag {
    /// The request context: key-value pairs that flow along calls.
    pub const CONTEXT: u64 = 1;
    /// W3C trace context.
    pub const TRACE: u64 = 2;
    /// The version of the interface that the caller speaks.
    pub const INTERFACE_VERSION: u64 = 3;
    /// What the caller takes of a stream before it gives more room.
    pub const STREAM_WINDOW: u64 = 4;
    /// Where the call's time went so far.
    pub const TIME_SPENT: u64 = 5;
    /// The tick of a reminder.
    pub const REMINDER_TICK: u64 = 6;
    /// On whose behalf the call is made.
    pub const PRINCIPAL: u64 = 7;
    /// The node that the call's grant is for, if that is neither who gets the call nor its owner: 8 bytes, little-endian.
    pub const GRANTED_HOST: u64 = 8;
    /// The cluster that the call came in at, if that is not the receiver's: 2 bytes, little-endian.
    pub const CALLING_CLUSTER: u64 = 12;
    /// Who has named whom the call is made on behalf of, if not the cluster's own configuration: UTF-8 to the field's end.
    pub const PRINCIPAL_ISSUER: u64 = 13;
    /// The idempotency key of a call that a host makes, for its node alone: UTF-8 to the field's end.
    pub const IDEMPOTENCY_KEY: u64 = 14;
    /// The seat whose hook makes a call of a host that no turn makes, for its node alone: a varint.
    pub const CALLING_SEAT: u64 = 15;
}

/// A validated extension block in shared bytes.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Extension(Bytes);

impl Extension {
    /// The block of a call that carries nothing.
    pub const EMPTY: Self = Self(Bytes::new());

    /// The block, borrowed.
    #[inline]
    pub fn view(&self) -> ExtensionView<'_> {
        ExtensionView(&self.0)
    }

    /// `view` as a slice of `frame`, which it must lie in.
    #[inline]
    pub(crate) fn within(frame: &Bytes, view: ExtensionView<'_>) -> Self {
        if view.is_empty() { Self::EMPTY } else { Self(frame.slice_ref(view.0)) }
    }
}

/// A validated extension block that lies in someone else's bytes: fields of rising tags, each `tag`, `length` (varints)
/// and bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ExtensionView<'a>(&'a [u8]);

impl<'a> ExtensionView<'a> {
    /// The block of a call that carries nothing.
    pub const EMPTY: Self = Self(&[]);

    /// Checks that `bytes` are whole fields, of rising tags, within the bounds.
    ///
    /// # Errors
    /// [`FrameError`] if they are not.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        if bytes.len() > EXTENSION_LEN_MAX {
            let (value, max) = (bytes.len() as u64, EXTENSION_LEN_MAX as u64);
            return Err(FrameError::OutOfBounds { field: "call extension", value, max });
        }
        let mut reader = Reader::new(bytes);
        let (mut count, mut last) = (0, None);
        while !reader.is_empty() {
            count += 1;
            if count > EXTENSION_FIELDS_MAX {
                return Err(ExtensionError::TooMany.into());
            }
            let tag = reader.u64("extension tag")?;
            if last.is_some_and(|last| tag <= last) {
                return Err(ExtensionError::OutOfOrder { tag }.into());
            }
            reader.bytes("extension field", EXTENSION_LEN_MAX)?;
            last = Some(tag);
        }
        Ok(Self(bytes))
    }

    /// Whether the call carries nothing.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The encoded fields.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The fields by tag, in rising order.
    pub fn fields(self) -> Fields<'a> {
        Fields(Reader::new(self.0))
    }

    /// What is under `tag`.
    pub fn find(self, tag: u64) -> Option<&'a [u8]> {
        self.fields().find_map(|(found, bytes)| (found == tag).then_some(bytes))
    }
}

/// The fields of an [`ExtensionView`].
pub struct Fields<'a>(Reader<'a>);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // The view is validated, so an error can only be its end.
        let tag = self.0.u64("extension tag").ok()?;
        let bytes = self.0.bytes("extension field", EXTENSION_LEN_MAX).ok()?;
        Some((tag, bytes))
    }
}

/// Writes an extension block field by field.
#[derive(Debug, Default)]
pub struct ExtensionWriter {
    bytes: BytesMut,
    count: usize,
    last: Option<u64>,
}

impl ExtensionWriter {
    /// An empty block.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a field.
    ///
    /// # Errors
    /// [`ExtensionError`]: the tag does not rise, or the block is full. The block is as it was.
    pub fn put(&mut self, tag: u64, field: &[u8]) -> Result<(), ExtensionError> {
        if self.last.is_some_and(|last| tag <= last) {
            return Err(ExtensionError::OutOfOrder { tag });
        }
        if self.count == EXTENSION_FIELDS_MAX {
            return Err(ExtensionError::TooMany);
        }
        let mut head = Head::bare();
        head.varint(tag);
        head.varint(field.len() as u64);
        let len = self.bytes.len() + head.len() + field.len();
        if len > EXTENSION_LEN_MAX {
            return Err(ExtensionError::TooLong { len });
        }
        self.bytes.put_slice(head.as_slice());
        self.bytes.put_slice(field);
        self.count += 1;
        self.last = Some(tag);
        Ok(())
    }

    /// The block as it is now.
    pub fn view(&self) -> ExtensionView<'_> {
        ExtensionView(&self.bytes)
    }

    /// The whole block.
    pub fn finish(self) -> Extension {
        Extension(self.bytes.freeze())
    }
}

/// Why a field cannot be written, or a block is none. Nothing was sent.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// A block has too many fields.
    #[error("a call's extension has more than {EXTENSION_FIELDS_MAX} fields; carry less")]
    TooMany,
    /// A block is too long.
    #[error("a call's extension of {len} bytes is over the limit of {EXTENSION_LEN_MAX}; carry less context")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A tag comes twice, or after a higher one.
    #[error("extension tag {tag} comes twice or out of order; write the fields once, by rising tag")]
    OutOfOrder {
        /// The tag.
        tag: u64,
    },
}
