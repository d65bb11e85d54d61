//! Turns of reliable actors that run in hosts: what they do comes as names and bytes, and is kept back as of all others.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::delivery::Delivery;
use greenroom_reliable::fields::Change;
use greenroom_reliable::ledger::FieldChanges;
use greenroom_wire::Status;
use greenroom_wire::codec::{self, Codec};
use greenroom_world::Timestamp;
use serde_bytes::ByteBuf;

use super::again;
use super::kept::Memory;
use super::machine::STATE;
use super::name::Named;
use super::takings::{Fate, Takings};
use crate::actor::cx::Cx;
use crate::actor::error::Refusal;
use crate::actor::key::{ActorId, Kind};
use crate::actor::reply::{TYPE_VERSION, WireReply};
use crate::here::Here;
use crate::here::built_in::is_built_in;
use crate::shard::Shard;
use crate::shard::baggage::Load;
use crate::shard::chain::{Chain, Link};
use crate::shard::raw::{Journey, RawCall, RouteTarget};
use crate::time::check_name;

/// A turn of a reliable actor that runs in a host, as its node has it.
#[derive(Clone)]
pub(crate) struct HostedTurn(Arc<Takings>);

/// A read that a turn awaits, where turns are run again.
pub(crate) enum Read {
    /// The first run has its answer.
    Known(Status, Bytes),
    Asked(Asked),
}

/// Where the answer to a read is kept for the second run.
pub(crate) struct Asked {
    hosted: HostedTurn,
    at: usize,
    what: u64,
}

impl Asked {
    pub(crate) fn answered(&self, status: Status, payload: &[u8]) {
        let answer = (self.what, status.to_byte(), serde_bytes::Bytes::new(payload));
        self.hosted.0.end_read(self.at, again::write(&answer).unwrap_or_default());
    }
}

/// A one-way message of such a turn.
pub(crate) struct Parcel<'a> {
    pub(crate) route: &'a Arc<RouteTarget>,
    pub(crate) key: &'a str,
    pub(crate) arguments: Bytes,
    pub(crate) load: Load,
}

impl HostedTurn {
    /// The turn that a message with this baggage has begun, if it is one of a reliable actor.
    pub(crate) fn of(baggage: &Load) -> Option<Self> {
        let holdback: Arc<dyn Any + Send + Sync> = baggage.as_ref()?.holdback.clone()?;
        holdback.downcast().ok().map(Self)
    }

    /// It begins at a host: what it did at another one, which is lost, never was.
    pub(crate) fn begin(&self) {
        self.0.begin_again();
    }

    /// Refuses a call that the turn awaits, if it would act before the commit.
    ///
    /// # Errors
    /// [`Refusal::Invalid`], which says what to do instead.
    pub(crate) fn check_call(&self, node: &Here, route: &RouteTarget, key: &str) -> Result<(), Refusal> {
        let (kind, method) = (&*route.kind_name, &*route.method);
        let known = route.index.and_then(|index| node.kinds().methods_of(kind).get(usize::from(index)));
        if known.is_some_and(|known| known.is_repeatable()) && !is_built_in(kind) {
            self.0.count_read();
            return Ok(());
        }
        let message = format!(
            "the reliable actor {} awaits {kind}.{method} of {kind}/{key}, which is no read of a kind that this node has, and would \
             act before the turn is committed; send it one-way, and let the other actor answer with a message of its own",
            self.0.by()
        );
        Err(invalid(message))
    }

    /// Where turns are run again: what the read was answered that the turn awaits now, or the place where its answer is kept. `what` tells it
    /// from others.
    pub(crate) fn begin_read(&self, what: impl FnOnce() -> u64) -> Option<Read> {
        let (at, known) = self.0.begin_read()?;
        let what = what();
        let known =
            known.and_then(|known| codec::decode::<(u64, u8, ByteBuf)>(&known).ok()).filter(|known| known.0 == what);
        Some(match known {
            Some((_, status, payload)) => Read::Known(Status::from_byte(status), payload.into_vec().into()),
            None => Read::Asked(Asked { hosted: self.clone(), at, what }),
        })
    }

    /// What a turn decides by chance, by the time or by what else no message and no field says: where turns are run again, the second
    /// run gets what the first one got.
    pub(crate) fn choose(&self, value: Bytes) -> Bytes {
        self.0.choose_bytes(value)
    }

    /// Keeps a one-way message back. The turn fails if it can never be sent.
    pub(crate) fn send(&self, shard: &Shard, parcel: Parcel<'_>) {
        let (kind, method) = (parcel.route.kind_name.clone(), parcel.route.method.clone());
        if let Err(refusal) = self.keep_back(shard, parcel) {
            self.0.fail(format!("{} cannot send {method} to {kind}: {refusal}", self.0.by()));
        }
    }

    fn keep_back(&self, shard: &Shard, parcel: Parcel<'_>) -> Result<(), Refusal> {
        let Parcel { route, key, arguments, load } = parcel;
        let node = &shard.port().node;
        let kind = route.kind.or_else(|| Kind::known(&route.kind_name));
        let id = ActorId::new(kind.ok_or_else(|| node.unknown_kind(&route.kind_name))?, key)?;
        if node.is_reliable_kind(id.kind) {
            let outgoing =
                self.0.letter(shard, Named::of(&id), &route.method, arguments, (load, Delivery::ExactlyOnce))?;
            self.0.keep(outgoing);
            return Ok(());
        }
        let route = route.clone();
        self.0.tell(|| format!("{id}.{}", route.method));
        self.0.later(Box::new(move |shard| {
            shard.submit_raw(RawCall {
                key: &id.key,
                route: &route,
                payload: &arguments,
                reply: WireReply::nobody(),
                deadline: Timestamp::NEVER,
                chain: Chain { link: Link::None, baggage: load },
                journey: Journey::begins_at(&shard.port().node),
                sender: None,
            });
        }));
        Ok(())
    }

    /// Keeps a message to the actor itself back, until `after` the commit.
    ///
    /// # Errors
    /// [`Refusal::Invalid`]: the name is none.
    pub(crate) fn set_timer(
        &self,
        cx: &Cx,
        name: &str,
        method: &str,
        (after, arguments): (Duration, Bytes),
    ) -> Result<(), Refusal> {
        check_name(name).map_err(invalid)?;
        Shard::with(|shard| {
            let shard = shard.ok_or(Refusal::Unbound)?;
            let to = (None, Delivery::ExactlyOnce);
            let outgoing = self.0.letter(shard, Named::of(&cx.id), method, arguments, to)?;
            self.0.keep_until(outgoing, self.0.time(shard.port().node.wall()) + after, Some(self.0.name_timer(name)));
            Ok(())
        })
    }

    /// Cancels the actor's timer of this name.
    pub(crate) fn cancel_timer(&self, name: &str) {
        self.0.cancel(&self.0.timer(name));
    }

    /// Keeps an output back: `message` is a payload.
    ///
    /// # Errors
    /// [`Refusal::Invalid`]: there is no such outlet, or the message has no JSON.
    pub(crate) fn output(&self, node: &Here, outlet: &str, message: &[u8]) -> Result<(), Refusal> {
        let number = node.outlets().known(outlet)?;
        let mut json = BytesMut::new();
        codec::rewrite(message, Codec::Json, &mut json)
            .map_err(|error| invalid(format!("an output has no JSON: {error}")))?;
        self.0.output(number, outlet, json.freeze().slice(PAYLOAD_HEAD..));
        Ok(())
    }

    /// Lets an actor of `kind` come into being with the turn's commit: its key.
    ///
    /// # Errors
    /// [`Refusal::Invalid`]: actors of the kind are not reliable.
    pub(crate) fn create(&self, node: &Here, kind: &str) -> Result<String, Refusal> {
        let known = Kind::known(kind).filter(|kind| node.is_reliable_kind(*kind));
        let Some(kind) = known else {
            return Err(invalid(format!(
                "only reliable actors are created, and {kind:?} is no kind of such; use any key"
            )));
        };
        Ok(self.0.create(kind.name(), node.config().reliable.partitions).to_string())
    }

    /// The message waits in the actor's own queue until the actor has jumped.
    pub(crate) fn defer(&self) {
        self.0.end_as(Fate::Deferred);
    }

    /// The message is done with, and has no effects.
    pub(crate) fn ignore(&self, why: String) {
        self.0.end_as(Fate::Ignored(why));
    }

    /// The actor's state does not know the message.
    pub(crate) fn not_handled(&self, why: String) {
        self.0.end_as(Fate::Unhandled(why));
    }

    /// The host died while it ran the turn, which has no effects.
    pub(crate) fn die(&self) {
        self.0.begin_again();
        self.0.end_as(Fate::Died);
    }

    /// The turn has failed, and has no effects.
    pub(crate) fn fail(&self, why: String) {
        self.0.fail(why);
    }

    /// Takes in what the turn has changed: it is a part of its commit.
    pub(crate) fn change(&self, changes: Vec<FieldChanges>, jump: Option<&str>) {
        if let Some(state) = jump {
            self.0.jump(state.into());
        }
        self.0.put(changes, Vec::new());
    }

    /// Takes in that the actor ends with this turn, which has these entries.
    pub(crate) fn halt(&self, entries: Vec<(String, String)>) {
        self.0.halt();
        self.0.put(Vec::new(), entries);
    }
}

/// What a journal holds of an actor in a host, as its turns have left it.
#[derive(Default)]
pub(crate) struct Journaled(BTreeMap<String, BTreeMap<String, Bytes>>);

impl Journaled {
    /// What the journal holds of the actor whose activation begins.
    pub(crate) fn of(cx: &Cx) -> Self {
        let stored = Memory::of(cx).map(Memory::take).unwrap_or_default();
        Self(stored.into_iter().map(|(field, entries)| (field, entries.into_iter().collect())).collect())
    }

    /// The fields, each with its entries. One that is written whole has a single entry, without a name.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, Bytes>)> {
        self.0.iter().filter(|(field, _)| *field != STATE).map(|(field, entries)| (field.as_str(), entries))
    }

    /// The state that a state machine is in, if it has ever jumped.
    pub(crate) fn state(&self) -> Option<String> {
        self.0.get(STATE)?.get("").and_then(|value| codec::decode(value).ok())
    }

    /// The names of all entries.
    pub(crate) fn entries(&self) -> Vec<(String, String)> {
        let of = |(field, entries): (&String, &BTreeMap<String, Bytes>)| {
            entries.keys().map(|entry| (field.clone(), entry.clone())).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }

    /// Becomes what a turn has made of it; what is written of a jump comes with the changes.
    ///
    /// # Errors
    /// A field's name is none, or it is written whole and by entries.
    pub(crate) fn take(&mut self, changes: &mut Vec<FieldChanges>, jump: Option<&str>) -> Result<(), String> {
        for FieldChanges { field, changes } in &*changes {
            if field.starts_with('@') {
                return Err(format!("a field cannot be called {field:?}; call it otherwise"));
            }
            let entries = self.0.entry(field.to_string()).or_default();
            for Change { entry, value } in changes {
                match value {
                    Some(value) => _ = entries.insert(entry.clone(), value.clone()),
                    None => _ = entries.remove(entry),
                }
            }
            if entries.len() > 1 && entries.contains_key("") {
                return Err(format!("the field {field:?} is written whole and by entries; let it be one of both"));
            }
        }
        if let Some(state) = jump {
            let mut value = BytesMut::new();
            codec::encode(Codec::MessagePack, TYPE_VERSION, state, &mut value).map_err(|error| error.to_string())?;
            let value = value.freeze();
            self.0.entry(STATE.to_owned()).or_default().insert(String::new(), value.clone());
            let changed = vec![Change { entry: String::new(), value: Some(value) }];
            changes.push(FieldChanges { field: STATE.into(), changes: changed });
        }
        Ok(())
    }
}

fn invalid(message: String) -> Refusal {
    Refusal::Invalid { field: String::new(), message }
}

/// A payload's codec and type version.
const PAYLOAD_HEAD: usize = 2;
