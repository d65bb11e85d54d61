//! A turn of an actor that is in a host.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use greenroom_protocols::host::Cookie;
use greenroom_wire::host::{Leave, Turn};
use greenroom_wire::{ExtensionView, Status};

use super::Hosts;
use super::ask::Asked;
use super::kind::{Foreign, ForeignMessage, ForeignReply};
use super::lane::End;
use super::machine;
use super::on_shard::OnShard;
use super::reads;
use super::seats::Sitter;
use super::session::Session;
use super::state::Stated;
use super::streams::Items;
use crate::actor::cx::Cx;
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::interface::Why;
use crate::actor::reply;
use crate::reliable::hosted::HostedTurn;
use crate::shard::Shard;
use crate::shard::baggage::Load;
use crate::shard::calls::Completion;
use crate::shard::turns::Access;

/// A turn that is to begin.
#[derive(Clone)]
pub(super) struct NewTurn {
    /// By the node's numbers.
    pub(super) method: u16,
    is_awaited: bool,
    pub(super) is_read: bool,
    is_tick: bool,
    pub(super) extension: Bytes,
    pub(super) payload: Bytes,
}

impl NewTurn {
    /// Its frame, with its numbers in a session and its arguments as the host reads them.
    pub(super) fn frame<'a>(
        &'a self,
        (turn, seat, method): (u64, u64, u32),
        left: Option<Duration>,
        payload: &'a [u8],
    ) -> Turn<'a> {
        let Self { is_awaited, is_read, is_tick, .. } = self;
        let (is_awaited, is_read, is_tick) = (*is_awaited, *is_read, *is_tick);
        let extension = ExtensionView::parse(&self.extension).unwrap_or_default();
        Turn { turn, seat, method, is_awaited, is_read, is_tick, left, extension, payload }
    }
}

/// What comes of a turn that a host runs.
pub(super) enum Next {
    /// The turn asks for something of its own activation.
    Asked(Asked),
    Ended(End),
}

/// What waits of a turn: gone, it forgets it.
struct Underway {
    cookie: Cookie,
    /// Where it runs, once that is known.
    session: u64,
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
    let baggage = baggage_of_turn();
    let carried = baggage.as_ref().and_then(|baggage| baggage.carried().ok().flatten());
    let new = NewTurn {
        method,
        is_awaited: reply.is_awaited(),
        is_read: of.access() == Access::Read,
        is_tick: baggage.is_some_and(|baggage| baggage.tick.is_some()),
        extension: carried.unwrap_or_default(),
        payload,
    };
    let hosted = HostedTurn::of(&baggage_of_turn());
    if let Some(refusal) = hosted.as_ref().and_then(|hosted| machine::unwanted(hosted, cx, of.get(), method)) {
        return answer(reply, Err(refusal.into()));
    }
    let mut deaths = 0;
    let ended = loop {
        if let Some(hosted) = &hosted {
            hosted.begin();
        }
        let lost = match attempt(cx, &mut of, &new).await {
            Attempt::Ended(ended) => break ended,
            Attempt::Lost(lost) => lost,
        };
        if !lost.has_killed(cx).await {
            continue;
        }
        if let Some(hosted) = hosted.as_ref().filter(|_| cx.port.node.config().checks.delivery.counted_deaths) {
            // Its partition counts the death before the turn runs again.
            hosted.die();
            break Err(host_lost(cx));
        }
        deaths += 1;
        if deaths >= READ_DEATHS_MAX {
            break Err(host_lost(cx));
        }
    };
    answer(reply, ended);
}

fn host_lost(cx: &Cx) -> Failure {
    Doubt::HostLost { actor: cx.id.to_string() }.into()
}

/// Result of sending a turn to a host.
enum Attempt {
    Ended(Result<(Status, Bytes), Failure>),
    /// The host is lost, and the turn is to run again.
    Lost(LostHost),
}

/// Host that a turn has lost.
#[derive(Default)]
pub(super) struct LostHost {
    /// True if the host may have begun the turn.
    pub(super) is_begun: bool,
    /// Its session.
    pub(super) session: Option<Arc<Session>>,
}

impl LostHost {
    /// Returns true if the host died, perhaps of the turn, and did not merely lose a connection. Waits until that is known; meanwhile no
    /// other host would run the turn, as the lost one may still act.
    async fn has_killed(&self, cx: &Cx) -> bool {
        let Some(session) = self.session.as_ref().filter(|_| self.is_begun) else { return self.is_begun };
        let world = cx.port.node.world();
        loop {
            if let Some(died) = session.died.get() {
                return *died;
            }
            // The host need not join its lane again: another one gets the seat as soon as this one has dropped it.
            if with(|_, part| Some(part.has_dropped(session.number))).unwrap_or(true) {
                return false;
            }
            world.sleep_until(world.now() + LOOK_AGAIN).await;
        }
    }
}

/// What came with the message of the current turn.
fn baggage_of_turn() -> Load {
    Shard::with(|shard| shard.and_then(Shard::baggage))
}

/// Runs a turn at a host.
async fn attempt(cx: &Cx, of: &mut Of<'_>, new: &NewTurn) -> Attempt {
    let Some(cookie) = begin(cx, of.get(), new).await else { return Attempt::Ended(Err(Refusal::Stopping.into())) };
    let mut underway = Underway { cookie, session: 0, over: false, asker: None, cancelled: false };
    loop {
        let end = match underway.next().await {
            Next::Asked(ask) => {
                ask.carry_out(cx, of).await;
                continue;
            }
            Next::Ended(end) => end,
        };
        return Attempt::Ended(match end {
            End::Lost { is_again: true, host } => return Attempt::Lost(host),
            End::Lost { is_again: false, .. } => Err(host_lost(cx)),
            End::NoMethod => {
                let kind = cx.kind().to_owned();
                let methods = cx.port.node.kinds().find(cx.id.kind).map(|kind| kind.methods()).unwrap_or_default();
                let method = methods.get(usize::from(new.method)).map_or("", |method| method.name).to_owned();
                Err(Refusal::UnknownMethod { kind, method, near: Vec::new() }.into())
            }
            End::Refused(refusal) => {
                if let Refusal::NoHost { .. } = refusal {
                    cx.port.node.part::<Hosts>().count_missed(cx.kind());
                    end_current(Why::HostLost);
                }
                Err(refusal.into())
            }
            End::Said { status, payload, made, stream } => {
                let stream = stream.map(|begun| Items::of(underway.session, begun));
                if let Some(hosted) = HostedTurn::of(&baggage_of_turn()) {
                    machine::commit(&hosted, cx, of, (status, made));
                } else if let Of::Exclusive(foreign) = of
                    && !made.changes.is_empty()
                    && let Stated::Unsaved(doubt) = foreign.save(cx, made.changes).await
                {
                    leave_seat(Leave::Unsaved);
                    return Attempt::Ended(Err(doubt.into()));
                }
                if matches!(status, Status::Panicked | Status::Unknown) && of.get().is_kept() {
                    // What its memory is now, nobody has meant.
                    leave_seat(Leave::Failed);
                }
                match stream {
                    Some(stream) if status == Status::Ok && new.is_awaited => {
                        stream.named(&new.payload).map(|name| (status, name))
                    }
                    _ => reads::in_codec_of(&new.payload, payload).map(|payload| (status, payload)).map_err(|error| {
                        Doubt::Unreadable { message: format!("what its host has answered: {error}") }.into()
                    }),
                }
            }
        });
    }
}

/// Waits for a seat of the current turn's activation.
///
/// # Errors
/// [`Refusal::NoHost`], or why no host can make it.
pub(super) async fn seated(cx: &Cx, foreign: &mut Foreign) -> Result<(), Refusal> {
    loop {
        let seated = poll_fn(|context| {
            with(|shard, part| {
                let slot = shard.current_slot()?;
                // What its hook has asked for comes first.
                if let Some(asked) = part.asked_in_hook(slot) {
                    return Some(Poll::Ready(Err(asked)));
                }
                let sitter = Sitter { slot, id: &cx.id, epoch: cx.epoch(), carried: foreign.carried.as_ref() };
                Some(part.poll_seat(shard, &sitter, || foreign.given(), context.waker()).map(Ok))
            })
            .unwrap_or(Poll::Ready(Ok(Err(Refusal::Stopping))))
        });
        match seated.await {
            Ok(seated) => {
                foreign.carried = None;
                if let Err(Refusal::NoHost { .. }) = seated {
                    cx.port.node.part::<Hosts>().count_missed(cx.kind());
                }
                return seated;
            }
            Err(asked) => asked.carry_out(cx, &mut Of::Exclusive(foreign)).await,
        }
    }
}

/// Begins a turn; `None` if its shard is stopping.
async fn begin(cx: &Cx, foreign: &Foreign, new: &NewTurn) -> Option<Cookie> {
    poll_fn(|context| {
        with(|shard, part| {
            let sitter = Sitter { slot: shard.current_slot()?, id: &cx.id, epoch: cx.epoch(), carried: None };
            Some(part.poll_begin(shard, &sitter, || foreign.given(), new, context.waker()).map(Some))
        })
        .unwrap_or(Poll::Ready(None))
    })
    .await
}

impl Underway {
    /// What the turn does next; meanwhile the host hears if the caller gives up.
    async fn next(&mut self) -> Next {
        let (session, next) = poll_fn(|context| {
            with(|shard, part| {
                let polled = part.poll_turn(self.cookie, context.waker());
                if polled.is_pending() {
                    self.look_for_cancel(shard, part, context);
                }
                Some(polled)
            })
            .unwrap_or(Poll::Ready((0, Next::Ended(End::Lost { is_again: false, host: LostHost::default() }))))
        })
        .await;
        self.session = session;
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
            part.cancel(shard, self.cookie);
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
                part.drop_turn(shard, self.cookie);
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
        part.abandon(shard, shard.current_slot()?, why);
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

/// Has the shard act whose turn this is.
pub(super) fn tell(act: impl FnOnce(&Shard, &OnShard)) {
    with(|shard, part| {
        act(shard, part);
        Some(())
    });
}

/// Calls `act` with the shard whose turn this is.
pub(super) fn with<R>(act: impl FnOnce(&Shard, &OnShard) -> Option<R>) -> Option<R> {
    Shard::with(|shard| shard.and_then(|shard| act(shard, OnShard::of(shard))))
}

/// Between two looks whether a lost host has died.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Hosts that may die during a read before its caller hears of it.
const READ_DEATHS_MAX: u32 = 3;
