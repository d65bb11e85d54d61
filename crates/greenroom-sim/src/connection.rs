//! Connections: two directions of bytes that flow as in TCP, except for the faults that the seed decides.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::ReadBuf;

use crate::crashes::Edge;
use crate::frame::{Cutter, FrameClass, Sent, Told};
use crate::shared::{Core, Event};
use crate::trace::Happening;

/// A connection between two ends: 0 opened it, 1 accepted it.
pub(crate) struct Connection {
    pub(crate) ends: [End; 2],
}

/// One end of a connection, with the direction that it sends into.
pub(crate) struct End {
    pub(crate) machine: usize,
    pub(crate) port: u16,
    /// Arrived and not read; `inbox_read` bytes of the first are read.
    inbox: VecDeque<Vec<u8>>,
    inbox_read: usize,
    eof: bool,
    broken: Option<io::ErrorKind>,
    /// Nobody holds this end any more.
    closed: bool,
    /// This end's node has crashed.
    gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    cutter: Cutter,
    shut: bool,
    /// Bytes written here and not yet read at the other end.
    outstanding: usize,
    /// When the last piece that keeps order arrives.
    last: Duration,
    /// Nothing sent from now on arrives before this.
    barrier: Duration,
    /// When the very last piece arrives.
    latest: Duration,
    /// What a cut holds back.
    held: VecDeque<Item>,
    /// From then on nothing that was sent comes through: the machine died and took it along.
    mute: Duration,
}

/// What travels.
pub(crate) enum Item {
    /// A piece, and what it is if it is a frame of which that is known.
    Bytes(Vec<u8>, Option<Arc<Told>>),
    /// The end of what this side sends.
    Fin,
    Reset,
}

impl End {
    pub(crate) fn new(machine: usize, port: u16) -> Self {
        Self {
            machine,
            port,
            inbox: VecDeque::new(),
            inbox_read: 0,
            eof: false,
            broken: None,
            closed: false,
            gone: false,
            reader: None,
            writer: None,
            cutter: Cutter::default(),
            shut: false,
            outstanding: 0,
            last: Duration::ZERO,
            barrier: Duration::ZERO,
            latest: Duration::ZERO,
            held: VecDeque::new(),
            mute: Duration::MAX,
        }
    }

    fn wake(&mut self) {
        self.reader.take().into_iter().chain(self.writer.take()).for_each(Waker::wake);
    }

    fn left(&self) -> bool {
        self.closed || self.gone
    }

    fn acknowledged(&mut self, len: usize) {
        self.outstanding = self.outstanding.saturating_sub(len);
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}

impl Core {
    pub(crate) fn poll_read(
        &mut self,
        connection: u64,
        side: usize,
        cx: &Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(found) = self.connections.get_mut(&connection) else { return Poll::Ready(Err(gone())) };
        let [a, b] = &mut found.ends;
        let (end, peer) = if side == 0 { (a, b) } else { (b, a) };
        let before = buf.filled().len();
        while let Some(first) = end.inbox.front()
            && buf.remaining() > 0
        {
            let unread = &first[end.inbox_read..];
            let len = unread.len().min(buf.remaining());
            buf.put_slice(&unread[..len]);
            end.inbox_read += len;
            if end.inbox_read == first.len() {
                end.inbox.pop_front();
                end.inbox_read = 0;
            }
        }
        let len = buf.filled().len() - before;
        if len > 0 {
            peer.acknowledged(len);
            return Poll::Ready(Ok(()));
        }
        match end.broken {
            Some(kind) => Poll::Ready(Err(kind.into())),
            None if end.eof || buf.remaining() == 0 => Poll::Ready(Ok(())),
            None => {
                end.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        now: Duration,
        connection: u64,
        side: usize,
        cx: &Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(found) = self.connections.get_mut(&connection) else { return Poll::Ready(Err(gone())) };
        let end = &mut found.ends[side];
        if let Some(kind) = end.broken {
            return Poll::Ready(Err(kind.into()));
        }
        if end.shut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = self.faults.send_buffer_bytes.saturating_sub(end.outstanding);
        let len = bytes.len().min(room.max(end.cutter.missing()));
        if len == 0 && !bytes.is_empty() {
            end.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        end.outstanding += len;
        let mut cutter = std::mem::take(&mut end.cutter);
        cutter.push(&bytes[..len], |piece, framed| self.send(now, connection, side, piece, framed));
        if let Some(found) = self.connections.get_mut(&connection) {
            found.ends[side].cutter = cutter;
        }
        Poll::Ready(Ok(len))
    }

    /// Puts a piece on the wire, or loses it.
    fn send(&mut self, now: Duration, connection: u64, side: usize, piece: Vec<u8>, framed: bool) {
        let class = if framed { (self.classify)(&piece) } else { FrameClass::Essential };
        let Some((from, to)) = self.route(connection, side) else { return };
        if self.connections.get(&connection).is_none_or(|found| found.ends[side].gone) {
            // Its node has crashed in the middle of what it was writing.
            return;
        }
        let near = from == to;
        let what = if framed { self.told(connection, side, &piece) } else { None };
        if !near
            && self.is_message(what.as_deref())
            && self.crashes_at_message(now, from, Edge::Before, what.as_deref())
        {
            return;
        }
        let (faults, random) = (&self.faults, &mut self.random);
        let loss = match class {
            FrameClass::Essential => 0.0,
            FrameClass::User => faults.user_loss,
            FrameClass::Control => faults.control_loss,
        };
        let lost = !near && random.chance(loss);
        let twice = !near && class == FrameClass::Control && random.chance(faults.control_duplication);
        let free = !near && class != FrameClass::Essential && random.chance(faults.reordering);
        let len = piece.len();
        if lost {
            self.record(now, Happening::Lost { connection, from, to, len, what });
            self.connections.get_mut(&connection).into_iter().for_each(|found| found.ends[side].acknowledged(len));
            return;
        }
        if twice {
            self.record(now, Happening::Duplicated { connection, from, to, len, what: what.clone() });
            self.connections.get_mut(&connection).into_iter().for_each(|found| found.ends[side].outstanding += len);
            let at = self.arrival(now, connection, side, true, FrameClass::Control);
            self.schedule(at, Event::Deliver { connection, side, item: Item::Bytes(piece.clone(), what.clone()) });
        }
        let at = self.arrival(now, connection, side, free, class);
        self.schedule(at, Event::Deliver { connection, side, item: Item::Bytes(piece, what) });
    }

    /// What the narrator says of a frame.
    fn told(&mut self, connection: u64, side: usize, frame: &[u8]) -> Option<Arc<Told>> {
        let (from, to) = self.route(connection, side)?;
        let (from, to) = (&self.machines[from].name, &self.machines[to].name);
        let sent = Sent { lane: connection * 2 + side as u64, from, to, frame };
        self.narrator.as_mut()?.tell(&sent).map(Arc::new)
    }

    /// Whether a frame counts as a message: all do that nobody tells from others.
    fn is_message(&self, what: Option<&Told>) -> bool {
        self.narrator.is_none() || what.is_some_and(|what| what.is_message)
    }

    /// When a piece sent now arrives. One that is `free` keeps no order with others but for the barriers before it.
    fn arrival(&mut self, now: Duration, connection: u64, side: usize, free: bool, class: FrameClass) -> Duration {
        let Some((from, to)) = self.route(connection, side) else { return now };
        let at = now + self.delay(from, to);
        let Some(found) = self.connections.get_mut(&connection) else { return at };
        let end = &mut found.ends[side];
        let at = at.max(if free { end.barrier } else { end.last });
        if !free {
            end.last = at;
        }
        if class == FrameClass::Essential {
            end.barrier = at;
        }
        end.latest = end.latest.max(at);
        at
    }

    /// A delay from one machine to another, seeded; none within a machine.
    pub(crate) fn delay(&mut self, from: usize, to: usize) -> Duration {
        if from == to {
            return Duration::ZERO;
        }
        let (faults, random) = (&self.faults, &mut self.random);
        let spike = if random.chance(faults.spike_chance) { random.within(&faults.spike) } else { Duration::ZERO };
        let far = self.far.get(&(from, to)).copied().unwrap_or_default();
        random.within(&faults.delay) + spike + far
    }

    pub(crate) fn deliver(&mut self, now: Duration, connection: u64, side: usize, item: Item) {
        let Some((from, to)) = self.route(connection, side) else { return };
        let cut = self.cuts.contains(&(from, to));
        let Some(found) = self.connections.get_mut(&connection) else { return };
        let sender = &mut found.ends[side];
        if now >= sender.mute {
            return;
        }
        if cut || !sender.held.is_empty() {
            let first = sender.held.is_empty();
            sender.held.push_back(item);
            if first {
                self.record(now, Happening::Held { connection, from, to });
            }
            return;
        }
        self.arrive(now, connection, side, item);
    }

    fn arrive(&mut self, now: Duration, connection: u64, side: usize, item: Item) {
        let Some((from, to)) = self.route(connection, side) else { return };
        let Some(found) = self.connections.get_mut(&connection) else { return };
        let receiver = &mut found.ends[1 - side];
        if receiver.broken.is_some() {
            return;
        }
        if receiver.left() {
            // A dead machine is silent; one that runs again, or a program that closed its end, answers with a reset.
            let answers = !receiver.gone || self.machines[to].incarnation.is_some();
            if answers && matches!(item, Item::Bytes(..)) {
                self.send_reset(now, connection, 1 - side);
            }
            return;
        }
        match item {
            Item::Bytes(bytes, what) => {
                let len = bytes.len();
                receiver.inbox.push_back(bytes);
                if let Some(reader) = receiver.reader.take() {
                    reader.wake();
                }
                let is_message = from != to && self.is_message(what.as_deref());
                self.record(now, Happening::Delivered { connection, from, to, len, what: what.clone() });
                if is_message {
                    self.crashes_at_message(now, from, Edge::After, what.as_deref());
                }
            }
            Item::Fin => {
                receiver.eof = true;
                receiver.wake();
                self.record(now, Happening::Closed { connection, from, to });
            }
            Item::Reset => self.break_end(now, connection, 1 - side, io::ErrorKind::ConnectionReset),
        }
    }

    pub(crate) fn release(&mut self, now: Duration, connection: u64, side: usize) {
        let Some((from, to)) = self.route(connection, side) else { return };
        if self.cuts.contains(&(from, to)) {
            return;
        }
        let Some(found) = self.connections.get_mut(&connection) else { return };
        for item in std::mem::take(&mut found.ends[side].held) {
            self.arrive(now, connection, side, item);
        }
    }

    /// Ends what `side` sends: the other end reads to its end.
    pub(crate) fn shut(&mut self, now: Duration, connection: u64, side: usize) {
        let Some((from, to)) = self.route(connection, side) else { return };
        let delay = self.delay(from, to);
        let Some(found) = self.connections.get_mut(&connection) else { return };
        let end = &mut found.ends[side];
        if end.shut || end.gone || end.broken.is_some() {
            return;
        }
        end.shut = true;
        if let Some(rest) = end.cutter.rest() {
            self.send(now, connection, side, rest, false);
        }
        if let Some(found) = self.connections.get(&connection) {
            let at = (now + delay).max(found.ends[side].latest);
            self.schedule(at, Event::Deliver { connection, side, item: Item::Fin });
        }
    }

    /// The holder of this end is gone.
    pub(crate) fn close(&mut self, now: Duration, connection: u64, side: usize) {
        self.shut(now, connection, side);
        if let Some(found) = self.connections.get_mut(&connection) {
            found.ends[side].closed = true;
        }
        self.forget_if_left(connection);
    }

    /// The node of this end has crashed: it neither receives nor answers.
    pub(crate) fn abandon(&mut self, now: Duration, connection: u64, side: usize, silently: bool) {
        let Some((from, to)) = self.route(connection, side) else { return };
        let mute = now + self.delay(from, to);
        let Some(found) = self.connections.get_mut(&connection) else { return };
        let end = &mut found.ends[side];
        if end.left() {
            end.gone = true;
        } else {
            end.gone = true;
            end.broken.get_or_insert(io::ErrorKind::ConnectionReset);
            end.inbox.clear();
            if silently {
                end.mute = mute;
            } else {
                self.send_reset(now, connection, side);
            }
        }
        self.forget_if_left(connection);
    }

    /// A machine that lost this connection runs again and is sent something that belongs to it.
    pub(crate) fn revive(&mut self, now: Duration, connection: u64, side: usize) {
        let Some(found) = self.connections.get_mut(&connection) else { return };
        if found.ends[side].gone && found.ends[1 - side].outstanding > 0 {
            self.send_reset(now, connection, side);
        }
    }

    /// True if a cut keeps back what `side` has sent.
    pub(crate) fn holds_back(&self, connection: u64, side: usize) -> bool {
        self.connections.get(&connection).is_some_and(|found| !found.ends[side].held.is_empty())
    }

    fn forget_if_left(&mut self, connection: u64) {
        if self.connections.get(&connection).is_some_and(|found| found.ends.iter().all(End::left)) {
            self.connections.remove(&connection);
        }
    }

    /// Breaks the connection at `side`, which tells the other end.
    pub(crate) fn reset_connection(&mut self, now: Duration, connection: u64, side: usize) {
        self.break_end(now, connection, side, io::ErrorKind::ConnectionReset);
        self.send_reset(now, connection, side);
    }

    /// `side` waited too long for the other end of a cut.
    pub(crate) fn give_up(&mut self, now: Duration, connection: u64, side: usize, heals: u64) {
        if self.heals == heals {
            self.break_end(now, connection, side, io::ErrorKind::TimedOut);
            self.send_reset(now, connection, side);
        }
    }

    fn send_reset(&mut self, now: Duration, connection: u64, side: usize) {
        if let Some((from, to)) = self.route(connection, side) {
            let at = now + self.delay(from, to);
            if let Some(found) = self.connections.get_mut(&connection) {
                found.ends[side].mute = Duration::MAX;
            }
            self.schedule(at, Event::Deliver { connection, side, item: Item::Reset });
        }
    }

    fn break_end(&mut self, now: Duration, connection: u64, side: usize, kind: io::ErrorKind) {
        let Some(found) = self.connections.get_mut(&connection) else { return };
        let end = &mut found.ends[side];
        if end.broken.is_some() || end.left() {
            return;
        }
        end.broken = Some(kind);
        end.inbox.clear();
        end.wake();
        let at = end.machine;
        self.record(now, Happening::Reset { connection, at });
    }

    /// True once an error has ended the connection at `side`.
    pub(crate) fn is_broken(&self, connection: u64, side: usize) -> bool {
        self.connections.get(&connection).is_none_or(|found| found.ends[side].broken.is_some())
    }

    fn route(&self, connection: u64, side: usize) -> Option<(usize, usize)> {
        let found = self.connections.get(&connection)?;
        Some((found.ends[side].machine, found.ends[1 - side].machine))
    }
}

/// The error of an end whose node has crashed.
fn gone() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}
