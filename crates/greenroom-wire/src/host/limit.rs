//! Bounds on what crosses a host's lanes. All are checked by both the sender and the receiver.

/// Longest frame, in bytes after the length field; the Welcome says what is in force.
pub const FRAME_LEN_MAX: u32 = 8 << 20;
/// Longest description of a kind, in bytes.
pub const DESCRIPTION_LEN_MAX: usize = 256 << 10;
/// Most offers of a session.
pub const OFFERS_MAX: usize = 256;
/// Most user lanes of a session, and shards that a Welcome names.
pub const LANES_MAX: usize = 1024;
/// Most fields of an Activate or a TurnEnd.
pub const FIELDS_MAX: usize = 1024;
/// Longest name of a field's entry, in bytes.
pub const ENTRY_NAME_LEN_MAX: usize = 512;
/// Longest text in a map, in bytes, but a token, which may have 16 KiB.
pub const TEXT_LEN_MAX: usize = 1024;
/// Most requests of a lane that wait for their answers.
pub const REQUESTS_MAX: usize = 65_536;
/// Most streams of a lane, in each direction.
pub const STREAMS_MAX: usize = 4_096;
/// Bytes of Call, Ask and StreamItem frames that a host may send on a new lane, unless the Welcome says otherwise.
pub const WINDOW: u64 = 1 << 20;

/// Longest token in a Hello, in bytes.
pub(super) const TOKEN_LEN_MAX: usize = 16 << 10;
