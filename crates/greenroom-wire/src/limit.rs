//! Bounds on what crosses the wire. All are checked by both the sender and the receiver.

/// Longest key, in bytes.
pub const KEY_LEN_MAX: usize = 1024;
/// Longest name of a kind or a method, in bytes.
pub const NAME_LEN_MAX: usize = 128;
/// Most entries of a call chain.
pub const CHAIN_MAX: usize = 64;
/// Longest extension block of a call, in bytes.
pub const EXTENSION_LEN_MAX: usize = 16 << 10;
/// Most fields of an extension block.
pub const EXTENSION_FIELDS_MAX: usize = 32;
/// Most pairs of a request context.
pub const CONTEXT_PAIRS_MAX: usize = 64;
/// Longest request context: its keys and values together, in bytes.
pub const CONTEXT_LEN_MAX: usize = 8 << 10;
/// Longest key of a request context, in bytes.
pub const CONTEXT_KEY_LEN_MAX: usize = 128;
/// Longest `tracestate`, in bytes (W3C Trace Context §3.3.1.5).
pub const TRACE_STATE_LEN_MAX: usize = 512;
/// Longest name of a principal or of one of its roles, in bytes.
pub const PRINCIPAL_NAME_LEN_MAX: usize = 256;
/// Most roles of a principal.
pub const PRINCIPAL_ROLES_MAX: usize = 32;
/// Longest name of a reminder, in bytes.
pub const REMINDER_NAME_LEN_MAX: usize = 64;
/// Longest Hello, in bytes after the length field: what a stranger may make a node buffer.
pub const HELLO_LEN_MAX: u32 = 64 << 10;
/// Longest reason of a Goodbye, in bytes; a longer one is cut.
pub const REASON_LEN_MAX: usize = 1024;
/// Most routes that one connection may define in one direction.
pub const ROUTES_MAX: usize = 65_535;
/// Deepest nesting of a payload's MessagePack value; JSON has the 128 of its library.
pub const DEPTH_MAX: usize = 64;

/// Longest encoded chain: every entry with the longest kind and key, and their two-byte lengths.
pub(crate) const CHAIN_LEN_MAX: usize = CHAIN_MAX * (NAME_LEN_MAX + 2 + KEY_LEN_MAX + 2);

/// The bounds that a node may configure. Nodes of one cluster should agree on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Longest frame, in bytes after the length field; 16 MiB by default.
    pub frame_len_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame_len_max: 16 << 20 }
    }
}
