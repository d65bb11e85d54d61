//! UTF-8 in shared bytes.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

/// A string that shares the bytes of the frame it came in. Cloning and decoding copy nothing; keeping it keeps the
/// read buffer alive, so copy it with [`str::to_owned`] to keep it for long.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Bytes);

impl Text {
    /// `text` as a slice of `frame`, which it must lie in.
    #[inline]
    pub(crate) fn within(frame: &Bytes, text: &str) -> Self {
        Self(frame.slice_ref(text.as_bytes()))
    }

    /// The string.
    #[inline]
    pub fn as_str(&self) -> &str {
        // SAFETY: both ways to make a `Text` take a `str`, and `Bytes` are immutable.
        unsafe { std::str::from_utf8_unchecked(&self.0) }
    }

    /// The shared bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl Deref for Text {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}
