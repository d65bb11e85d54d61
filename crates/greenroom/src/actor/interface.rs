//! The traits that `#[actor]` and `#[derive(Actor)]` implement. Users meet them in bounds and error messages only.

use std::future::Future;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::node::Instances;
use greenroom_protocols::state_versions::StateVersions;
use greenroom_protocols::versions::FIRST;
use greenroom_wire::EncodeError;
use greenroom_wire::codec::DecodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cx::Cx;
use super::error::{CallError, Never, Refusal};
use super::reference::Ref;
use super::reply::{AnyReply, ReplyTo, WireReply};
use super::signature::Signature;
pub use super::why::Why;
use crate::here::built_in::is_internal;
use crate::pids::ended::Ended;
use crate::state::{AnyStored, Saving, StateError, Written};

/// A type whose values are actors. `#[derive(Default, Actor)]` implements it by the type's default.
///
/// For actors that need more than that, write `impl Actor for ..` by hand: with a [`create`](Actor::create), or empty and
/// registered with [`register_with`](crate::Builder::register_with). Fields that are states of their own, as [`Stored`](crate::Stored) ones, are
/// stored by names that only the derive gives them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an actor",
    note = "write `#[derive(Default, Actor)]` above `struct {Self}`"
)]
pub trait Actor: Sized + Send + 'static {
    /// A fresh actor, as it is before its first activation.
    ///
    /// # Errors
    /// What keeps it from being made; callers see it as [`Refusal::Activation`](crate::Refusal::Activation).
    fn create(cx: &Cx) -> Result<Self, String> {
        Err(format!("kind {:?} does not say how to make its actors; register it with `register_with`", cx.kind()))
    }

    /// What its type's doc comment says first.
    #[doc(hidden)]
    const DOC: &'static str = "";
    /// Whether it has [`Stored`](crate::Stored) fields.
    #[doc(hidden)]
    const STORED: bool = false;
    /// The names of these fields, and which of them are [`Versioned`](crate::versioned::Versioned).
    #[doc(hidden)]
    const FIELDS: &'static [(&'static str, bool)] = &[];

    /// The versions of their types, and of their updates' types where they have updates, in the same order; the first ones of a
    /// field that is not named here.
    #[doc(hidden)]
    const FIELD_VERSIONS: &'static [(StateVersions, Option<StateVersions>)] = &[];

    /// What somebody has written as JSON for the field called so, as a record of it; `None` if it has no such field that is written as a whole.
    #[doc(hidden)]
    fn written_field(field: &str, json: &[u8], in_force: u8) -> Option<Result<Written, String>> {
        let _ = (field, json, in_force);
        None
    }

    /// Its [`Stored`](crate::Stored) fields, by name.
    #[doc(hidden)]
    fn stored(&mut self) -> Vec<(&'static str, &mut dyn AnyStored)> {
        Vec::new()
    }
}

/// How an actor handles its messages: written by `#[actor]` above an `impl` block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no methods to call",
    note = "write `#[actor]` above an `impl {Self}` block"
)]
pub trait Behaviour: Actor {
    /// The messages that this actor takes.
    type Interface: Interface;
    /// What the attribute said.
    const OPTIONS: Options;
    /// Whether the `activated` hook is written; without it an activation is ready at once.
    const ACTIVATED: bool;
    /// Whether the `deactivating` hook is written.
    const DEACTIVATING: bool;
    /// Whether the `ended` hook is written.
    const ENDED: bool;
    /// How its activations go to another node.
    const TRAVELS: Travels = Travels::Not;
    /// The versions of its type, if it is persistent as a whole.
    #[doc(hidden)]
    const VERSIONS: StateVersions = StateVersions::FIRST;
    /// The states of a reliable state machine, the first one first; none for other actors.
    const STATES: &'static [&'static str] = &[];
    /// What must hold of it after each turn, where somebody asks.
    #[doc(hidden)]
    const INVARIANT: Sound<Self> = |_| Ok(());
    /// The same, if the attribute says something.
    #[doc(hidden)]
    #[cfg(feature = "rehearsal")]
    const SOUND: Option<Sound<Self>> = None;
    /// What it is, as text.
    #[doc(hidden)]
    #[cfg(feature = "rehearsal")]
    const SHOW: Option<fn(&Self) -> String> = None;
    /// Whether its kinds are foreign: what they are is said at run time, and their actors live in hosts.
    #[doc(hidden)]
    const FOREIGN: bool = false;

    /// Runs an exclusive turn.
    fn exclusive(&mut self, cx: &Cx, message: Message<Self>) -> impl Future<Output = ()> + Send;

    /// Runs a read.
    fn read(&self, cx: &Cx, message: Message<Self>) -> impl Future<Output = ()> + Send;

    /// Loads its states.
    #[doc(hidden)]
    fn load(&mut self, cx: &Cx) -> impl Future<Output = Result<(), StateError>> + Send {
        async move {
            for (name, field) in self.stored() {
                field.load(cx, name).await?;
            }
            Ok(())
        }
    }

    /// Reads those of its states again that other activations have written.
    #[doc(hidden)]
    fn refresh(&mut self, cx: &Cx) -> impl Future<Output = Result<(), StateError>> + Send {
        async move {
            for (_, field) in self.stored() {
                field.refresh(cx).await?;
            }
            Ok(())
        }
    }

    /// Saves those of its states that have changed.
    #[doc(hidden)]
    fn save_changed(&mut self, cx: &Cx) -> impl Future<Output = Result<(), StateError>> + Send {
        async move {
            for (_, field) in self.stored() {
                field.save_changed(cx).await?;
            }
            Ok(())
        }
    }

    /// As [`Actor::written_field`], for any of its states.
    #[doc(hidden)]
    fn written(state: &str, json: &[u8], in_force: u8) -> Option<Result<Written, String>> {
        Self::written_field(state, json, in_force)
    }

    /// Runs before the first turn.
    fn activated(&mut self, _cx: &Cx) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }

    /// What is refused as its `activated` hook has failed.
    #[doc(hidden)]
    fn not_activated(&mut self, message: String) -> Refusal {
        Refusal::Activation { message }
    }

    /// What it carries to another node.
    #[doc(hidden)]
    fn migrating(&mut self, _cx: &Cx) -> impl Future<Output = Result<Bytes, String>> + Send {
        async { Ok(Bytes::new()) }
    }

    /// Whether it could take what is carried.
    #[doc(hidden)]
    fn takes(_carried: &[u8]) -> Result<(), String> {
        Ok(())
    }

    /// Takes what it carried.
    #[doc(hidden)]
    fn migrated(&mut self, _cx: &Cx, _carried: &[u8]) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }

    /// Runs after the last turn, for [`Config::stop_timeout`](crate::Config::stop_timeout) at most.
    fn deactivating(&mut self, _cx: &Cx, _why: Why) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Runs once for each actor that it watches, after that has ended.
    fn ended(&mut self, _cx: &Cx, _ended: Ended) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Says what is wrong with an actor, if something is.
#[doc(hidden)]
pub type Sound<A> = fn(&A) -> Result<(), String>;

/// The message type of an actor's interface.
pub type Message<A> = <<A as Behaviour>::Interface as Interface>::Message;

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Why::Idle => "it was idle",
            Why::Stopping => "its node was stopping",
            Why::Asked => "it asked for it",
            Why::Panicked => "a turn panicked",
            Why::Migrating => "it went to another node",
            Why::Superseded => "a later activation is elsewhere",
            Why::Duplicate => "another cluster owns it",
            Why::Leaving => "its cluster is leaving the multi-cluster, or another one calls it most",
            Why::Upgraded => "a caller needs a newer version of it",
            Why::Unsaved => "a save of its state failed",
            Why::Stopped => "it was stopped",
            Why::Killed => "it was killed",
            Why::Parent => "its parent ended",
            Why::Failed => "it failed",
            Why::Escalated => "a child failed",
            Why::Together => "a sibling failed",
            Why::NodeLost => "its node left the cluster",
            Why::HostLost => "its host was lost, and no other one came",
            Why::Unknown => "it ended some time ago",
        })
    }
}

/// How activations of a kind go to another node.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Travels {
    /// They do not.
    Not,
    /// What they hold is in a store.
    ByStore,
    /// They carry what they hold.
    Carrying,
}

/// What `#[actor(..)]` says of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where activations go: `balanced`, `local`, `random`, `hash`, `role:NAME`, or a name given to
    /// [`placement`](crate::Builder::placement).
    pub placement: &'static str,
    /// Stateless workers: up to so many activations a node and key, never entered in the directory. 0 for ordinary actors.
    pub workers: u16,
    /// Time without a message after which an activation ends; `None` for the node's default.
    pub idle: Option<Duration>,
    /// Messages that may wait at one activation; `None` for the node's default.
    pub mailbox: Option<u32>,
    /// Messages of the kind that may wait and run at once on one node; `None` for what the node says, or no bound.
    pub in_flight: Option<u32>,
    /// Whether the actor as a whole is kept in a store.
    pub persistent: bool,
    /// Whether its turns commit in the journal, and its messages are processed exactly once.
    pub reliable: bool,
    /// When its states are saved.
    pub saving: Saving,
    /// The name of the node's store that its states are kept in; empty for the one without a name.
    pub store: &'static str,
    /// How many instances of one of its actors a multi-cluster may have.
    pub instances: Instances,
    /// Whether that changes with how each actor is used; `instances` then says how many there are at first.
    pub adaptive: bool,
    /// Where its actors are at home in a multi-cluster: `lease` or `lease:CLUSTER`; empty for nowhere.
    pub home: &'static str,
    /// How instances of its versioned states agree; empty for what the node says, or `bcas`.
    pub protocol: &'static str,
    /// The cluster whose instances lead, if its protocol has leaders; empty for one that is found by the key.
    pub leader: &'static str,
    /// Whether the optimiser moves its actors; `None` if that follows from how they travel and are placed.
    pub optimise: Option<bool>,
}

/// What can be called: a kind's name and its methods. Written by `#[actor]`.
pub trait Interface: Sized + Send + Sync + 'static {
    /// One variant a method: its arguments, and where its reply goes.
    type Message: Send + 'static;
    /// The reference with a method for each of them.
    type Ref: From<Ref<Self>> + AsRef<Ref<Self>> + Clone + Send + Sync + 'static;
    /// The kind's name on the wire.
    const KIND: &'static str;
    /// The methods, in the order of their indices.
    const METHODS: &'static [MethodInfo];
    /// The version of the interface, from 1.
    const VERSION: u16 = FIRST;
    /// The oldest version whose callers are served by actors of this one.
    const COMPATIBLE: u16 = FIRST;
    /// Whether its actors are reliable.
    const RELIABLE: bool = false;
    /// True for kinds without an external entry: their messages come from nodes of the cluster, and no endpoint, no host, no other
    /// cluster and no stored record can name them.
    #[doc(hidden)]
    const INTERNAL: bool = is_internal(Self::KIND);
    /// For each method what makes up a call of it.
    #[doc(hidden)]
    #[cfg(feature = "rehearsal")]
    const INVENT: &'static [crate::actor::invent::Invent<Self>] = &[];

    /// What is said of the methods to people and to other languages, in the same order.
    #[doc(hidden)]
    const SIGNATURES: &'static [Signature] = &[];

    /// Which method `message` calls.
    fn method(message: &Self::Message) -> u16;

    /// Where the reply of `message` goes.
    fn reply(message: &mut Self::Message) -> &mut dyn AnyReply;

    /// Writes the arguments.
    ///
    /// # Errors
    /// What the serializer says; nothing has been sent.
    fn encode(message: &Self::Message, out: &mut BytesMut) -> Result<(), EncodeError>;

    /// Reads the arguments of method `method`, which is in [`Interface::METHODS`].
    ///
    /// # Errors
    /// The reply comes back with the error, so that the caller can be told.
    fn decode(method: u16, payload: &[u8], reply: WireReply) -> Result<Self::Message, Box<(DecodeError, WireReply)>>;
}

/// A method's name and whether it is a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MethodInfo {
    /// The name on the wire.
    pub name: &'static str,
    /// `&self`: turns that interleave with each other.
    pub read: bool,
    /// Such a one that changes versioned state.
    pub update: bool,
}

impl MethodInfo {
    /// Whether it changes nothing, so that it may run twice and nobody sees it.
    pub(crate) const fn is_repeatable(self) -> bool {
        self.read && !self.update
    }
}

/// One method's arguments.
pub trait Method: Serialize + DeserializeOwned + Send + 'static {
    /// The interface it belongs to.
    type Interface: Interface;
    /// What it returns.
    type Reply: Portable;
    /// Its own error.
    type Error: Portable;
    /// Its place in [`Interface::METHODS`].
    const INDEX: u16;

    /// The message that carries these arguments.
    fn into_message(self, reply: ReplyTo<Self::Reply, Self::Error>) -> <Self::Interface as Interface>::Message;
}

/// The arguments of a method that changes nothing: `&self`, and not `#[update]`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a turn of a reliable actor awaits `{Self}`, which would act before the turn is committed",
    label = "this acts before the commit",
    note = "write `.send()` in place of `.await`, and let the other actor answer with a message of its own; methods that take \
            `&self` may be awaited"
)]
pub trait ReadOnly: Method {}

/// A value that may travel between nodes: plain serde data.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel between nodes",
    label = "what goes to other nodes is plain serde data",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it, and keep borrows and thread-bound parts out of it"
)]
pub trait Portable: Serialize + DeserializeOwned + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> Portable for T {}

/// Asserts that a type travels, where the type is written.
#[doc(hidden)]
pub const fn travels<T: Portable>() {}

/// A type of which a constant has asserted what must hold. Where that does not compile, the compiler has said so and says
/// nothing more of whatever is written with [`Asserted::Type`]: one mistake, one message.
#[doc(hidden)]
pub trait Asserted<const ASSERTIONS: usize> {
    /// The type itself.
    type Type;
}

impl<T> Asserted<0> for T {
    type Type = T;
}

/// A handler's return value, split into the reply and the handler's own error.
pub trait Outcome {
    /// The reply.
    type Reply;
    /// The handler's own error.
    type Error;

    /// The two apart.
    fn into_result(self) -> Result<Self::Reply, CallError<Self::Error>>;
}

impl<T, E> Outcome for Result<T, E> {
    type Reply = T;
    type Error = E;

    fn into_result(self) -> Result<T, CallError<E>> {
        self.map_err(CallError::Actor)
    }
}

/// A handler's return value that is not a `Result`: it has no error.
pub struct Plain<T>(pub T);

impl<T> Outcome for Plain<T> {
    type Reply = T;
    type Error = Never;

    fn into_result(self) -> Result<T, CallError<Never>> {
        Ok(self.0)
    }
}
