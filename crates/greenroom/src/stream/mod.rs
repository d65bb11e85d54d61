//! Streams of replies: what a method that returns `impl Stream<Item = T>` gives to its caller.
//!
//! The method's turn ends when it has made the stream; the stream owns what it needs, and its actor's shard polls it beside
//! turns, as far as the consumer has room. A [`ReplyStream`] is plain data to whoever passes it on: within a process it moves,
//! and where it is encoded it becomes a [`Handle`](handle::Handle), by which the consumer on the other node asks the producer's
//! shard for the items.
//!
//! - `reply_stream.rs` is what callers hold; `feed.rs` what a method made, and its tie to the activation
//! - `pump.rs` brings items from a feed to an outlet: a `pipe.rs` of this process, or a connection (`flow.rs`)
//! - `inlet.rs` is where items from another node, or as bytes, come out
//! - `backlog.rs` counts what waits for slow consumers, of all streams and topics together
//! - the tables are the shard's (`shard/streams`), the windows a protocol of their own (`greenroom-protocols`)

pub(crate) mod backlog;
pub(crate) mod feed;
pub(crate) mod flow;
pub(crate) mod handle;
pub(crate) mod inlet;
pub(crate) mod pipe;
pub(crate) mod pump;
pub(crate) mod reply_stream;

/// Items of one stream that are under way at once, however slow the consumer is.
pub(crate) const WINDOW: u32 = 64;
