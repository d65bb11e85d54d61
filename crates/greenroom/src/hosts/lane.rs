//! A host's lane to one shard: bytes in and out, and what is under way on it.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::{Buf, Bytes, BytesMut};
use greenroom_protocols::host::{Activation, Cookie};
use greenroom_reliable::ledger::FieldChanges;
use greenroom_wire::Status;
use greenroom_wire::host::{Closing, Decoder, FRAME_LEN_MAX, FromNode};
use greenroom_world::{Stream, Timestamp};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::ask::Asked;
use super::calls::HostRoute;
use super::refusals::RefusalBudget;
use super::session::Session;
use super::streams::{Begun, Streams};
use super::turn::{LostHost, NewTurn};
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::reliable::hosted::HostedTurn;
use crate::shard::baggage::Load;
use crate::shard::calls::CallSlot;
use crate::shard::chain::Link;
use crate::shard::{Item, ShardPort};

/// A session's lane to one shard.
pub(super) struct Lane {
    pub(super) session: Arc<Session>,
    /// `None` before the host has joined, and while its lane is lost.
    pub(super) wire: Option<Wire>,
    /// What the host has joined with before it was heard that it has dropped the seats of its last lane.
    pub(super) early: Option<Wire>,
    /// Bytes that had left on the lane that is lost.
    pub(super) written: u64,
    /// Its seats, as the session's count has them.
    pub(super) counted: u32,
    pub(super) routes: Vec<HostRoute>,
    pub(super) requests: BTreeMap<u64, Request>,
    pub(super) streams: Streams,
    /// Bytes of calls that have come, and those that the host was let send.
    pub(super) received: u64,
    pub(super) granted: u64,
    pub(super) refusal_budget: RefusalBudget,
}

/// A request of a host's that is not answered yet.
pub(super) struct Request {
    /// The turn that waits for it, if one does.
    pub(super) turn: Option<Cookie>,
    /// Whose call it is, to be given up if the host does; nothing for what is no call.
    pub(super) call: Option<(CallSlot, ActorId)>,
}

/// A turn of an actor in a host.
pub(super) struct Running {
    pub(super) activation: Activation,
    pub(super) actor: ActorId,
    pub(super) new: NewTurn,
    /// Where it was sent, if it was.
    pub(super) sent: Option<Sent>,
    pub(super) link: Link,
    pub(super) baggage: Load,
    pub(super) deadline: Timestamp,
    pub(super) waker: Option<Waker>,
    /// What it has asked of its activation.
    pub(super) asked: VecDeque<Asked>,
    pub(super) end: Option<End>,
}

/// Where a turn was sent.
pub(super) struct Sent {
    pub(super) session: u64,
    pub(super) seat: u64,
    /// Where its frame begins, in the bytes of the lane.
    pub(super) position: u64,
}

/// What a turn has made of its actor's state.
#[derive(Default)]
pub(super) struct Made {
    pub(super) changes: Vec<FieldChanges>,
    /// The state that a state machine is in from now on.
    pub(super) jump: Option<String>,
    /// The actor has ended for good.
    pub(super) is_halt: bool,
}

/// How a turn ended.
pub(super) enum End {
    /// As its host says.
    Said { status: Status, payload: Bytes, made: Made, stream: Option<Begun> },
    /// Its host was lost. `is_again` is true if the turn may run again, as nothing had begun or nobody sees it.
    Lost { is_again: bool, host: LostHost },
    /// Nothing began: the description that the host offers has no such method.
    NoMethod,
    /// Nothing began.
    Refused(Refusal),
}

impl Running {
    /// Whether it may run again when its host is lost.
    pub(super) fn runs_again(&self) -> bool {
        self.new.is_read || HostedTurn::of(&self.baggage).is_some()
    }

    /// Bytes of its frame, about.
    pub(super) fn len(&self) -> u64 {
        (self.new.payload.len() + self.new.extension.len() + TURN_HEAD_LEN) as u64
    }
}

/// The connection of a lane.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    pub(super) input: BytesMut,
    pub(super) decoder: Decoder,
    out: BytesMut,
    /// Bytes that were ever put on it, and that have left.
    put: u64,
    written: u64,
    flag: Arc<Flag>,
    /// Whether what was put is about to be written.
    flushing: bool,
}

impl Lane {
    pub(super) fn new(session: Arc<Session>) -> Self {
        Self {
            session,
            wire: None,
            early: None,
            written: 0,
            counted: 0,
            routes: Vec::new(),
            requests: BTreeMap::new(),
            streams: Streams::default(),
            received: 0,
            granted: 0,
            refusal_budget: RefusalBudget::default(),
        }
    }

    /// Whether there is a connection.
    pub(super) fn is_open(&self) -> bool {
        self.wire.is_some()
    }

    /// Puts a frame on the lane, to leave when the shard's round ends. `false` if it cannot be written.
    pub(super) fn put(&mut self, frame: &FromNode<'_>) -> bool {
        let Some(wire) = &mut self.wire else { return false };
        let before = wire.out.len();
        if frame.write(&mut wire.out, FRAME_LEN_MAX).is_err() {
            return false;
        }
        wire.put += (wire.out.len() - before) as u64;
        if !std::mem::replace(&mut wire.flushing, true) {
            wire.flag.flush();
        }
        true
    }

    /// Where the next frame begins.
    pub(super) fn position(&self) -> u64 {
        self.wire.as_ref().map_or(0, |wire| wire.put)
    }

    /// Ends everything that is under way on the connection, which is gone.
    pub(super) fn close(&mut self) -> Option<Wire> {
        let wire = self.wire.take()?;
        self.written = wire.written;
        (self.received, self.granted) = (0, 0);
        self.routes.clear();
        self.requests.clear();
        self.streams.end_all();
        Some(wire)
    }
}

impl Wire {
    pub(super) fn new(
        stream: Box<dyn Stream>,
        input: BytesMut,
        decoder: Decoder,
        shard: ShardPort,
        session: u64,
    ) -> Self {
        let flag = Arc::new(Flag { shard, session, raised: AtomicBool::new(false) });
        Self { stream, input, decoder, out: BytesMut::new(), put: 0, written: 0, flag, flushing: false }
    }

    pub(super) fn flag(&self) -> &Arc<Flag> {
        &self.flag
    }

    /// Reads what has come. `true` if there was something.
    pub(super) fn read(&mut self) -> io::Result<bool> {
        let waker = Waker::from(self.flag.clone());
        self.input.reserve(READ_LEN);
        let mut buffer = ReadBuf::uninit(self.input.spare_capacity_mut());
        match Pin::new(&mut self.stream).poll_read(&mut Context::from_waker(&waker), &mut buffer) {
            Poll::Pending => return Ok(false),
            Poll::Ready(read) => read?,
        }
        let read = buffer.filled().len();
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the stream has filled `read` bytes of the spare capacity.
        unsafe { self.input.set_len(self.input.len() + read) };
        Ok(true)
    }

    /// Whether the host leaves so much unread that it must not be read either.
    pub(super) fn is_stalled(&self) -> bool {
        self.out.len() > OUT_LEN_HIGH
    }

    /// Whether the host has left more unread than a node keeps for it.
    pub(super) fn is_overfull(&self) -> bool {
        self.out.len() > OUT_LEN_MAX
    }

    /// Puts the last frame.
    pub(super) fn say_goodbye(&mut self, code: Closing, reason: &str) {
        let _ = FromNode::Goodbye { code, reason }.write(&mut self.out, FRAME_LEN_MAX);
    }

    /// Writes what was put.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.flushing = false;
        let waker = Waker::from(self.flag.clone());
        while !self.out.is_empty() {
            match Pin::new(&mut self.stream).poll_write(&mut Context::from_waker(&waker), &self.out) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => {
                    self.written += written as u64;
                    self.out.advance(written);
                }
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        if self.out.is_empty() && self.out.capacity() > KEEP_LEN_MAX {
            self.out = BytesMut::new();
        }
        Ok(())
    }
}

/// Has the shard look at a lane.
pub(super) struct Flag {
    shard: ShardPort,
    session: u64,
    raised: AtomicBool,
}

impl Flag {
    /// Has the shard write the lane out when its round has ended.
    fn flush(&self) {
        let session = self.session;
        let _ = self.shard.push(Item::Run(Box::new(move |shard| super::frames::flush(shard, session))));
    }

    /// Has the shard look at the lane.
    pub(super) fn raise(self: Arc<Self>) {
        self.wake();
    }

    /// From now on the shard is told again.
    pub(super) fn lower(&self) {
        self.raised.store(false, Ordering::Release);
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            let session = self.session;
            let _ = self.shard.push(Item::Run(Box::new(move |shard| super::frames::visit(shard, session))));
        }
    }
}

/// What a turn's frame has besides its arguments and what they carry, about.
const TURN_HEAD_LEN: usize = 32;
/// Bytes asked for in one read.
const READ_LEN: usize = 64 << 10;
/// A host that leaves so much unread is not read.
const OUT_LEN_HIGH: usize = 4 << 20;
/// A host that leaves more unread loses its lane.
const OUT_LEN_MAX: usize = 64 << 20;
/// A buffer that has grown over this is given back once it is empty.
const KEEP_LEN_MAX: usize = 1 << 20;
