//! The frames that a node and a *host* speak: a process, in any language, that runs the turns of kinds which are not linked into
//! the node. Pure, like the rest of the crate: bytes in, frames out.
//!
//! Both sides write `length: u32 LE` (of what follows), `type: u8`, body. Below `v` is a LEB128 varint in its shortest form, `t`
//! a text (`v` bytes of UTF-8), `b` bytes after their length (`v`), `[..]` is there if flagged, `…` is the rest of the frame: a
//! [payload](crate::codec), or nothing. [`FromHost`] and [`FromNode`] borrow what they were read from, and write themselves.
//!
//! | type | from | frame | body |
//! |---|---|---|---|
//! | 1 | host | Hello | `"GRHP"`, lowest and highest version (u16 LE each), map: [`HelloMap`] |
//! | 1 | node | Welcome | `"GRHP"`, the version that is spoken, twice (u16 LE each), map: [`WelcomeMap`] |
//! | 2 | host | Describe | kind t, version v, … (JSON, no payload): a description whose digest the Welcome lists as unknown |
//! | 3 | node | Offered | offer v, kind t, status u8, reason t: one frame for each offer of the Hello, in their order |
//! | 4 | host | Alive | number v, which rises |
//! | 5 | node | Lease | the Alive's number v, ms v |
//! | 6 | node | Nodes | map: [`NodesMap`] |
//! | 7 | host | Drain | nothing |
//! | 8 | both | Goodbye | code u8, reason t: the last frame of any lane |
//! | 9 | node | LaneLost | shard v |
//! | 10 | host | LaneDropped | shard v: the answer to a LaneLost, once each; no lane of that shard is joined again before it |
//! | 16 | host | Join | `"GRHP"`, version (u16 LE), map: [`JoinMap`]; the node answers nothing, or says goodbye |
//! | 32 | node | Activate | seat v, offer v, epoch v, flags u8 (1 machine state, 2 carried), key t, [machine state t], [carried b], fields |
//! | 33 | host | Activated | seat v, status u8, … (the error) |
//! | 34 | node | Deactivate | seat v, why u8, flags u8 (1 carry, 2 abandon what runs) |
//! | 35 | host | Released | seat v, status u8, … (what is carried, or the error) |
//! | 36 | node | Turn | turn v, seat v, method v, flags u8 (1 awaited, 2 read, 4 tick), µs left v (0: no limit), extension b, … arguments |
//! | 37 | host | TurnEnd | turn v, status u8, flags u8 (1 changes, 2 jump, 4 halt, 8 stream), \[fields\], [state t], [stream v], … reply |
//! | 38 | node | CancelTurn | turn v |
//! | 39 | host | Define | route v, kind t, method t, version v |
//! | 40 | host | Call | request v (0: one-way), turn v (0: none), route v, key t, µs left v (0: no limit), extension b, … arguments |
//! | 41 | node | Reply | request v, status u8, … |
//! | 42 | host | CancelCall | request v |
//! | 43 | host | Ask | request v (0: no answer), turn v, seat v, operation u8, … map; answered by Reply |
//! | 44 | node | OperationRefused | turn v (0: none), actor t, operation t, reason t: an Ask or a Call with request 0 that is refused |
//! | 48 | both | StreamItem | stream v, number v, … |
//! | 49 | both | StreamCredit | stream v, window v, consumed v |
//! | 50 | both | StreamEnd | stream v, number v, status u8, … |
//! | 56 | node | Credit | bytes of Call, Ask and StreamItem frames, length fields included, granted since the lane began |
//!
//! *Fields* are `count v` and for each name t, form u8: 0 whole, `b`, a payload; 1 entries, `count v` and for each name t, present
//! u8, `[b]`. What a description calls a method's number is its index in the description's `methods`, and an offer's is its index in
//! the Hello's `offers`. A map is named MessagePack; who reads it skips names that it does not know.
//!
//! Seats and turns are numbered from 1 by the node, for each shard of a session: a number is never used again in it, also when its lane
//! is joined a second time. Requests and routes are numbered by the host, for each lane: routes from 0 without gaps, requests rising.
//! A stream that a host produces has a number of the host's; one that it consumes, which it names with [`Operation::OpenStream`], too:
//! the two are told apart by the direction of their items.
//!
//! # How the format may change
//!
//! As that between nodes: envelope, magic and version numbers never; frames of unknown types ([`FromHost::Unknown`]), bytes behind a
//! known body that ends in no payload, and unknown names in maps are skipped; unknown flags are an error, for what they announce
//! cannot be skipped.
//!
//! # Example
//!
//! ```
//! use bytes::BytesMut;
//! use greenroom_wire::host::{Decoder, FRAME_LEN_MAX, FromHost, HelloMap, Hello};
//!
//! let mut batch = BytesMut::new();
//! FromHost::Hello(Hello::new(HelloMap::new("chat"))).write(&mut batch, FRAME_LEN_MAX)?;
//! FromHost::Alive { number: 1 }.write(&mut batch, FRAME_LEN_MAX)?;
//!
//! let (mut decoder, mut rest) = (Decoder::new(FRAME_LEN_MAX), &batch[..]);
//! assert!(matches!(decoder.next::<FromHost>(&mut rest)?, Some(FromHost::Hello(_))));
//! assert_eq!(decoder.next(&mut rest)?, Some(FromHost::Alive { number: 1 }));
//! assert_eq!(decoder.next::<FromHost>(&mut rest)?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod byte;
mod decoder;
mod fields;
mod from_host;
mod from_node;
mod limit;
mod map;
mod writer;

pub use byte::{ABANDONED, Closing, Leave, OfferStatus, Operation};
pub use decoder::{Decoder, LaneFrame};
pub use fields::{Entries, Fields, FieldsWriter, Form};
pub use from_host::{Ask, Call, FromHost, TurnEnd};
pub use from_node::{Activate, FromNode, Turn};
pub use limit::{
    DESCRIPTION_LEN_MAX, ENTRY_NAME_LEN_MAX, FIELDS_MAX, FRAME_LEN_MAX, LANES_MAX, OFFERS_MAX, REQUESTS_MAX,
    STREAMS_MAX, TEXT_LEN_MAX, WINDOW,
};
pub use map::{Ended, Hello, HelloMap, Join, JoinMap, NodeMap, NodesMap, OfferMap, Secret, Welcome, WelcomeMap};

/// The bytes that every lane begins with, after the first frame's length and type.
pub const MAGIC: [u8; 4] = *b"GRHP";

/// The versions of the host protocol that this build speaks.
pub const VERSIONS: crate::Versions = crate::Versions { min: 1, max: 1 };

/// What the HTTP door calls the protocol in `Upgrade`.
pub const UPGRADE: &str = "greenroom-host/1";

mod frame_type {
    pub(super) const GREETING: u8 = 1;
    pub(super) const DESCRIBE: u8 = 2;
    pub(super) const OFFERED: u8 = 3;
    pub(super) const ALIVE: u8 = 4;
    pub(super) const LEASE: u8 = 5;
    pub(super) const NODES: u8 = 6;
    pub(super) const DRAIN: u8 = 7;
    pub(super) const GOODBYE: u8 = 8;
    pub(super) const LANE_LOST: u8 = 9;
    pub(super) const LANE_DROPPED: u8 = 10;
    pub(super) const JOIN: u8 = 16;
    pub(super) const ACTIVATE: u8 = 32;
    pub(super) const ACTIVATED: u8 = 33;
    pub(super) const DEACTIVATE: u8 = 34;
    pub(super) const RELEASED: u8 = 35;
    pub(super) const TURN: u8 = 36;
    pub(super) const TURN_END: u8 = 37;
    pub(super) const CANCEL_TURN: u8 = 38;
    pub(super) const DEFINE: u8 = 39;
    pub(super) const CALL: u8 = 40;
    pub(super) const REPLY: u8 = 41;
    pub(super) const CANCEL_CALL: u8 = 42;
    pub(super) const ASK: u8 = 43;
    pub(super) const OPERATION_REFUSED: u8 = 44;
    pub(super) const STREAM_ITEM: u8 = 48;
    pub(super) const STREAM_CREDIT: u8 = 49;
    pub(super) const STREAM_END: u8 = 50;
    pub(super) const CREDIT: u8 = 56;
}
