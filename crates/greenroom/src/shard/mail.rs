//! A message in the hands of who brings it on its way, its types apart.
//!
//! Only a turn that begins at once, on the stack of its caller, gains by knowing the types of its message. All else of a
//! message's way is compiled once, for messages of all interfaces.

use std::any::Any;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use greenroom_wire::{EncodeError, codec};
use greenroom_world::Timestamp;

use super::chain::Chain;
use super::envelope::{Body, Envelope, WireCall};
use super::submit::{AnyParcel, Parcel};
use super::{Shard, Slot};
use crate::actor::error::Refusal;
use crate::actor::interface::{Interface, Method, MethodInfo};
use crate::actor::reference::Inner;
use crate::actor::reply::{AnyReply, ReplyTo};

/// A message that may be taken out of its bearer's hands.
pub(crate) trait AnyMail {
    /// What it is a message of.
    fn interface(&self) -> &'static Described;

    /// The `Option<Envelope<_>>` that an activation takes it out of.
    fn envelope(&mut self) -> &mut dyn Any;

    /// What it is, if it has not been taken.
    fn form(&self) -> Form;

    fn deadline(&self) -> Timestamp;

    /// What comes with it; `None` if it has been taken.
    fn chain(&mut self) -> Option<&mut Chain>;

    /// Where the reply goes of a message that is read.
    fn reply(&mut self) -> Option<&mut dyn AnyReply>;

    /// Writes the arguments of a message that is read.
    fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError>;

    /// Takes a message as it came from afar.
    fn take_wire(&mut self) -> Option<WireCall>;

    /// Takes it out of `shard`, into a box of its own.
    fn seal(&mut self, shard: &Shard, target: &Arc<Inner>) -> Option<Box<dyn AnyParcel>>;

    /// Takes it out of `shard`, for an activation in `slot` of the shard at `index`.
    fn post(&mut self, shard: &Shard, index: usize, slot: Slot, target: &Arc<Inner>);

    /// Drops it.
    fn clear(&mut self);
}

/// An interface, as far as the way of its messages needs to know it.
pub(crate) struct Described {
    pub(crate) kind: &'static str,
    pub(crate) methods: &'static [MethodInfo],
    pub(crate) version: u16,
    pub(crate) reliable: bool,
}

impl Described {
    pub(crate) fn of<I: Interface>() -> &'static Self {
        &Mail::<I>::INTERFACE
    }

    /// The name of a method.
    pub(crate) fn name(&self, method: u16) -> &'static str {
        self.methods.get(usize::from(method)).map_or("", |method| method.name)
    }
}

/// The arguments of a message that is read.
///
/// # Errors
/// [`Refusal::Unsendable`]; the message is still there.
pub(crate) fn written(mail: &dyn AnyMail) -> Result<Bytes, Refusal> {
    codec::written(|out| mail.encode(out)).map_err(|error| Refusal::Unsendable { message: error.to_string() })
}

/// The arguments of a call, as they travel.
///
/// # Errors
/// [`Refusal::Unsendable`]: they have no encoding.
pub(crate) fn arguments<M: Method>(method: M) -> Result<Bytes, Refusal> {
    let message = method.into_message(ReplyTo::nobody());
    let encoded = codec::written(|out| M::Interface::encode(&message, out));
    encoded.map_err(|error| Refusal::Unsendable { message: error.to_string() })
}

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Taken,
    /// A call of this method.
    Typed(u16),
    /// The same, not yet read.
    Wire(u16),
    /// News for an `ended` hook.
    Ended,
    Tick,
}

/// A message of a known interface.
pub(crate) struct Mail<'a, I: Interface>(pub(crate) &'a mut Option<Envelope<I::Message>>);

impl<I: Interface> Mail<'_, I> {
    const INTERFACE: Described =
        Described { kind: I::KIND, methods: I::METHODS, version: I::VERSION, reliable: I::RELIABLE };
}

impl<I: Interface> AnyMail for Mail<'_, I> {
    fn interface(&self) -> &'static Described {
        Described::of::<I>()
    }

    fn envelope(&mut self) -> &mut dyn Any {
        self.0
    }

    fn form(&self) -> Form {
        match self.0.as_ref().map(|envelope| &envelope.body) {
            None => Form::Taken,
            Some(Body::Typed(message)) => Form::Typed(I::method(message)),
            Some(Body::Wire(call)) => Form::Wire(call.method),
            Some(Body::Ended(_)) => Form::Ended,
            Some(Body::Tick(_)) => Form::Tick,
        }
    }

    fn deadline(&self) -> Timestamp {
        self.0.as_ref().map_or(Timestamp::NEVER, |envelope| envelope.deadline)
    }

    fn chain(&mut self) -> Option<&mut Chain> {
        self.0.as_mut().map(|envelope| &mut envelope.chain)
    }

    fn reply(&mut self) -> Option<&mut dyn AnyReply> {
        match &mut self.0.as_mut()?.body {
            Body::Typed(message) => Some(I::reply(message)),
            Body::Wire(call) => Some(&mut call.reply),
            Body::Ended(_) | Body::Tick(_) => None,
        }
    }

    fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self.0.as_ref().map(|envelope| &envelope.body) {
            Some(Body::Typed(message)) => I::encode(message, out),
            _ => Ok(()),
        }
    }

    fn take_wire(&mut self) -> Option<WireCall> {
        match self.0.take_if(|envelope| matches!(envelope.body, Body::Wire(_) | Body::Tick(_)))?.body {
            Body::Wire(call) => Some(*call),
            Body::Tick(tick) => Some(tick.0),
            Body::Typed(_) | Body::Ended(_) => None,
        }
    }

    fn seal(&mut self, shard: &Shard, target: &Arc<Inner>) -> Option<Box<dyn AnyParcel>> {
        let envelope = self.0.take()?.portable(shard);
        Some(Box::new(Parcel::<I> { target: target.clone(), envelope }))
    }

    fn post(&mut self, shard: &Shard, index: usize, slot: Slot, target: &Arc<Inner>) {
        if let Some(envelope) = self.0.take() {
            shard.post_message::<I>(index, slot, target.clone(), envelope);
        }
    }

    fn clear(&mut self) {
        *self.0 = None;
    }
}

/// Whether anybody waits for an answer to a message.
pub(super) fn is_awaited(mail: &mut dyn AnyMail) -> bool {
    mail.reply().is_some_and(|reply| reply.call().is_some() || reply.awaited())
}

/// The version that the caller of a message speaks.
pub(super) fn wanted(mail: &mut dyn AnyMail) -> u16 {
    match (mail.form(), mail.chain()) {
        (Form::Wire(_), Some(chain)) => chain.wanted(),
        _ => mail.interface().version,
    }
}
