//! What a turn in a host asks of its node, beside calls.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_wire::Status;
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::host::{Fields, Operation};
use serde::Deserialize;

use super::on_shard::OnShard;
use super::state::{Change, Stated};
use super::turn::{Of, with};
use crate::actor::cx::Cx;
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::interface::Why;
use crate::actor::reply::{TYPE_VERSION, encode_failure};
use crate::shard::timers::NewTimer;

/// A wish of a turn.
pub(crate) struct Asked {
    pub(super) request: u64,
    pub(super) operation: Operation,
    pub(super) payload: Bytes,
}

/// The parameters of all operations, by name.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parameters {
    state: String,
    #[serde(with = "serde_bytes")]
    fields: Vec<u8>,
    name: String,
    method: String,
    after_us: u64,
    every_us: Option<u64>,
    for_ms: u64,
    #[serde(with = "serde_bytes")]
    arguments: Vec<u8>,
}

impl Asked {
    /// Does what is asked, and answers.
    pub(super) async fn carry_out(self, cx: &Cx, of: &mut Of<'_>, session: u64) {
        let Self { request, operation, payload } = self;
        let done = match read(&payload) {
            Ok(parameters) => perform(cx, of, operation, parameters).await,
            Err(refusal) => Err(refusal.into()),
        };
        let (status, payload) = match done {
            Ok(payload) => (Status::Ok, payload),
            Err(failure) => encode_failure(&failure),
        };
        with(|_, part| {
            part.answer(session, request, status, &payload);
            Some(())
        });
    }
}

impl OnShard {
    /// Takes in what a host asks.
    pub(super) fn ask(&self, session: u64, turn: u64, asked: Asked) {
        let mut state = self.state.borrow_mut();
        let cookie = state.turn(session, turn);
        match cookie.and_then(|cookie| state.turns.get_mut(&cookie)) {
            Some(running) => {
                running.asked.push_back(asked);
                if let Some(waker) = running.waker.take() {
                    waker.wake();
                }
            }
            None => {
                drop(state);
                let (status, payload) = encode_failure(&Doubt::Fenced.into());
                self.answer(session, asked.request, status, &payload);
            }
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
    match (operation, of) {
        (Operation::Save, Of::Exclusive(foreign)) => {
            let fields = Fields::parse(&asked.fields).map_err(|error| invalid(&error.to_string()))?;
            let changes = Change::read(&fields).map_err(|message| invalid(&message))?;
            match foreign.save(cx, changes).await {
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
        (operation, _) => Err(invalid(&format!("this node does nothing for {operation:?} of hosts yet")).into()),
    }
}

fn set_timer(cx: &Cx, asked: Parameters) -> Result<(), Failure> {
    let Parameters { name, method, after_us, every_us, arguments, .. } = asked;
    let kinds = cx.port.node.kinds();
    let route = kinds.route(cx.kind(), &method);
    let Some(number) = route.index else { return Err(kinds.unknown_method(&route).into()) };
    let method_name = kinds.find(cx.id.kind).map_or("", |kind| kind.methods()[usize::from(number)].name);
    let arguments = if arguments.is_empty() { empty() } else { Bytes::from(arguments) };
    let period = every_us.map(|period| Duration::from_micros(period).max(PERIOD_MIN));
    let timer = NewTimer { target: None, method: number, method_name, arguments, period };
    let set = with(|shard, _| shard.set_named_timer(&cx.id, &name, Duration::from_micros(after_us), timer));
    set.unwrap_or_else(|| Err(invalid("timers are set in a turn of their actor")))?;
    Ok(())
}

fn invalid(message: &str) -> Refusal {
    Refusal::Invalid { field: String::new(), message: message.to_owned() }
}

/// The payload of nothing.
fn nil() -> Bytes {
    let mut out = BytesMut::new();
    // It always encodes.
    let _ = codec::encode(Codec::MessagePack, TYPE_VERSION, &(), &mut out);
    out.freeze()
}

/// The arguments of a method that has none.
fn empty() -> Bytes {
    let mut out = BytesMut::new();
    let none: std::collections::BTreeMap<String, ()> = Default::default();
    let _ = codec::encode(Codec::MessagePack, TYPE_VERSION, &none, &mut out);
    out.freeze()
}

/// Shorter periods would be no more than the clock's own steps.
const PERIOD_MIN: Duration = Duration::from_millis(1);
