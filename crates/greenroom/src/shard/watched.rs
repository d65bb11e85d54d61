//! Turns that somebody watches: interceptors, or who reads logs in detail.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom_wire::ChainView;
use greenroom_world::Timestamp;
use tracing::Instrument;

use super::Shard;
use super::activation::Activation;
use super::baggage::Baggage;
use super::frames::{Begun, Caller};
use super::turns::{Access, Link};
use crate::actor::error::Refusal;
use crate::actor::interface::{Behaviour, Interface, Message};
use crate::actor::reference::Inner;
use crate::actor::reply::{Watcher, refused};
use crate::intercept::{CallInfo, Watch};

/// Whether somebody reads a span for each turn: a look at one number if nobody does.
#[inline]
pub(super) fn spans_are_read() -> bool {
    tracing::enabled!(target: "greenroom::turn", tracing::Level::DEBUG)
}

impl<A: Behaviour> Activation<A> {
    /// Begins a turn, unless an interceptor refuses it.
    #[cold]
    pub(super) fn begin_watched(
        self: &Rc<Self>,
        shard: &Shard,
        access: Access,
        mut message: Message<A>,
        (deadline, queued): (Timestamp, Option<Duration>),
        mut caller: Caller,
    ) -> Begun {
        shard.note_waited(self.cx.id.kind, || A::Interface::method(&message), queued);
        let queued = queued.unwrap_or_default();
        let method = self.kind.methods()[usize::from(A::Interface::method(&message))].name;
        let (waiting, baggage) = match &mut caller {
            Caller::Apart { chain, .. } => (shard.waiting(&chain.link), &mut chain.baggage),
            Caller::Below { baggage, .. } => (shard.current_actor(), baggage),
        };
        let mut watch = None;
        if let Some(chain) = self.kind.interceptors() {
            let came_with = baggage.as_ref().and_then(|baggage| baggage.trace.clone());
            let mut call = CallInfo { actor: &self.cx.id, method, caller: waiting, queued, came_with, baggage };
            match Watch::begin(chain, &mut call, shard.now()) {
                Ok(begun) => {
                    A::Interface::reply(&mut message).watch(Watcher(begun.outcome()));
                    watch = Some(begun);
                }
                Err(refusal) => return refuse::<A>(message, &caller, refusal),
            }
        }
        let trace = baggage_of(&caller).and_then(|baggage| baggage.trace.as_ref());
        let span = tracing::debug_span!(
            target: "greenroom::turn",
            "turn",
            actor = %self.cx.id,
            method,
            trace = trace.map(|trace| tracing::field::display(trace.trace_hex())),
        );
        let (job, turn) = self.turn(shard, access, message);
        let watched = async move {
            turn.await;
            drop(watch);
        };
        shard.begin_turn(self.clone(), job, deadline, caller, Box::pin(watched.instrument(span)))
    }
}

fn baggage_of(caller: &Caller) -> Option<&Arc<Baggage>> {
    match caller {
        Caller::Apart { chain, .. } => chain.baggage.as_ref(),
        Caller::Below { baggage, .. } => baggage.as_ref(),
    }
}

fn refuse<A: Behaviour>(mut message: Message<A>, caller: &Caller, refusal: Refusal) -> Begun {
    let reply = A::Interface::reply(&mut message);
    if let Caller::Below { .. } = caller {
        // Who waits is on this stack, and is told there.
        reply.disarm();
        return Begun::Failed(Box::new(refusal.into()));
    }
    reply.take().finish(refused(refusal));
    Begun::Over
}

impl Shard {
    /// Lets interceptors see a message that leaves the current turn.
    #[cold]
    pub(super) fn outgoing(
        &self,
        target: &Inner,
        method: &'static str,
        awaited: bool,
        baggage: &mut super::baggage::Load,
    ) -> Result<(), Refusal> {
        let caller = if awaited { self.current_actor() } else { None };
        let came_with = baggage.as_ref().and_then(|baggage| baggage.trace.clone());
        let mut call = CallInfo { actor: &target.id, method, caller, queued: Duration::ZERO, came_with, baggage };
        self.port().node.kinds().interceptors().outgoing(&mut call)
    }

    /// The actor whose turn waits.
    fn waiting(&self, link: &Link) -> Option<Box<str>> {
        match link {
            Link::None => None,
            Link::Turn(turn) => self.turns.borrow().find(*turn).map(|turn| turn.activation.id().to_string().into()),
            Link::Path(path) => {
                let (kind, key) = ChainView::parse(path).ok()?.entries().last()?;
                Some(format!("{kind}/{key}").into())
            }
        }
    }

    /// The actor whose turn is being polled.
    fn current_actor(&self) -> Option<Box<str>> {
        self.current().map(|frame| frame.activation.id().to_string().into())
    }
}
