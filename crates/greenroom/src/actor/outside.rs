//! Calls that are made outside of all actors: by the program around a node, or by a test.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec};
use greenroom_world::{BoxFuture, Timestamp};
use tokio::sync::oneshot;

use super::call::Made;
use super::error::{Doubt, Failure, Refusal};
use super::interface::Method;
use super::reference::Inner;
use super::reply::{self, ReplyTo, TYPE_VERSION};
use super::retry;
use crate::shard::baggage::Baggage;
use crate::shard::calls::Completion;

/// A call under way whose caller is on no shard.
pub(super) struct Outside {
    made: Made,
    receiver: oneshot::Receiver<Completion>,
    /// Tells this try from all others of the node.
    number: u32,
    deadline: Timestamp,
    /// Resolves at the deadline.
    limit: BoxFuture<()>,
    /// What it takes to make the call again, if it may be.
    again: Option<Again>,
    /// Until when it waits before it is made again.
    pause: Option<BoxFuture<()>>,
}

struct Again {
    arguments: Bytes,
    send: SendAgain,
    baggage: Option<Box<Baggage>>,
    attempt: u32,
}

/// Reads a call's arguments and sends it.
type SendAgain = fn(&Arc<Inner>, &[u8], Try) -> Result<(), Refusal>;

/// One try of a call.
struct Try {
    sender: oneshot::Sender<Completion>,
    number: u32,
    deadline: Timestamp,
    baggage: Option<Box<Baggage>>,
}

impl Try {
    fn send<M: Method>(self, target: &Arc<Inner>, method: M) -> Result<(), Refusal> {
        let Self { sender, number, deadline, baggage } = self;
        let port = target.port.as_ref().ok_or(Refusal::Unbound)?;
        let message = method.into_message(ReplyTo::outside(sender, number));
        port.send::<M::Interface>(target, message, deadline, baggage)
    }

    fn send_again<M: Method>(target: &Arc<Inner>, arguments: &[u8], this: Try) -> Result<(), Refusal> {
        let method: M = codec::decode(arguments).map_err(|error| reply::invalid(&error))?;
        this.send(target, method)
    }
}

impl Outside {
    /// Makes the call; `once` if it is not to be made again whatever refuses it.
    pub(super) fn begin<M: Method>(
        made: Made,
        method: M,
        baggage: Option<Box<Baggage>>,
        limit: Option<Duration>,
        once: bool,
    ) -> Result<Self, Refusal> {
        let again = if once { None } else { Again::of(&method, &baggage) };
        let (outside, first) = Self::new(made, baggage, limit, again)?;
        let sent = first.send(&outside.made.target, method);
        outside.sent(sent)
    }

    fn new(
        made: Made,
        baggage: Option<Box<Baggage>>,
        limit: Option<Duration>,
        again: Option<Again>,
    ) -> Result<(Self, Try), Refusal> {
        let port = made.target.port.clone().ok_or(Refusal::Unbound)?;
        let deadline = port.node.deadline(limit);
        let limit = port.node.world().sleep_until(deadline);
        let (sender, receiver) = oneshot::channel();
        let number = port.node.next_outside();
        let first = Try { sender, number, deadline, baggage };
        Ok((Self { made, receiver, number, deadline, limit, again, pause: None }, first))
    }

    fn sent(mut self, sent: Result<(), Refusal>) -> Result<Self, Refusal> {
        match sent {
            Ok(()) => Ok(self),
            Err(refusal) if self.pauses_for(&refusal) => Ok(self),
            Err(refusal) => Err(refusal),
        }
    }

    pub(super) fn made(&self) -> &Made {
        &self.made
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Completion> {
        loop {
            if let Some(pause) = &mut self.pause {
                if pause.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.pause = None;
                if let Err(refusal) = self.send_again() {
                    if self.pauses_for(&refusal) {
                        continue;
                    }
                    return Poll::Ready(Completion::Failed(Box::new(refusal.into())));
                }
            }
            let end = match Pin::new(&mut self.receiver).poll(context) {
                Poll::Ready(Ok(completion)) => reply::read_failure(completion),
                Poll::Ready(Err(_)) => Completion::Failed(Box::new(Doubt::Dropped.into())),
                Poll::Pending => match self.limit.as_mut().poll(context) {
                    Poll::Ready(()) => Completion::Failed(Box::new(Doubt::TimedOut(Box::default()).into())),
                    Poll::Pending => return Poll::Pending,
                },
            };
            match &end {
                Completion::Failed(failure)
                    if let Failure::Refused(refusal) = &**failure
                        && self.pauses_for(refusal) => {}
                _ => return Poll::Ready(end),
            }
        }
    }

    /// Tells who runs the call that its caller has gone.
    pub(super) fn abandon(&self) {
        let target = &self.made.target;
        if let (Some(port), None) = (&target.port, &self.pause) {
            port.node.abandon_outside(self.number, self.deadline, &target.id, target.hash);
        }
    }

    /// Whether the call is made again after this refusal: it pauses then, within its time.
    fn pauses_for(&mut self, refusal: &Refusal) -> bool {
        let (Some(again), Some(port)) = (&mut self.again, &self.made.target.port) else { return false };
        let world = port.node.world();
        // A node that has stopped stays so.
        if !retry::may_help(refusal) || port.node.is_stopped() {
            return false;
        }
        let pause = retry::pause(again.attempt, refusal, world.random());
        let until = world.now() + pause;
        // A try that could not be answered in time would make a doubt of a refusal.
        if until + pause.max(retry::PAUSE_MIN) >= self.deadline {
            return false;
        }
        again.attempt += 1;
        self.pause = Some(world.sleep_until(until));
        true
    }

    fn send_again(&mut self) -> Result<(), Refusal> {
        let (Some(again), Some(port)) = (&self.again, &self.made.target.port) else { return Err(Refusal::Unbound) };
        let (sender, receiver) = oneshot::channel();
        (self.receiver, self.number) = (receiver, port.node.next_outside());
        let next = Try { sender, number: self.number, deadline: self.deadline, baggage: again.baggage.clone() };
        (again.send)(&self.made.target, &again.arguments, next)
    }
}

impl Again {
    /// `None` for arguments that cannot be written down: the error comes when they must be.
    fn of<M: Method>(method: &M, baggage: &Option<Box<Baggage>>) -> Option<Self> {
        let mut out = BytesMut::new();
        codec::encode(Codec::MessagePack, TYPE_VERSION, method, &mut out).ok()?;
        Some(Self { arguments: out.freeze(), send: Try::send_again::<M>, baggage: baggage.clone(), attempt: 0 })
    }
}
