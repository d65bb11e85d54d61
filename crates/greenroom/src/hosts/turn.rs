//! A turn of an actor that is in a host.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use greenroom_wire::host::{Leave, Turn};
use greenroom_wire::{ExtensionView, Status};

use super::ask::Asked;
use super::kind::{Foreign, ForeignMessage, ForeignReply};
use super::lane::End;
use super::on_shard::OnShard;
use super::seats::{Seat, Sitter};
use super::state::Stated;
use crate::actor::cx::Cx;
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::interface::Why;
use crate::actor::key::Kind;
use crate::actor::reply;
use crate::shard::Shard;
use crate::shard::calls::Completion;
use crate::shard::turns::Access;

/// A turn that is to begin.
pub(super) struct NewTurn<'a> {
    pub(super) kind: Kind,
    /// By the node's numbers.
    pub(super) method: u16,
    is_awaited: bool,
    is_read: bool,
    is_tick: bool,
    left: Option<Duration>,
    extension: &'a [u8],
    payload: &'a [u8],
}

impl<'a> NewTurn<'a> {
    pub(super) fn frame(&self, turn: u64, seat: u64, method: u32) -> Turn<'a> {
        let Self { is_awaited, is_read, is_tick, left, payload, .. } = *self;
        let extension = ExtensionView::parse(self.extension).unwrap_or_default();
        Turn { turn, seat, method, is_awaited, is_read, is_tick, left, extension, payload }
    }
}

/// Whether a turn has begun.
pub(super) enum Began {
    Turn(u64),
    /// The seat is lost.
    Lost,
    /// The description that the host offers has no such method.
    NoMethod,
    Refused(Refusal),
}

/// What comes of a turn that a host runs.
pub(super) enum Next {
    /// The turn asks for something of its own activation.
    Asked(Asked),
    Ended(End),
}

/// What waits of a turn: gone, it forgets it.
struct Underway {
    session: u64,
    turn: u64,
    over: bool,
    asker: Option<u64>,
    cancelled: bool,
}

/// The states that a turn works with: a read changes none.
pub(super) enum Of<'a> {
    Exclusive(&'a mut Foreign),
    Read(&'a Foreign),
}

impl Of<'_> {
    pub(super) fn get(&self) -> &Foreign {
        match self {
            Of::Exclusive(foreign) => foreign,
            Of::Read(foreign) => foreign,
        }
    }

    fn access(&self) -> Access {
        match self {
            Of::Exclusive(_) => Access::Exclusive,
            Of::Read(_) => Access::Read,
        }
    }
}

/// Runs the turn of `message` in the actor's host, whichever that is.
pub(super) async fn run(cx: &Cx, mut of: Of<'_>, message: ForeignMessage) {
    let ForeignMessage { method, payload, reply } = message;
    let asked = Asking { method, is_read: of.access() == Access::Read, is_awaited: reply.is_awaited() };
    let ended = loop {
        match attempt(cx, &mut of, &asked, &payload).await {
            // Nothing has begun, or nobody sees that it runs again.
            Err(Lost { begun }) if !begun || asked.is_read => {}
            Err(Lost { .. }) => break Err(Failure::from(Doubt::HostLost { actor: cx.id.to_string() })),
            Ok(ended) => break ended,
        }
    };
    answer(reply, ended);
}

struct Asking {
    method: u16,
    is_read: bool,
    is_awaited: bool,
}

struct Lost {
    begun: bool,
}

async fn attempt(
    cx: &Cx,
    of: &mut Of<'_>,
    asked: &Asking,
    payload: &[u8],
) -> Result<Result<(Status, Bytes), Failure>, Lost> {
    let at = match seated(cx, of.get()).await {
        Ok(at) => at,
        Err(refusal) => {
            if let Refusal::NoHost { .. } = refusal {
                end_current(Why::HostLost);
            }
            return Ok(Err(refusal.into()));
        }
    };
    let turn = match begin(cx, at, asked, payload).await {
        Began::Turn(turn) => turn,
        Began::Lost => return Err(Lost { begun: false }),
        Began::NoMethod => {
            let kind = cx.kind().to_owned();
            let methods = cx.port.node.kinds().find(cx.id.kind).map(|kind| kind.methods()).unwrap_or_default();
            let method = methods.get(usize::from(asked.method)).map_or("", |method| method.name).to_owned();
            return Ok(Err(Refusal::UnknownMethod { kind, method, near: Vec::new() }.into()));
        }
        Began::Refused(refusal) => return Ok(Err(refusal.into())),
    };
    let mut underway = Underway { session: at.session, turn, over: false, asker: None, cancelled: false };
    loop {
        match underway.next().await {
            Next::Asked(ask) => ask.carry_out(cx, of, at.session).await,
            Next::Ended(End::Lost { begun }) => return Err(Lost { begun }),
            Next::Ended(End::Said { status, payload, changes }) => {
                if let Of::Exclusive(foreign) = of
                    && !changes.is_empty()
                    && let Stated::Unsaved(doubt) = foreign.save(cx, changes).await
                {
                    leave_seat(Leave::Unsaved);
                    return Ok(Err(doubt.into()));
                }
                if matches!(status, Status::Panicked | Status::Unknown) && of.get().is_kept() {
                    // What its memory is now, nobody has meant.
                    leave_seat(Leave::Failed);
                }
                return Ok(Ok((status, payload)));
            }
        }
    }
}

/// The seat of the current turn's activation.
///
/// # Errors
/// [`Refusal::NoHost`], or why no host can make it.
pub(super) async fn seated(cx: &Cx, foreign: &Foreign) -> Result<Seat, Refusal> {
    let fields = foreign.fields();
    poll_fn(|context| {
        with(|shard, part| {
            let slot = shard.current_slot()?;
            let sitter = Sitter { slot, id: &cx.id, epoch: cx.epoch() };
            Some(part.poll_seat(shard, &sitter, fields.fields(), context.waker()))
        })
        .unwrap_or(Poll::Ready(Err(Refusal::Stopping)))
    })
    .await
}

async fn begin(cx: &Cx, at: Seat, asked: &Asking, payload: &[u8]) -> Began {
    let baggage = Shard::with(|shard| shard.and_then(|shard| shard.baggage()));
    let carried = baggage.as_ref().and_then(|baggage| baggage.carried().ok().flatten());
    let is_tick = baggage.is_some_and(|baggage| baggage.tick.is_some());
    let Asking { method, is_read, is_awaited } = *asked;
    poll_fn(|context| {
        with(|shard, part| {
            let slot = shard.current_slot()?;
            let new = NewTurn {
                kind: cx.id.kind,
                method,
                is_awaited,
                is_read,
                is_tick,
                left: shard.time_left().map(|left| left.max(Duration::from_micros(1))),
                extension: carried.as_deref().unwrap_or_default(),
                payload,
            };
            Some(part.poll_begin(shard, (slot, at), &new, context.waker()))
        })
        .unwrap_or(Poll::Ready(Began::Lost))
    })
    .await
}

impl Underway {
    /// What the turn does next; meanwhile the host hears if the caller gives up.
    async fn next(&mut self) -> Next {
        let next = poll_fn(|context| {
            with(|shard, part| {
                let polled = part.poll_turn(self.session, self.turn, context.waker());
                if polled.is_pending() {
                    self.look_for_cancel(shard, part, context);
                }
                Some(polled)
            })
            .unwrap_or(Poll::Ready(Next::Ended(End::Lost { begun: true })))
        })
        .await;
        self.over = matches!(next, Next::Ended(_));
        next
    }

    fn look_for_cancel(&mut self, shard: &Shard, part: &OnShard, context: &Context<'_>) {
        let key = shard.current_call();
        if self.cancelled || key.is_none() {
            return;
        }
        if shard.is_cancelled(key) {
            self.cancelled = true;
            part.cancel(self.session, self.turn);
        } else {
            self.asker = Some(shard.ask_for_cancel(key, self.asker, context.waker()));
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        with(|shard, part| {
            if let Some(asker) = self.asker {
                shard.forget_asker(shard.current_call(), asker);
            }
            if !self.over {
                part.drop_turn(self.session, self.turn);
            }
            Some(())
        });
    }
}

/// Answers the call with what its host has said of it.
fn answer(reply: ForeignReply, ended: Result<(Status, Bytes), Failure>) {
    let completion = match ended {
        Err(failure) => Completion::Failed(Box::new(failure)),
        Ok((status @ (Status::Ok | Status::ActorError), payload)) => Completion::Wire { status, payload, from: None },
        Ok((_, payload)) if payload.is_empty() => Completion::Failed(Box::new(Doubt::Dropped.into())),
        Ok((_, payload)) => Completion::Failed(Box::new(reply::failure(&payload))),
    };
    reply.finish_with(completion);
}

/// Has the current turn's activation made anew, of what is stored, before its next turn.
pub(super) fn leave_seat(why: Leave) {
    with(|shard, part| {
        part.abandon(shard.current_slot()?, why);
        Some(())
    });
}

fn end_current(why: Why) {
    Shard::with(|shard| {
        if let Some(shard) = shard {
            shard.end_current(why);
        }
    });
}

/// Calls `act` with the shard whose turn this is.
pub(super) fn with<R>(act: impl FnOnce(&Shard, &OnShard) -> Option<R>) -> Option<R> {
    Shard::with(|shard| shard.and_then(|shard| act(shard, OnShard::of(shard))))
}
