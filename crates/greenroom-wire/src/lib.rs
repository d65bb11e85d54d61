//! The versioned frame format that nodes speak to each other. Pure: bytes in, frames out; no socket, clock or thread.
//!
//! A frame is `length: u32 LE` (of what follows), `type: u8`, body. Numbers in bodies are LEB128 varints in their
//! shortest form unless said otherwise, texts are a varint length and UTF-8. [`Encoder`] appends frames to a batch the
//! caller owns; [`Decoder`] takes them off a read buffer as slices of it ([`Frame`]) or as borrowed views without any
//! reference count ([`FrameView`]). [`codec`] is the format of the payloads inside calls and replies.
//!
//! | type | frame | body |
//! |---|---|---|
//! | 1 | Hello | `"GRRM"`, lowest and highest version (u16 LE each), named MessagePack of [`HelloBody`] |
//! | 2 | Define | route, kind, method |
//! | 3 | Call | flags (u8), then by flag: id (shard, index, generation), origin, hops (u8); route, key; then by flag: deadline in µs, grant (epoch, view, grantor), chain (byte length, then kind and key of each entry), extension (byte length, then [tag](extension::tag), byte length and bytes of each field, by rising tag); the rest is the payload |
//! | 4 | Reply | shard, index, generation, status (u8); the rest is the payload |
//! | 5 | Control | channel (u8); the rest is the payload |
//! | 6, 7 | Ping, Pong | nonce (u64 LE) |
//! | 8 | Goodbye | reason |
//! | 9 | Cancel | call (shard, index, generation), origin (0 for the sender), time left in µs, kind, key |
//! | 10 | StreamItem | consumer (shard, index, generation), number; the rest is the payload |
//! | 11 | StreamCredit | stream (shard, index, generation), token (u64 LE), consumer (shard, index, generation), codec (u8), window, consumed |
//! | 12 | StreamEnd | consumer (shard, index, generation), number, status (u8); the rest is the payload |
//! | 13 | Credit | bytes granted, the sender's clock in µs |
//! | 20 | Letter | all of it is the payload |
//! | 21 | StateLetter | all of it is the payload |
//!
//! # How the format may change
//!
//! - The envelope, the Hello's magic and its two version numbers never change, so that any two versions can tell each
//!   other that they have no common one.
//! - Everything else may change under a new protocol version, which is used only after both sides
//!   [negotiated](negotiate) it. Within one version, only what an older reader skips may be added:
//!   - a frame of a new type: decoded as `Unknown`, to be ignored;
//!   - bytes at the end of a Hello, Define, Ping, Pong, Goodbye, Cancel or StreamCredit: ignored. All others end in a payload,
//!     so they have no such end;
//!   - fields of [`HelloBody`]: by name, skipped if unknown, with a default if missing;
//!   - fields of a Call's extension block: skipped if unknown. The one call flag that is still free is an error: it needs a new version;
//!   - values of [`Status`]: kept as [`Status::Other`].
//! - A frame type, a field's meaning, a flag or a status value is never used again for something else.
//!
//! # Hostile bytes
//!
//! Every length is checked against its bound ([`Limits`], [`limit`]) and against the bytes that are there, before it is
//! used. Nothing is allocated by a declared length. A decoder that met an error keeps giving it: a byte stream that
//! lost its frame boundaries cannot be resumed, so the connection is to be closed.
//!
//! # Example
//!
//! ```
//! use bytes::BytesMut;
//! use greenroom_wire::{CallHeader, ChainView, Decoder, Encoder, Frame, Hello, HelloBody, Lane, codec};
//!
//! let encoder = Encoder::default();
//! let mut batch = BytesMut::new();
//! encoder.hello(&mut batch, &Hello::new(HelloBody::new("music", 7, "node-a", Lane::Control)))?;
//! encoder.define(&mut batch, 0, "chat_room", "post")?;
//! let header = CallHeader { key: "lobby", ..CallHeader::one_way(0) };
//! encoder.call(&mut batch, &header, ChainView::EMPTY, |buf| {
//!     codec::encode(codec::Codec::MessagePack, 1, &("ada", "hello"), buf)
//! })?;
//!
//! let mut decoder = Decoder::default();
//! assert!(matches!(decoder.decode(&mut batch)?, Some(Frame::Hello(_))));
//! assert!(matches!(decoder.decode(&mut batch)?, Some(Frame::Define(_))));
//! let Some(Frame::Call(call)) = decoder.decode(&mut batch)? else { panic!("a call was sent") };
//! assert_eq!(&*call.key, "lobby");
//! assert_eq!(codec::decode::<(String, String)>(&call.payload)?, ("ada".into(), "hello".into()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod carried;
pub mod chain;
pub mod codec;
pub mod extension;
pub mod host;
pub mod limit;

mod decoder;
mod encoder;
mod error;
mod frame;
mod hello;
mod reader;
mod route;
mod share;
mod text;
mod varint;
mod view;

pub use chain::{Chain, ChainError, ChainView};
pub use decoder::{Decoder, Views};
pub use encoder::{CallHeader, Encoder};
pub use error::{EncodeError, FrameError};
pub use extension::{Extension, ExtensionError, ExtensionView, ExtensionWriter};
pub use frame::{
    Call, CallId, Cancel, Control, Credit, Define, Frame, FrameClass, Grant, Reply, Status, StreamCredit, StreamEnd,
    StreamItem, Unknown, classify, frame_len, is_call,
};
pub use hello::{Flow, Hello, HelloBody, HelloError, Lane, MAGIC, VERSIONS, Versions, negotiate};
pub use limit::Limits;
pub use route::{Route, RouteEncoder, RouteError, RouteTable};
pub use text::Text;
pub use view::{CallView, CancelView, FrameView, ReplyView};
