//! Appends frames to a batch.

use std::time::Duration;

use bytes::{BufMut, BytesMut};

use crate::chain::ChainView;
use crate::error::EncodeError;
use crate::extension::ExtensionView;
use crate::frame::{self, CallId, Credit, Grant, Status, StreamCredit, flag};
use crate::hello::Hello;
use crate::limit::{HELLO_LEN_MAX, KEY_LEN_MAX, Limits, NAME_LEN_MAX, REASON_LEN_MAX};
use crate::varint::{Head, LENGTH_LEN};
use crate::view::CancelView;

/// All of a call but its chain and payload; the fields mean what those of [`Call`](crate::Call) do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallHeader<'a> {
    /// Where the caller waits; `None` for a one-way message.
    pub id: Option<CallId>,
    /// The node that gets the reply; `None` when it is the sending node itself (the common case: it costs no byte).
    pub origin: Option<u64>,
    /// How often the call was forwarded.
    pub hops: u8,
    /// The (kind, method), as defined on this connection.
    pub route: u16,
    /// The actor's key.
    pub key: &'a str,
    /// What is left of the call's time; sent in whole µs.
    pub deadline: Option<Duration>,
    /// The directory's word that the receiver hosts the actor.
    pub grant: Option<Grant>,
    /// What only some calls carry.
    pub extension: ExtensionView<'a>,
}

impl CallHeader<'static> {
    /// A call to the key `""` with none of the optional parts: to be filled with `..`.
    pub const fn one_way(route: u16) -> Self {
        Self {
            id: None,
            origin: None,
            hops: 0,
            route,
            key: "",
            deadline: None,
            grant: None,
            extension: ExtensionView::EMPTY,
        }
    }
}

/// Appends frames to a batch that the caller owns and flushes. Every method leaves the batch as it was when it fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoder {
    limits: Limits,
}

impl Encoder {
    /// An encoder that refuses what a receiver with the same limits would.
    pub fn new(limits: Limits) -> Self {
        Self { limits }
    }

    /// Appends a Hello.
    ///
    /// # Errors
    /// [`EncodeError::FrameTooLong`] when it is over 64 KiB.
    pub fn hello(&self, batch: &mut BytesMut, hello: &Hello) -> Result<(), EncodeError> {
        let limits = Limits { frame_len_max: self.limits.frame_len_max.min(HELLO_LEN_MAX) };
        Self::new(limits).frame(batch, |batch| {
            batch.put_slice(Head::new(frame::HELLO).as_slice());
            hello.write(batch)
        })
    }

    /// Appends a Define; [`RouteEncoder`](crate::RouteEncoder) does it when it is needed.
    ///
    /// # Errors
    /// [`EncodeError::TextTooLong`] when a name is.
    pub fn define(&self, batch: &mut BytesMut, route: u16, kind: &str, method: &str) -> Result<(), EncodeError> {
        check("kind", kind, NAME_LEN_MAX)?;
        check("method", method, NAME_LEN_MAX)?;
        self.frame(batch, |batch| {
            let mut head = Head::new(frame::DEFINE);
            head.varint(route.into());
            head.varint(kind.len() as u64);
            batch.put_slice(head.as_slice());
            batch.put_slice(kind.as_bytes());
            put_len(batch, method.len());
            batch.put_slice(method.as_bytes());
            Ok(())
        })
    }

    /// Appends a call; `write` appends its payload to the batch, and nothing else.
    ///
    /// # Errors
    /// Whatever `write` gives; [`EncodeError::TextTooLong`] when the key is; [`EncodeError::FrameTooLong`].
    #[inline]
    pub fn call<E: From<EncodeError>>(
        &self,
        batch: &mut BytesMut,
        header: &CallHeader<'_>,
        chain: ChainView<'_>,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        check("key", header.key, KEY_LEN_MAX)?;
        self.frame(batch, |batch| {
            put_call_head(batch, header, chain);
            write(batch)
        })
    }

    /// Appends a reply; `write` appends its payload to the batch, and nothing else.
    ///
    /// # Errors
    /// Whatever `write` gives; [`EncodeError::FrameTooLong`].
    #[inline]
    pub fn reply<E: From<EncodeError>>(
        &self,
        batch: &mut BytesMut,
        id: CallId,
        status: Status,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        self.frame(batch, |batch| {
            let mut head = Head::new(frame::REPLY);
            put_call_id(&mut head, id);
            head.u8(status.to_byte());
            batch.put_slice(head.as_slice());
            write(batch)
        })
    }

    /// Appends a Cancel.
    ///
    /// # Errors
    /// [`EncodeError::TextTooLong`] when a name is.
    pub fn cancel(&self, batch: &mut BytesMut, cancel: &CancelView<'_>) -> Result<(), EncodeError> {
        let &CancelView { id, origin, left, kind, key } = cancel;
        check("kind", kind, NAME_LEN_MAX)?;
        check("key", key, KEY_LEN_MAX)?;
        self.frame(batch, |batch| {
            let mut head = Head::new(frame::CANCEL);
            put_call_id(&mut head, id);
            head.varint(origin.unwrap_or(0));
            head.varint(micros(left));
            head.varint(kind.len() as u64);
            batch.put_slice(head.as_slice());
            batch.put_slice(kind.as_bytes());
            put_len(batch, key.len());
            batch.put_slice(key.as_bytes());
            Ok(())
        })
    }

    /// Appends a message of a cluster protocol; `write` appends its payload to the batch, and nothing else.
    ///
    /// # Errors
    /// Whatever `write` gives; [`EncodeError::FrameTooLong`].
    pub fn control<E: From<EncodeError>>(
        &self,
        batch: &mut BytesMut,
        channel: u8,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        self.frame(batch, |batch| {
            let mut head = Head::new(frame::CONTROL);
            head.u8(channel);
            batch.put_slice(head.as_slice());
            write(batch)
        })
    }

    /// Appends an item of a stream; `write` appends its payload to the batch, and nothing else.
    ///
    /// # Errors
    /// Whatever `write` gives; [`EncodeError::FrameTooLong`].
    #[inline]
    pub fn stream_item<E: From<EncodeError>>(
        &self,
        batch: &mut BytesMut,
        consumer: CallId,
        number: u64,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        self.frame(batch, |batch| {
            let mut head = Head::new(frame::STREAM_ITEM);
            put_call_id(&mut head, consumer);
            head.varint(number);
            batch.put_slice(head.as_slice());
            write(batch)
        })
    }

    /// Appends what a stream's consumer has room for.
    pub fn stream_credit(&self, batch: &mut BytesMut, credit: &StreamCredit) {
        let start = batch.len();
        let mut head = Head::new(frame::STREAM_CREDIT);
        put_call_id(&mut head, credit.stream);
        batch.put_slice(head.as_slice());
        batch.put_u64_le(credit.token);
        let mut rest = Head::bare();
        put_call_id(&mut rest, credit.consumer);
        rest.u8(credit.codec);
        rest.varint(credit.window.into());
        rest.varint(credit.consumed);
        batch.put_slice(rest.as_slice());
        patch_len(batch, start);
    }

    /// Appends the end of a stream of `number` items; `write` appends its payload to the batch, and nothing else.
    ///
    /// # Errors
    /// Whatever `write` gives; [`EncodeError::FrameTooLong`].
    pub fn stream_end<E: From<EncodeError>>(
        &self,
        batch: &mut BytesMut,
        consumer: CallId,
        number: u64,
        status: Status,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        self.frame(batch, |batch| {
            let mut head = Head::new(frame::STREAM_END);
            put_call_id(&mut head, consumer);
            head.varint(number);
            head.u8(status.to_byte());
            batch.put_slice(head.as_slice());
            write(batch)
        })
    }

    /// Appends a Ping.
    pub fn ping(&self, batch: &mut BytesMut, nonce: u64) {
        put_nonce(batch, frame::PING, nonce);
    }

    /// Appends a Pong.
    pub fn pong(&self, batch: &mut BytesMut, nonce: u64) {
        put_nonce(batch, frame::PONG, nonce);
    }

    /// Appends a Letter; `write` appends its payload to the batch, and nothing else.
    ///
    /// # Errors
    /// Whatever `write` gives; [`EncodeError::FrameTooLong`].
    pub fn letter<E: From<EncodeError>>(
        &self,
        batch: &mut BytesMut,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        self.frame(batch, |batch| {
            batch.put_slice(Head::new(frame::LETTER).as_slice());
            write(batch)
        })
    }

    /// Appends a StateLetter; `write` appends its payload to the batch, and nothing else.
    ///
    /// # Errors
    /// As for [`letter`](Self::letter).
    pub fn state_letter<E: From<EncodeError>>(
        &self,
        batch: &mut BytesMut,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        self.frame(batch, |batch| {
            batch.put_slice(Head::new(frame::STATE_LETTER).as_slice());
            write(batch)
        })
    }

    /// Appends a Credit.
    pub fn credit(&self, batch: &mut BytesMut, credit: Credit) {
        let start = batch.len();
        let mut head = Head::new(frame::CREDIT);
        head.varint(credit.granted);
        head.varint(credit.clock);
        batch.put_slice(head.as_slice());
        patch_len(batch, start);
    }

    /// Appends a Goodbye; the reason is cut to [`REASON_LEN_MAX`] bytes.
    pub fn goodbye(&self, batch: &mut BytesMut, reason: &str) {
        let reason = &reason[..reason.floor_char_boundary(REASON_LEN_MAX)];
        let start = batch.len();
        let mut head = Head::new(frame::GOODBYE);
        head.varint(reason.len() as u64);
        batch.put_slice(head.as_slice());
        batch.put_slice(reason.as_bytes());
        patch_len(batch, start);
    }

    /// Appends what `write` does as one frame, and then its length in front; undoes it on an error.
    #[inline]
    fn frame<E: From<EncodeError>>(
        &self,
        batch: &mut BytesMut,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = batch.len();
        let result = write(batch).and_then(|()| {
            let len = batch.len() - start - LENGTH_LEN;
            if len > self.limits.frame_len_max as usize {
                return Err(EncodeError::FrameTooLong { len, max: self.limits.frame_len_max }.into());
            }
            patch_len(batch, start);
            Ok(())
        });
        if result.is_err() {
            batch.truncate(start);
        }
        result
    }
}

#[inline]
fn put_call_head(batch: &mut BytesMut, header: &CallHeader<'_>, chain: ChainView<'_>) {
    let &CallHeader { id, origin, hops, route, key, deadline, grant, extension } = header;
    let mut flags = 0;
    let mut head = Head::new(frame::CALL);
    let flags_at = head.skip();
    if let Some(id) = id {
        flags |= flag::ID;
        put_call_id(&mut head, id);
    }
    if let Some(origin) = origin {
        flags |= flag::ORIGIN;
        head.varint(origin);
    }
    if hops != 0 {
        flags |= flag::HOPS;
        head.u8(hops);
    }
    head.varint(route.into());
    head.varint(key.len() as u64);
    let key_at = head.len();
    if let Some(deadline) = deadline {
        flags |= flag::DEADLINE;
        head.varint(micros(deadline));
    }
    if let Some(Grant { epoch, view, grantor }) = grant {
        flags |= flag::GRANT;
        head.varint(epoch);
        head.varint(view);
        head.varint(grantor);
    }
    if !chain.is_empty() {
        flags |= flag::CHAIN;
        head.varint(chain.as_bytes().len() as u64);
    }
    if !extension.is_empty() {
        flags |= flag::EXTENSION;
    }
    head.set(flags_at, flags);
    let (before, after) = head.as_slice().split_at(key_at);
    batch.reserve(head.len() + key.len() + chain.as_bytes().len() + PAYLOAD_GUESS_LEN);
    batch.put_slice(before);
    batch.put_slice(key.as_bytes());
    batch.put_slice(after);
    batch.put_slice(chain.as_bytes());
    if !extension.is_empty() {
        put_len(batch, extension.as_bytes().len());
        batch.put_slice(extension.as_bytes());
    }
}

#[inline]
fn put_call_id(head: &mut Head, id: CallId) {
    head.varint(id.shard.into());
    head.varint(id.index.into());
    head.varint(id.generation.into());
}

fn put_nonce(batch: &mut BytesMut, frame_type: u8, nonce: u64) {
    let start = batch.len();
    batch.put_slice(Head::new(frame_type).as_slice());
    batch.put_u64_le(nonce);
    patch_len(batch, start);
}

fn put_len(batch: &mut BytesMut, len: usize) {
    let mut head = Head::bare();
    head.varint(len as u64);
    batch.put_slice(head.as_slice());
}

#[inline]
fn patch_len(batch: &mut BytesMut, start: usize) {
    let len = (batch.len() - start - LENGTH_LEN) as u32;
    batch[start..start + LENGTH_LEN].copy_from_slice(&len.to_le_bytes());
}

#[inline]
fn check(field: &'static str, text: &str, max: usize) -> Result<(), EncodeError> {
    if text.len() > max { Err(EncodeError::TextTooLong { field, len: text.len(), max }) } else { Ok(()) }
}

#[inline]
fn micros(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000).saturating_add(duration.subsec_micros().into())
}

/// Room reserved for a payload together with the header.
const PAYLOAD_GUESS_LEN: usize = 64;
