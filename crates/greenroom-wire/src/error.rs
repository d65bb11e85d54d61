//! What can be wrong with a frame.

use thiserror::Error;

use crate::chain::ChainError;
use crate::extension::ExtensionError;

/// Bytes from a peer that are not a frame. The peer is at fault; nothing of the frame was delivered. The connection
/// must be closed: its frame boundaries can no longer be trusted. A new connection may be tried.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The length field says more than is allowed.
    #[error("frame of {len} bytes is over the limit of {max}; send less, or raise the frame limit on every node")]
    FrameTooLong {
        /// The declared length.
        len: u32,
        /// The limit.
        max: u32,
    },
    /// The length field says zero: not even a type.
    #[error("frame of zero bytes has no type; the peer does not speak this protocol")]
    Empty,
    /// The first frame of the connection is not a Hello.
    #[error("first frame has type {found}, not Hello; the peer does not speak this protocol")]
    HelloExpected {
        /// The type that came instead.
        found: u8,
    },
    /// A Hello came after the first frame.
    #[error("a second Hello on one connection; the peer must open a new connection instead")]
    HelloRepeated,
    /// A Hello does not begin with the magic bytes.
    #[error("Hello begins with {found:02x?}, not \"GRRM\"; check that the address is a Greenroom node's")]
    WrongMagic {
        /// The four bytes that came instead.
        found: [u8; 4],
    },
    /// A Hello of a known shape holds a body that cannot be read.
    #[error("Hello of protocol versions {min} to {max} cannot be read: {what}; upgrade the older of the two nodes")]
    HelloBody {
        /// The lowest version the peer speaks.
        min: u16,
        /// The highest version the peer speaks.
        max: u16,
        /// What is wrong, with the field.
        what: Box<str>,
    },
    /// A host's lane does not begin with its magic bytes.
    #[error("lane begins with {found:02x?}, not \"GRHP\"; check that it leads to a node's way in for hosts")]
    WrongHostMagic {
        /// The four bytes that came instead.
        found: [u8; 4],
    },
    /// A map of a host's lane cannot be read.
    #[error("the map of {frame} cannot be read: {what}; the peer's encoder is broken, or of another version")]
    Map {
        /// The frame.
        frame: &'static str,
        /// What is wrong, with the field.
        what: Box<str>,
    },
    /// The frame ends within a field.
    #[error("frame ends within {field}; the peer's encoder is broken")]
    Truncated {
        /// The field.
        field: &'static str,
    },
    /// A varint has more bytes than its value needs, or more than 64 bits.
    #[error("varint of {field} is not in its shortest form or over 64 bits; the peer's encoder is broken")]
    BadVarint {
        /// The field.
        field: &'static str,
    },
    /// A number or a length is over the field's bound.
    #[error("{field} is {value}, over its bound of {max}; the sender must stay within it")]
    OutOfBounds {
        /// The field.
        field: &'static str,
        /// The value.
        value: u64,
        /// The bound.
        max: u64,
    },
    /// A text is not UTF-8.
    #[error("{field} is not UTF-8; the peer's encoder is broken")]
    NotUtf8 {
        /// The field.
        field: &'static str,
    },
    /// A frame has a flag that this version does not know and cannot skip.
    #[error("frame has unknown flags {flags:#04x}; the peer must use only what the negotiated version has")]
    UnknownFlags {
        /// The frame's flags byte.
        flags: u8,
    },
    /// A call's chain is not one.
    #[error("call chain: {0}")]
    Chain(#[from] ChainError),
    /// A call's extension block is not one.
    #[error("call extension: {0}")]
    Extension(#[from] ExtensionError),
}

/// What cannot be encoded. The caller is at fault; the batch is as it was before.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The frame is longer than allowed.
    #[error("frame of {len} bytes is over the limit of {max}; send less, or raise the frame limit on every node")]
    FrameTooLong {
        /// The frame's length.
        len: usize,
        /// The limit.
        max: u32,
    },
    /// A name or key is longer than allowed.
    #[error("{field} of {len} bytes is over the limit of {max}; use a shorter one")]
    TextTooLong {
        /// The field.
        field: &'static str,
        /// The text's length in bytes.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// The value's serde implementation, or the codec, refused.
    #[error("value cannot be written as {codec}: {what}; change the type's serde attributes")]
    Value {
        /// The codec's name.
        codec: &'static str,
        /// What is wrong.
        what: Box<str>,
    },
}
