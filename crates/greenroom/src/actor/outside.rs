//! Calls that are made outside of all actors: by the program around a node, or by a test.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec};
use greenroom_world::{BoxFuture, Timestamp};
use tokio::sync::oneshot;

use super::call::Made;
use super::error::{CallError, Doubt, Refusal};
use super::interface::Method;
use super::reply::{self, ReplyTo, TYPE_VERSION};
use super::retry;
use crate::shard::baggage::Baggage;
use crate::shard::calls::Completion;
use crate::stream::reply_stream;

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
    baggage: Option<Box<Baggage>>,
    attempt: u32,
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
        let port = made.target.port.clone().ok_or(Refusal::Unbound)?;
        let again = if once { None } else { Again::of(&method, &baggage) };
        let deadline = port.node.deadline(limit);
        let limit = port.node.world().sleep_until(deadline);
        let (sender, receiver) = oneshot::channel();
        let number = port.node.next_outside();
        let mut outside = Self { made, receiver, number, deadline, limit, again, pause: None };
        let message = method.into_message(ReplyTo::outside(sender, number));
        match port.send::<M::Interface>(&outside.made.target, message, deadline, baggage) {
            Ok(()) => Ok(outside),
            Err(refusal) if outside.pauses_for(&refusal) => Ok(outside),
            Err(refusal) => Err(refusal),
        }
    }

    pub(super) fn poll<M: Method>(&mut self, context: &mut Context<'_>) -> Poll<Result<M::Reply, CallError<M::Error>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                if pause.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.pause = None;
                if let Err(refusal) = self.send_again::<M>() {
                    if self.pauses_for(&refusal) {
                        continue;
                    }
                    return Poll::Ready(Err(CallError::Refused(refusal)));
                }
            }
            let mut end = match Pin::new(&mut self.receiver).poll(context) {
                Poll::Ready(Ok(completion)) => {
                    reply_stream::read_at(&self.made.target.port, || reply::result(completion))
                }
                Poll::Ready(Err(_)) => Err(CallError::Unknown(Doubt::Dropped)),
                Poll::Pending => match self.limit.as_mut().poll(context) {
                    Poll::Ready(()) => Err(CallError::Unknown(Doubt::TimedOut(Box::default()))),
                    Poll::Pending => return Poll::Pending,
                },
            };
            match &mut end {
                Err(CallError::Refused(refusal)) if self.pauses_for(refusal) => continue,
                Err(error) => self.made.explain(error),
                Ok(_) => {}
            }
            return Poll::Ready(end);
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

    fn send_again<M: Method>(&mut self) -> Result<(), Refusal> {
        let (Some(again), Some(port)) = (&self.again, &self.made.target.port) else { return Err(Refusal::Unbound) };
        let method: M = codec::decode(&again.arguments).map_err(|error| reply::invalid(&error))?;
        let (sender, receiver) = oneshot::channel();
        (self.receiver, self.number) = (receiver, port.node.next_outside());
        let message = method.into_message(ReplyTo::outside(sender, self.number));
        port.send::<M::Interface>(&self.made.target, message, self.deadline, again.baggage.clone())
    }
}

impl Again {
    /// `None` for arguments that cannot be written down: the error comes when they must be.
    fn of<M: Method>(method: &M, baggage: &Option<Box<Baggage>>) -> Option<Self> {
        let mut out = BytesMut::new();
        codec::encode(Codec::MessagePack, TYPE_VERSION, method, &mut out).ok()?;
        Some(Self { arguments: out.freeze(), baggage: baggage.clone(), attempt: 0 })
    }
}
