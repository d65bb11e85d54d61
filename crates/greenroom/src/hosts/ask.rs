//! What a turn in a host asks of its node, beside calls.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_wire::Status;
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::host::{Fields, Operation};
use serde::{Deserialize, Serialize};

use super::on_shard::OnShard;
use super::reads::octets;
use super::refusals::{RequestOrigin, Requester};
use super::reminders::{self, Wish};
use super::seats::key;
use super::state::{self, Stated};
use super::topics::{self, To};
use super::turn::{Of, with};
use crate::actor::cx::Cx;
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::interface::Why;
use crate::actor::migration::Unmoved;
use crate::actor::reply::TYPE_VERSION;
use crate::reliable::hosted::HostedTurn;
use crate::shard::timers::NewTimer;
use crate::shard::{Shard, Slot};

/// A wish of a turn.
pub(crate) struct Asked {
    pub(super) origin: RequestOrigin,
    pub(super) operation: Operation,
    pub(super) payload: Bytes,
}

/// The parameters of all operations, by name.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parameters {
    state: String,
    #[serde(deserialize_with = "octets")]
    fields: Vec<u8>,
    name: String,
    method: String,
    after_us: u64,
    every_us: Option<u64>,
    for_ms: u64,
    after_ms: Option<u64>,
    due_ms: u64,
    every_ms: Option<u64>,
    topic: String,
    argument: String,
    #[serde(deserialize_with = "octets")]
    arguments: Vec<u8>,
    stream: u64,
    window: u32,
    outlet: String,
    #[serde(deserialize_with = "octets")]
    message: Vec<u8>,
    #[serde(deserialize_with = "octets")]
    value: Vec<u8>,
    kind: String,
    node: String,
}

impl Asked {
    /// Does what is asked, and answers.
    pub(super) async fn carry_out(self, cx: &Cx, of: &mut Of<'_>) {
        let Self { origin, operation, payload } = self;
        let done = match read(&payload) {
            Ok(parameters) => perform(cx, of, operation, parameters).await,
            Err(refusal) => Err(refusal.into()),
        };
        with(|shard, part| {
            match done {
                Ok(payload) => part.answer(origin.session, origin.request, Status::Ok, &payload),
                Err(failure) => {
                    // Its frame may have come together with the turn's end. A hook is no turn.
                    let hosted = if origin.turn == 0 { None } else { HostedTurn::of(&shard.baggage()) };
                    let requester = Requester { actor: Some(cx.id.clone()), hosted };
                    part.refuse(shard, origin, requester, &format_args!("{operation:?}"), failure);
                }
            }
            Some(())
        });
    }
}

impl OnShard {
    /// Takes in what a host asks, in a turn or in the hook of a seat.
    pub(super) fn ask(&self, shard: &Shard, mut asked: Asked) {
        let origin @ RequestOrigin { session, turn, seat, .. } = asked.origin;
        let mut state = self.state.borrow_mut();
        let cookie = match turn {
            0 => match state.asked_in_hook(seat, asked) {
                // Who waits for the seat does it.
                Ok(woken) => {
                    drop(state);
                    return woken.into_iter().for_each(Waker::wake);
                }
                Err(not_taken) => {
                    asked = not_taken;
                    None
                }
            },
            _ => state.turn(session, turn),
        };
        match cookie.and_then(|cookie| state.turns.get_mut(&cookie)) {
            Some(running) => {
                running.asked.push_back(asked);
                if let Some(waker) = running.waker.take() {
                    waker.wake();
                }
            }
            None => {
                drop(state);
                let (requester, operation) = (self.requester(origin), asked.operation);
                self.refuse(shard, origin, requester, &format_args!("{operation:?}"), Doubt::Fenced.into());
            }
        }
    }

    /// What the hook has asked of the seat in which the activation is being made.
    pub(super) fn asked_in_hook(&self, slot: Slot) -> Option<Asked> {
        self.state.borrow_mut().places.get_mut(&key(slot))?.asked.pop_front()
    }

    /// Opens a stream for a host, for a turn that is not over or for none.
    pub(super) fn answer_open(&self, shard: &Shard, origin: RequestOrigin, payload: &[u8]) {
        let RequestOrigin { session, turn, .. } = origin;
        let is_fenced = turn != 0 && self.state.borrow().turn(session, turn).is_none();
        let opened = match read(payload) {
            _ if is_fenced => Err(Failure::from(Doubt::Fenced)),
            Ok(Parameters { name, stream, window, .. }) => {
                self.open_stream(shard, session, (&name, stream, window)).map_err(Failure::from)
            }
            Err(refusal) => Err(refusal.into()),
        };
        match opened {
            Ok(()) => self.answer(session, origin.request, Status::Ok, &nil()),
            Err(failure) => self.refuse(shard, origin, self.requester(origin), &"OpenStream", failure),
        }
    }
}

fn read(payload: &[u8]) -> Result<Parameters, Refusal> {
    if payload.is_empty() {
        return Ok(Parameters::default());
    }
    codec::decode(payload)
        .map_err(|error| Refusal::Invalid { field: String::new(), message: format!("the parameters: {error}") })
}

async fn perform(cx: &Cx, of: &mut Of<'_>, operation: Operation, asked: Parameters) -> Result<Bytes, Failure> {
    let baggage = Shard::with(|shard| shard.and_then(Shard::baggage));
    if let Some(hosted) = HostedTurn::of(&baggage) {
        return Ok(keep_back(&hosted, cx, operation, asked)?);
    }
    match (operation, of) {
        (Operation::Save, Of::Exclusive(foreign)) => {
            let fields = Fields::parse(&asked.fields).map_err(|error| invalid(&error.to_string()))?;
            match foreign.save(cx, state::changes(&fields)).await {
                Stated::Saved => Ok(nil()),
                Stated::Unsaved(doubt) => Err(doubt.into()),
            }
        }
        (Operation::Clear, Of::Exclusive(foreign)) => {
            foreign.clear(cx, &asked.state).await?;
            Ok(nil())
        }
        (Operation::Save | Operation::Clear, Of::Read(_)) => {
            Err(invalid("a read changes no state; do that in an exclusive turn").into())
        }
        (Operation::Reload, of) => match of.get().value(&asked.state) {
            Some(value) if value.is_empty() => Ok(nil()),
            Some(value) => Ok(value),
            None => Err(invalid(&format!("the kind's description names no state {:?}", asked.state)).into()),
        },
        (Operation::SetTimer, _) => {
            set_timer(cx, asked)?;
            Ok(nil())
        }
        (Operation::CancelTimer, _) => {
            with(|shard, _| {
                shard.cancel_named_timer(&cx.id, &asked.name);
                Some(())
            });
            Ok(nil())
        }
        (Operation::SetReminder, _) => {
            let Parameters { name, method, after_ms, due_ms, every_ms, arguments, .. } = asked;
            method_of(cx, &method)?;
            let arguments = if arguments.is_empty() { empty().to_vec() } else { arguments };
            reminders::set(cx, Wish { name, method, arguments, after_ms, due_ms, every_ms }).await?;
            Ok(nil())
        }
        (Operation::CancelReminder, _) => Ok(written(&reminders::cancel(cx, &asked.name).await?)),
        (Operation::ListReminders, _) => Ok(written(&reminders::list(cx).await?)),
        (Operation::Subscribe, _) => {
            method_of(cx, &asked.method)?;
            topics::subscribe(cx, &asked.topic, To { method: asked.method, argument: asked.argument })?;
            Ok(nil())
        }
        (Operation::Unsubscribe, _) => {
            topics::unsubscribe(&asked.topic);
            Ok(nil())
        }
        (Operation::KeepAlive, _) => {
            let time = Duration::from_millis(asked.for_ms);
            with(|shard, _| {
                shard.keep_current(time);
                Some(())
            });
            Ok(nil())
        }
        (Operation::Deactivate, _) => {
            with(|shard, _| {
                shard.end_current(Why::Asked);
                Some(())
            });
            Ok(nil())
        }
        (Operation::Migrate, _) => {
            cx.migrate_to(&asked.node).map_err(unmoved)?;
            Ok(nil())
        }
        // No other turn runs twice.
        (Operation::Chosen, _) => Ok(asked.value.into()),
        (Operation::Output | Operation::Create, _) => {
            Err(invalid("only turns of reliable actors send outputs and create actors; let the kind be reliable")
                .into())
        }
        (operation, _) => Err(invalid(&format!("this node does nothing for {operation:?} of hosts yet")).into()),
    }
}

/// Does what a turn of a reliable actor asks for: with its commit.
fn keep_back(hosted: &HostedTurn, cx: &Cx, operation: Operation, asked: Parameters) -> Result<Bytes, Refusal> {
    let node = &cx.port.node;
    match operation {
        Operation::SetTimer if asked.every_us.is_none() => {
            method_of(cx, &asked.method)?;
            let arguments = if asked.arguments.is_empty() { empty() } else { Bytes::from(asked.arguments) };
            let after = Duration::from_micros(asked.after_us);
            hosted.set_timer(cx, &asked.name, &asked.method, (after, arguments))?;
        }
        Operation::SetTimer => {
            return Err(invalid("a reliable actor's timer fires once; let the turn that it begins set the next one"));
        }
        Operation::CancelTimer => hosted.cancel_timer(&asked.name),
        Operation::Output => hosted.output(node, &asked.outlet, &asked.message)?,
        Operation::Chosen => return Ok(hosted.choose(asked.value.into())),
        Operation::Create => return Ok(written(&hosted.create(node, &asked.kind)?)),
        Operation::Migrate => {
            return Err(invalid("reliable actors are where their partition is, and move with it alone"));
        }
        operation => {
            return Err(invalid(&format!(
                "{operation:?} is nothing for a reliable actor's turn: its state is written with its commit, its timers last, and it \
                 sends messages"
            )));
        }
    }
    Ok(nil())
}

fn set_timer(cx: &Cx, asked: Parameters) -> Result<(), Failure> {
    let Parameters { name, method, after_us, every_us, arguments, .. } = asked;
    let number = method_of(cx, &method)?;
    let method_name = cx.port.node.kinds().find(cx.id.kind).map_or("", |kind| kind.methods()[usize::from(number)].name);
    let arguments = if arguments.is_empty() { empty() } else { Bytes::from(arguments) };
    let period = every_us.map(|period| Duration::from_micros(period).max(PERIOD_MIN));
    let timer = NewTimer { target: None, method: number, method_name, arguments, period };
    let set = with(|shard, _| shard.set_named_timer(&cx.id, &name, Duration::from_micros(after_us), timer));
    set.unwrap_or_else(|| Err(invalid("timers are set in a turn of their actor")))?;
    Ok(())
}

/// The number of a method of the actor's.
fn method_of(cx: &Cx, method: &str) -> Result<u16, Refusal> {
    let kinds = cx.port.node.kinds();
    let route = kinds.external_route(cx.kind(), method)?;
    route.index.ok_or_else(|| kinds.unknown_method(&route))
}

fn invalid(message: &str) -> Refusal {
    Refusal::Invalid { field: String::new(), message: message.to_owned() }
}

fn unmoved(why: Unmoved) -> Refusal {
    let message = match &why {
        Unmoved::NotCarried { kind } => format!(
            "actors of kind {kind:?} hold in memory what they do not carry: let the kind say `migrate`, in the words of its SDK, or keep \
             all of it in a store"
        ),
        why => why.to_string(),
    };
    Refusal::Invalid { field: "node".to_owned(), message }
}

/// The payload of nothing.
fn nil() -> Bytes {
    written(&())
}

fn written<T: Serialize>(value: &T) -> Bytes {
    let mut out = BytesMut::new();
    // What is answered always encodes.
    let _ = codec::encode(Codec::MessagePack, TYPE_VERSION, value, &mut out);
    out.freeze()
}

/// The arguments of a method that has none.
fn empty() -> Bytes {
    written(&BTreeMap::<String, ()>::new())
}

/// Shorter periods would be no more than the clock's own steps.
const PERIOD_MIN: Duration = Duration::from_millis(1);
