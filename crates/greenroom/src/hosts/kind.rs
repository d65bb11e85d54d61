//! Actors in hosts, as their node has them: everything but the instance and its handlers.

use std::future::{Future, poll_fn};
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::node::Instances;
use greenroom_wire::codec::DecodeError;
use greenroom_wire::host::Leave;
use greenroom_wire::{EncodeError, Status};

use super::packing;
use super::state::States;
use super::turn::{self, Of, with};
use crate::actor::cx::Cx;
use crate::actor::error::Refusal;
use crate::actor::interface::{Actor, Behaviour, Interface, MethodInfo, Options, Travels, Why};
use crate::actor::reference::Ref;
use crate::actor::reply::{AnyReply, CallName, CallSite, RuntimeEnd, Watcher, WireReply};
use crate::intercept::{OutcomeCell, ReplyOutcome};
use crate::reliable::hosted::Journaled;
use crate::shard::calls::Completion;
use crate::state::{Saving, StateError};

/// An actor in a host.
#[derive(Default)]
pub(crate) struct Foreign {
    /// What is stored of it.
    pub(super) states: States,
    /// What is in a journal of it, if it is reliable.
    pub(super) journaled: Option<Journaled>,
    /// What it has brought from another node, until a host has it.
    pub(super) carried: Option<Bytes>,
    /// Why it could not be activated.
    refusal: Option<Refusal>,
}

/// The interface of all of them: a message is a method's number and bytes.
pub(crate) struct ForeignInterface;

/// A message for an actor in a host.
pub(crate) struct ForeignMessage {
    pub(super) method: u16,
    pub(super) payload: Bytes,
    pub(super) reply: ForeignReply,
}

/// Where its reply goes, and who wants to know how the turn ended.
pub(crate) struct ForeignReply {
    to: WireReply,
    outcome: Option<OutcomeCell>,
}

impl ForeignReply {
    pub(super) fn is_awaited(&self) -> bool {
        self.to.is_awaited()
    }

    /// Ends the call.
    pub(super) fn finish_with(self, completion: Completion) {
        if let Some(outcome) = self.outcome {
            outcome.tell(match &completion {
                Completion::Wire { status: Status::Ok, .. } => ReplyOutcome::Ok,
                Completion::Wire { status: Status::ActorError, .. } => ReplyOutcome::OwnError,
                _ => ReplyOutcome::Failure,
            });
        }
        WireReply::finish(self.to, completion);
    }

    fn taken(&mut self) -> Self {
        Self { to: std::mem::replace(&mut self.to, WireReply::nobody()), outcome: self.outcome.take() }
    }
}

impl AnyReply for ForeignReply {
    fn call(&self) -> Option<CallSite> {
        None
    }

    fn key(&self) -> CallName {
        CallName(self.to.key())
    }

    fn awaited(&self) -> bool {
        self.to.is_awaited()
    }

    fn take(&mut self) -> Box<dyn AnyReply> {
        Box::new(self.taken())
    }

    fn disarm(&mut self) {
        self.to.forget();
    }

    /// Its host's changes are saved before it is answered.
    fn hold(&mut self) {}

    fn watch(&mut self, outcome: Watcher) {
        self.outcome = Some(outcome.0);
    }

    fn finish(self: Box<Self>, end: RuntimeEnd) {
        let Self { to, outcome } = *self;
        if let Some(outcome) = outcome {
            outcome.tell(ReplyOutcome::Failure);
        }
        AnyReply::finish(Box::new(to), end);
    }
}

/// A reference to such an actor: nothing is called by it.
#[derive(Clone)]
pub(crate) struct ForeignRef(Ref<ForeignInterface>);

impl From<Ref<ForeignInterface>> for ForeignRef {
    fn from(reference: Ref<ForeignInterface>) -> Self {
        Self(reference)
    }
}

impl AsRef<Ref<ForeignInterface>> for ForeignRef {
    fn as_ref(&self) -> &Ref<ForeignInterface> {
        &self.0
    }
}

impl Interface for ForeignInterface {
    type Message = ForeignMessage;
    type Ref = ForeignRef;
    /// Each entry has its own.
    const KIND: &'static str = "greenroom.foreign";
    const METHODS: &'static [MethodInfo] = &[];
    /// No kind that a host may offer is internal.
    const INTERNAL: bool = false;

    fn method(message: &ForeignMessage) -> u16 {
        message.method
    }

    fn reply(message: &mut ForeignMessage) -> &mut dyn AnyReply {
        &mut message.reply
    }

    fn encode(message: &ForeignMessage, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.extend_from_slice(&message.payload);
        Ok(())
    }

    fn decode(method: u16, payload: &[u8], reply: WireReply) -> Result<ForeignMessage, Box<(DecodeError, WireReply)>> {
        // Its host reads it.
        let reply = ForeignReply { to: reply, outcome: None };
        Ok(ForeignMessage { method, payload: Bytes::copy_from_slice(payload), reply })
    }
}

impl Actor for Foreign {}

impl Behaviour for Foreign {
    type Interface = ForeignInterface;
    /// What a kind says itself covers it.
    const OPTIONS: Options = Options {
        placement: "",
        workers: 0,
        idle: None,
        mailbox: None,
        in_flight: None,
        persistent: false,
        reliable: false,
        saving: Saving::Explicit,
        store: "",
        instances: Instances::Optimistic,
        adaptive: false,
        home: "",
        protocol: "",
        leader: "",
        optimise: None,
    };
    const ACTIVATED: bool = true;
    const DEACTIVATING: bool = true;
    const ENDED: bool = false;
    const TRAVELS: Travels = Travels::Carrying;
    const FOREIGN: bool = true;

    async fn exclusive(&mut self, cx: &Cx, message: ForeignMessage) {
        turn::run(cx, Of::Exclusive(self), message).await;
    }

    async fn read(&self, cx: &Cx, message: ForeignMessage) {
        turn::run(cx, Of::Read(self), message).await;
    }

    async fn activated(&mut self, cx: &Cx) -> Result<(), String> {
        let made = match self.load(cx).await {
            Ok(()) => turn::seated(cx, self).await,
            Err(refusal) => Err(refusal),
        };
        made.map_err(|refusal| {
            let message = refusal.to_string();
            self.refusal = Some(refusal);
            message
        })
    }

    async fn refresh(&mut self, cx: &Cx) -> Result<(), StateError> {
        if self.is_changed(cx).await? {
            // Its host has a copy.
            turn::leave_seat(Leave::Unsaved);
            let loaded = self.load(cx).await;
            loaded.map_err(|refusal| StateError::not_loaded(&cx.id.to_string(), refusal))?;
        }
        Ok(())
    }

    fn not_activated(&mut self, message: String) -> Refusal {
        self.refusal.take().unwrap_or(Refusal::Activation { message })
    }

    async fn migrating(&mut self, cx: &Cx) -> Result<Bytes, String> {
        match cx.port.node.kinds().travels(cx.id.kind) {
            Travels::Carrying => packing::pack().await,
            // What it holds is stored.
            Travels::ByStore | Travels::Not => Ok(Bytes::new()),
        }
    }

    async fn migrated(&mut self, _: &Cx, carried: &[u8]) -> Result<(), String> {
        self.carried = (!carried.is_empty()).then(|| Bytes::copy_from_slice(carried));
        Ok(())
    }

    fn deactivating(&mut self, _: &Cx, why: Why) -> impl Future<Output = ()> + Send {
        poll_fn(move |context| {
            let left = with(|shard, part| Some(part.poll_leave(shard, shard.current_slot()?, why, context.waker())));
            left.unwrap_or(Poll::Ready(()))
        })
    }
}
