//! The call chain: which actors wait for this call, outermost first. A call to one of them would deadlock.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::error::FrameError;
use crate::limit::{CHAIN_LEN_MAX, CHAIN_MAX, KEY_LEN_MAX, NAME_LEN_MAX};
use crate::reader::Reader;

/// A validated chain in shared bytes. It is immutable; [`Chain::extended`] makes a longer one.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Chain(Bytes);

impl Chain {
    /// The chain of a call that no actor made.
    pub const EMPTY: Self = Self(Bytes::new());

    /// A chain that came as bytes.
    ///
    /// # Errors
    /// [`FrameError`] if they are not a chain.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, FrameError> {
        ChainView::parse(&bytes)?;
        Ok(Self(bytes))
    }

    /// This chain and one entry more: the actor that makes the next call.
    ///
    /// # Errors
    /// [`ChainError::TooDeep`] when the chain is full; [`ChainError::TooLong`] when the kind or the key is.
    pub fn extended(&self, kind: &str, key: &str) -> Result<Self, ChainError> {
        self.view().extended(kind, key)
    }

    /// The chain, borrowed.
    #[inline]
    pub fn view(&self) -> ChainView<'_> {
        ChainView(&self.0)
    }

    /// `view` as a slice of `frame`, which it must lie in.
    #[inline]
    pub(crate) fn within(frame: &Bytes, view: ChainView<'_>) -> Self {
        if view.is_empty() { Self::EMPTY } else { Self(frame.slice_ref(view.0)) }
    }
}

/// A validated chain that lies in someone else's bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ChainView<'a>(&'a [u8]);

impl<'a> ChainView<'a> {
    /// The chain of a call that no actor made.
    pub const EMPTY: Self = Self(&[]);

    /// Checks that `bytes` are whole entries within the bounds.
    ///
    /// # Errors
    /// [`FrameError`] if they are not.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        if bytes.len() > CHAIN_LEN_MAX {
            return Err(ChainError::TooDeep.into());
        }
        let mut reader = Reader::new(bytes);
        let mut depth = 0;
        while !reader.is_empty() {
            if depth == CHAIN_MAX {
                return Err(ChainError::TooDeep.into());
            }
            reader.text("chain kind", NAME_LEN_MAX)?;
            reader.text("chain key", KEY_LEN_MAX)?;
            depth += 1;
        }
        Ok(Self(bytes))
    }

    /// Whether no actor waits for this call.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The encoded entries.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The (kind, key) pairs, outermost first.
    pub fn entries(self) -> Entries<'a> {
        Entries(Reader::new(self.0))
    }

    /// Whether the actor (`kind`, `key`) waits for this call.
    pub fn contains(self, kind: &str, key: &str) -> bool {
        self.entries().any(|entry| entry == (kind, key))
    }

    /// This chain and one entry more: the actor that makes the next call.
    ///
    /// # Errors
    /// As for [`Chain::extended`].
    pub fn extended(self, kind: &str, key: &str) -> Result<Chain, ChainError> {
        for (field, text, max) in [("kind", kind, NAME_LEN_MAX), ("key", key, KEY_LEN_MAX)] {
            if text.len() > max {
                return Err(ChainError::TooLong { field, len: text.len(), max });
            }
        }
        if self.entries().count() >= CHAIN_MAX {
            return Err(ChainError::TooDeep);
        }
        let mut bytes = BytesMut::with_capacity(self.0.len() + kind.len() + key.len() + 4);
        bytes.put_slice(self.0);
        for text in [kind, key] {
            put_len(&mut bytes, text.len());
            bytes.put_slice(text.as_bytes());
        }
        Ok(Chain(bytes.freeze()))
    }

    /// A copy that owns its bytes.
    pub fn to_chain(self) -> Chain {
        Chain(Bytes::copy_from_slice(self.0))
    }
}

/// The entries of a [`ChainView`].
pub struct Entries<'a>(Reader<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        // The view is validated, so an error can only be its end.
        let kind = self.0.text("chain kind", NAME_LEN_MAX).ok()?;
        let key = self.0.text("chain key", KEY_LEN_MAX).ok()?;
        Some((kind, key))
    }
}

/// Why a chain cannot grow, or is none. The call was not sent; do not retry it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ChainError {
    /// More than [`CHAIN_MAX`] actors wait for each other.
    #[error("more than {CHAIN_MAX} actors wait for each other; use one-way messages to break the chain")]
    TooDeep,
    /// A kind or key is over its limit.
    #[error("{field} of {len} bytes is over the limit of {max}; use a shorter one")]
    TooLong {
        /// The part of the entry.
        field: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The limit.
        max: usize,
    },
}

/// Lengths here are below 2^14: at most two bytes.
fn put_len(bytes: &mut BytesMut, len: usize) {
    if len < 0x80 {
        bytes.put_u8(len as u8);
    } else {
        bytes.put_u8(len as u8 | 0x80);
        bytes.put_u8((len >> 7) as u8);
    }
}
