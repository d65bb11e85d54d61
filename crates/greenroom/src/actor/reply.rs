//! Where a reply goes. Handlers written by `#[actor]` hold one a message; users never see it.

mod told;
mod wire;

use std::fmt::Display;
use std::marker::PhantomData;

use greenroom_wire::Status;
use greenroom_wire::codec;
use tokio::sync::oneshot;

use super::error::{CallError, Doubt, Failure, Refusal};
use super::interface::Portable;
use crate::here::samples::{cut, cut_json};
use crate::intercept::{OutcomeCell, ReplyOutcome};
use crate::shard::calls::{CallSlot, Completion};
use crate::shard::cancel::CallKey;
use crate::shard::erased::Erased;
use crate::shard::{Item, Shard, ShardId};
use crate::state::Held;

pub(crate) use self::told::ReplyForm;
#[cfg(feature = "http")]
pub(crate) use self::told::read_error;
pub use self::told::{Told, Untold};
pub use self::wire::WireReply;
pub(crate) use self::wire::{Forward, Writes, encode_failure, unencodable};

/// Where the reply of one call goes. Dropped unanswered, it tells the caller that the turn did not end.
pub struct ReplyTo<T: Portable, E: Portable> {
    site: Site,
    of: PhantomData<fn(T, E)>,
}

/// What happens to a reply, its type apart.
enum Site {
    Nobody,
    /// That site, and somebody who wants to know how the turn ended.
    Watched(Box<Watched>),
    /// That site, once the turn's state is saved.
    Held(Box<Site>),
    /// The caller of the turn that answers, which was begun on that caller's stack; told apart by a serial number.
    Below(u64),
    Call {
        shard: ShardId,
        call: CallSlot,
    },
    /// Told apart by a number.
    Outside(oneshot::Sender<Completion>, u32),
    /// In a box, as messages are moved more often than they come from afar.
    Wire(Box<WireReply>),
}

/// A site, and who wants to know how the turn ended.
struct Watched {
    site: Site,
    outcome: OutcomeCell,
}

impl Watched {
    /// Tells how the turn has ended; where the reply goes.
    fn seen(self, outcome: ReplyOutcome) -> Site {
        self.outcome.tell(outcome);
        self.site
    }
}

/// A reply whose types are not known.
pub trait AnyReply: Send {
    /// The call of a shard of this process that waits for it.
    #[doc(hidden)]
    fn call(&self) -> Option<CallSite>;

    /// The name of the call that waits for it.
    #[doc(hidden)]
    fn key(&self) -> CallName;

    /// Whether anybody waits for it.
    fn awaited(&self) -> bool;

    /// Takes it out: what is left here is nobody's.
    fn take(&mut self) -> Box<dyn AnyReply>;

    /// Forgets it without a word: somebody else answers.
    fn disarm(&mut self);

    /// Keeps what it is answered with until the turn's state is saved.
    fn hold(&mut self);

    /// Lets `outcome` hear what it is answered with.
    #[doc(hidden)]
    fn watch(&mut self, outcome: Watcher);

    /// Ends the call with what the runtime has to say.
    #[doc(hidden)]
    fn finish(self: Box<Self>, end: RuntimeEnd);
}

/// The runtime's own end of a call: opaque outside of it.
pub struct RuntimeEnd(pub(crate) Completion);

/// The name of a call that waits: opaque outside of the runtime.
#[derive(Clone, Copy)]
pub struct CallName(pub(crate) CallKey);

/// Who wants to know how a turn ended: opaque outside of the runtime.
pub struct Watcher(pub(crate) OutcomeCell);

/// A waiting call: opaque outside of the runtime.
#[derive(Clone, Copy)]
pub struct CallSite {
    pub(crate) shard: ShardId,
    pub(crate) slot: CallSlot,
}

impl<T: Portable, E: Portable> ReplyTo<T, E> {
    pub(crate) fn nobody() -> Self {
        Self::new(Site::Nobody)
    }

    pub(crate) fn below(serial: u64) -> Self {
        Self::new(Site::Below(serial))
    }

    pub(crate) fn call(shard: ShardId, call: CallSlot) -> Self {
        Self::new(Site::Call { shard, call })
    }

    pub(crate) fn outside(sender: oneshot::Sender<Completion>, number: u32) -> Self {
        Self::new(Site::Outside(sender, number))
    }

    /// The reply of a call that came as bytes.
    pub fn wire(reply: WireReply) -> Self {
        Self::new(if reply.is_awaited() { Site::Wire(Box::new(reply)) } else { Site::Nobody })
    }

    fn new(site: Site) -> Self {
        Self { site, of: PhantomData }
    }

    /// Answers the call.
    pub fn answer(self, result: Result<T, CallError<E>>) {
        if let Err(error) = &result {
            note_error(error);
        }
        // What nobody waits for is not taken apart to find that out.
        if !matches!(self.site, Site::Nobody) {
            self.hand_over(result);
        }
    }

    /// Answers the call, by a turn that is counted already.
    fn hand_over(mut self, result: Result<T, CallError<E>>) {
        let site = std::mem::replace(&mut self.site, Site::Nobody);
        Self::answer_at(site, result);
    }

    fn answer_at(site: Site, result: Result<T, CallError<E>>) {
        match site {
            Site::Nobody => {}
            Site::Watched(watched) => Self::answer_at(watched.seen(ReplyOutcome::of(&result)), result),
            Site::Held(site) => hold(Box::new(HeldReply { reply: Self::new(*site), result })),
            Site::Below(serial) => answer_below(serial, result),
            site if site.leaves_now() && fenced() => site.finish(Completion::Failed(Box::new(Doubt::Fenced.into()))),
            Site::Wire(reply) => reply.answer(result),
            site => site.finish(completion(result)),
        }
    }
}

/// Counts the current turn among those that answer an error.
#[cold]
fn note_error<E: Portable>(error: &CallError<E>) {
    note(&|| match error {
        CallError::Actor(error) => cut_json(error),
        CallError::Refused(refusal) => said(refusal),
        CallError::Unknown(doubt) => said(doubt),
        CallError::Cycle(path) => said(&path.join(" -> ")),
    });
}

fn note(error: &dyn Fn() -> String) {
    Shard::with(|shard| {
        if let Some(shard) = shard {
            shard.note_error(error);
        }
    });
}

fn said(failure: &dyn Display) -> String {
    cut(&failure.to_string())
}

/// Keeps a reply until the current turn's state is saved.
fn hold(reply: Box<dyn Held>) {
    Shard::with(|shard| match shard {
        Some(shard) => shard.hold(reply),
        None => reply.release(),
    });
}

/// Answers the caller of the current turn, which was begun on that caller's stack.
#[inline]
fn answer_below<T: Portable, E: Portable>(serial: u64, result: Result<T, CallError<E>>) {
    Shard::with(|shard| {
        if let Some(shard) = shard {
            shard.answer_below(serial, result);
        }
    });
}

/// Lets the shard answer, when it has caught the panic that this reply was dropped in.
#[cold]
fn orphan(reply: Box<dyn AnyReply>) {
    Shard::with(|shard| match shard {
        Some(shard) => shard.orphan(reply),
        None => std::mem::forget(reply),
    });
}

/// Whether this shard's node may not act on others any more.
fn fenced() -> bool {
    Shard::with(|shard| shard.is_some_and(|shard| !shard.fence_open()))
}

/// The end of a call, its types apart.
pub(crate) fn completion<T: Portable, E: Portable>(result: Result<T, CallError<E>>) -> Completion {
    // What is shown in a rehearsal is compiled there alone.
    #[cfg(feature = "rehearsal")]
    let kept = Erased::shown::<T, E>;
    #[cfg(not(feature = "rehearsal"))]
    let kept = Erased::new::<Result<T, E>>;
    let failure = match result {
        Ok(value) => return Completion::Value(kept(Ok(value))),
        Err(CallError::Actor(error)) => return Completion::Value(kept(Err(error))),
        Err(CallError::Refused(refusal)) => Failure::Refused(refusal),
        Err(CallError::Unknown(doubt)) => Failure::Unknown(doubt),
        Err(CallError::Cycle(path)) => Failure::Cycle(path),
    };
    Completion::Failed(Box::new(failure))
}

/// What a call ended with, as its caller sees it.
pub(crate) fn result<T: Portable, E: Portable>(completion: Completion) -> Result<T, CallError<E>> {
    match completion {
        Completion::Value(value) => match value.take::<Result<T, E>>() {
            Some(result) => result.map_err(CallError::Actor),
            None => Err(unreadable("it has another type")),
        },
        Completion::Failed(failure) => Err((*failure).into()),
        Completion::Wire { status: Status::Ok, payload, .. } => codec::decode(&payload).map_err(unreadable),
        Completion::Wire { status: Status::ActorError, payload, .. } => match codec::decode(&payload) {
            Ok(error) => Err(CallError::Actor(error)),
            Err(error) => Err(unreadable(error)),
        },
        Completion::Wire { payload, .. } => Err(failure(&payload).into()),
    }
}

/// The end of a call, with a failure that came as bytes read.
pub(crate) fn read_failure(completion: Completion) -> Completion {
    match completion {
        Completion::Wire { status: Status::Ok | Status::ActorError, .. } => completion,
        Completion::Wire { payload, .. } => Completion::Failed(Box::new(failure(&payload))),
        completion => completion,
    }
}

/// The failure that another node reports.
pub(crate) fn failure(payload: &[u8]) -> Failure {
    codec::decode(payload).unwrap_or_else(|error| Doubt::Unreadable { message: error.to_string() }.into())
}

fn unreadable<E>(why: impl ToString) -> CallError<E> {
    CallError::Unknown(Doubt::Unreadable { message: why.to_string() })
}

impl Site {
    /// Where the reply goes in the end.
    fn bare(self) -> Self {
        match self {
            Site::Held(site) => site.bare(),
            Site::Watched(watched) => watched.site.bare(),
            site => site,
        }
    }

    /// Whether the reply leaves this node at once. What goes to other nodes is checked against the lease when it leaves,
    /// and so is all that other shards make of a reply.
    fn leaves_now(&self) -> bool {
        match self {
            Site::Nobody | Site::Watched(_) | Site::Held(_) | Site::Below(_) | Site::Call { .. } => false,
            Site::Outside(..) => true,
            Site::Wire(reply) => reply.is_of_gateway(),
        }
    }

    fn key(&self) -> CallKey {
        match self {
            Site::Nobody | Site::Below(_) => CallKey::NONE,
            Site::Held(site) => site.key(),
            Site::Watched(watched) => watched.site.key(),
            Site::Call { shard, call } => CallKey::local(CallSite { shard: *shard, slot: *call }),
            Site::Outside(_, number) => CallKey::outside(*number),
            Site::Wire(reply) => reply.key(),
        }
    }

    fn finish(self, completion: Completion) {
        match self {
            // Only who knows the types can answer there.
            Site::Nobody | Site::Held(_) | Site::Below(_) => {}
            Site::Watched(watched) => watched.site.finish(completion),
            Site::Call { shard, call } => complete(CallSite { shard, slot: call }, completion),
            Site::Outside(sender, _) => {
                // An error means that the caller has gone.
                let _ = sender.send(completion);
            }
            Site::Wire(reply) => WireReply::finish(*reply, completion),
        }
    }
}

impl<T: Portable, E: Portable> Drop for ReplyTo<T, E> {
    fn drop(&mut self) {
        if matches!(self.site, Site::Nobody) {
            return;
        }
        match std::mem::replace(&mut self.site, Site::Nobody).bare() {
            // After a panic, the shard tells the caller.
            Site::Below(_) if std::thread::panicking() => {}
            Site::Below(serial) => answer_below::<T, E>(serial, Err(CallError::Unknown(Doubt::Dropped))),
            // The panic's message is not known yet.
            site if std::thread::panicking() => orphan(Box::new(Self::new(site))),
            site => site.finish(Completion::Failed(Box::new(Doubt::Dropped.into()))),
        }
    }
}

impl<T: Portable, E: Portable> AnyReply for ReplyTo<T, E> {
    fn call(&self) -> Option<CallSite> {
        match self.site {
            Site::Call { shard, call } => Some(CallSite { shard, slot: call }),
            _ => None,
        }
    }

    fn key(&self) -> CallName {
        CallName(self.site.key())
    }

    fn awaited(&self) -> bool {
        !matches!(self.site, Site::Nobody)
    }

    fn take(&mut self) -> Box<dyn AnyReply> {
        Box::new(Self::new(std::mem::replace(&mut self.site, Site::Nobody)))
    }

    fn disarm(&mut self) {
        self.site = Site::Nobody;
    }

    fn hold(&mut self) {
        if self.awaited() {
            self.site = Site::Held(Box::new(std::mem::replace(&mut self.site, Site::Nobody)));
        }
    }

    fn watch(&mut self, outcome: Watcher) {
        let site = std::mem::replace(&mut self.site, Site::Nobody);
        self.site = Site::Watched(Box::new(Watched { site, outcome: outcome.0 }));
    }

    fn finish(mut self: Box<Self>, end: RuntimeEnd) {
        let site = std::mem::replace(&mut self.site, Site::Nobody).bare();
        match (site, end.0) {
            (Site::Below(serial), completion) => answer_below::<T, E>(serial, result(completion)),
            // The bytes pass through, but for a caller in another codec.
            (Site::Wire(reply), Completion::Value(value)) => match value.take::<Result<T, E>>() {
                Some(result) => reply.answer::<T, E>(result.map_err(CallError::Actor)),
                None => WireReply::finish(*reply, Completion::Failed(Box::new(Doubt::Dropped.into()))),
            },
            (site, completion) => site.finish(completion),
        }
    }
}

/// A reply that waits for its turn's state to be saved.
struct HeldReply<T: Portable, E: Portable> {
    reply: ReplyTo<T, E>,
    result: Result<T, CallError<E>>,
}

impl<T: Portable, E: Portable> Held for HeldReply<T, E> {
    fn release(self: Box<Self>) {
        let Self { reply, result } = *self;
        reply.hand_over(result);
    }

    fn fail(self: Box<Self>, failure: Failure) {
        self.reply.answer(Err(failure.into()));
    }
}

/// Ends a call of a shard of this node.
fn complete(CallSite { shard, slot }: CallSite, completion: Completion) {
    Shard::with(|current| match current {
        Some(current) if current.id() == shard => current.complete(slot, completion),
        Some(current) => current.post(shard, Item::Completion { call: slot, completion }),
        // The node is being torn down, and the caller's shard with it.
        None => {}
    });
}

/// A refusal, as an end of a call.
pub(crate) fn refused(refusal: Refusal) -> RuntimeEnd {
    RuntimeEnd(Completion::Failed(Box::new(refusal.into())))
}

/// Version of the types in payloads; kinds that evolve will set their own.
pub const TYPE_VERSION: u8 = 1;

/// Arguments that do not fit.
pub(crate) fn invalid(error: &codec::DecodeError) -> Refusal {
    let (field, message) = match error {
        codec::DecodeError::WrongType { path, what } | codec::DecodeError::Malformed { path, what, .. } => {
            (path.to_string(), what.to_string())
        }
        other => (String::new(), other.to_string()),
    };
    Refusal::Invalid { field, message }
}
