//! Greenroom: virtual actors, placed on a cluster, found, and kept single.
//!
//! A *virtual actor* always exists. It is addressed by its kind and its key; when it is called and is nowhere in memory, some
//! node of the cluster makes an *activation* of it, and when it is idle the activation goes. Nobody creates it, looks for it or
//! restarts it, at most one activation of it runs at a time, and when its node dies it answers again from another one.
//!
//! # An actor
//!
//! An actor is a struct, and its messages are methods:
//!
//! ```
//! use greenroom::prelude::*;
//!
//! #[derive(Default, Actor)]
//! pub struct ChatRoom { messages: Vec<String> }
//!
//! #[actor]                                             // its kind is "chat_room"
//! impl ChatRoom {
//!     /// `&mut self`: an exclusive turn, across every await.
//!     pub async fn post(&mut self, user: String, text: String) { self.messages.push(format!("{user}: {text}")) }
//!
//!     /// `&self`: a read; the reads of one activation interleave.
//!     pub async fn read(&self) -> Vec<String> { self.messages.clone() }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = Node::builder().register::<ChatRoom>().start().await?;
//! let lobby = ChatRoomRef::of(&node, "lobby");         // written by `#[actor]`
//! lobby.post("ada", "hello").await?;
//! assert_eq!(lobby.read().await?, ["ada: hello"]);
//! # node.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`actor`](macro@actor) lists all that may be said of a kind and of its methods. Within an actor, a reference is made with the
//! turn's [`Cx`]: `ChatRoomRef::of(cx, "lobby")`.
//!
//! # Calls and what comes of them
//!
//! A [`Call`] is a value: await it for the reply, [`send`](Call::send) it one-way, bound its time with [`by`](Call::by). A
//! [`CallError`] says what its caller needs to know:
//!
//! | | |
//! |---|---|
//! | [`Actor`](CallError::Actor) | the method's own error |
//! | [`Refused`](CallError::Refused) | nothing has run; [`Refusal`] says why, and whether to try again |
//! | [`Unknown`](CallError::Unknown) | it may have run; [`Doubt`] says what went wrong on the way |
//! | [`Cycle`](CallError::Cycle) | it would have waited for itself, along the chain of calls that is named |
//!
//! ```
//! # use greenroom::prelude::*;
//! # use std::time::Duration;
//! # #[derive(Default, Actor)]
//! # pub struct Account { balance: i64 }
//! #[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
//! #[error("there are only {have}")]
//! pub struct Overdrawn { have: i64 }
//!
//! #[actor]
//! impl Account {
//!     pub async fn withdraw(&mut self, amount: i64) -> Result<i64, Overdrawn> {
//!         if self.balance < amount {
//!             return Err(Overdrawn { have: self.balance });
//!         }
//!         self.balance -= amount;
//!         Ok(self.balance)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let node = Node::builder().register::<Account>().start().await?;
//! match AccountRef::of(&node, "ada").withdraw(5).by(Duration::from_secs(1)).await {
//!     Err(CallError::Actor(Overdrawn { have })) => assert_eq!(have, 0),
//!     other => panic!("{other:?}"),
//! }
//! # node.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # State
//!
//! What an actor must remember when its node dies is kept in one of several ways:
//!
//! | to keep | use |
//! |---|---|
//! | the struct, saved when you say so or after each turn | `#[actor(persistent)]` and [`Cx::save`] |
//! | fields of it, in stores of their own | [`Stored`] |
//! | what turns did and the messages that they sent, both or neither; each message processed once | `#[actor(reliable)]`, with [`Register`], [`Map`], [`Queue`], [`Set`] |
//! | a value that instances in several clusters update, without waiting or in order | [`VersionedState`], [`Versioned`] |
//!
//! Stores are named by URLs when a node is built: memory, SQLite, and with [features](#features) PostgreSQL, Redis, etcd, S3, Kafka
//! and Kubernetes.
//!
//! # Time, streams, topics
//!
//! [`Cx::after`] and [`Cx::every`] start timers of an activation; [`Reminders`] outlive it. A method that gives a [`Stream`] sends
//! its items as its caller has room for them ([`ReplyStream`]). A [`Topic`] brings events to actors that subscribe, by kind or by key,
//! and to watchers. [`Cx::spawn`] starts an actor that belongs to its parent and is supervised by it ([`Supervise`]).
//!
//! # A node, a cluster, several
//!
//! [`Node::builder`] starts a node within any program. Nodes that share a table in a store are one cluster; [`Builder::http`] opens
//! the HTTP door, `run_from_args` takes a node's flags from the command line. [`Placement`] says where actors are activated;
//! [`GeoConfig`] joins clusters to one actor system, in which an actor has one instance, or one in each.
//!
//! ```no_run
//! # use greenroom::prelude::*;
//! # #[derive(Default, Actor)]
//! # pub struct ChatRoom;
//! # #[actor]
//! # impl ChatRoom { pub async fn read(&self) {} }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = Node::builder().http("127.0.0.1:7070").table("sqlite:/var/lib/chat/table.db").register::<ChatRoom>().start().await?;
//! node.run_until_ctrl_c().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Tests
//!
//! The crate `greenroom-test` runs a cluster of your actors in one test, under virtual time, with nodes that die at the moment that
//! you choose; a seed decides everything else, and replays it.
//!
//! # Features
//!
//! | | |
//! |---|---|
//! | `http` | the HTTP door, and outputs to hooks; on by default, with `tls` |
//! | `flags` | a node's flags and configuration file; on by default |
//! | `sqlite` | tables, states and journals in SQLite; on by default |
//! | `tls` | TLS between nodes; on by default |
//! | `schemars` | descriptions of kinds with the schemas of types that derive `schemars::JsonSchema` |
//! | `cron` | [reminders](Reminders) by cron patterns; on by default |
//! | `postgres`, `redis`, `etcd`, `kafka`, `s3`, `kube` | the other stores, each alone; `stores` is all of them |
//!
//! `default-features = false` makes a node within one process, or of a plain cluster, that builds in half the time. What is not
//! built and asked for in the configuration is an error at the start, which names the feature.

#![cfg_attr(not(feature = "http"), allow(dead_code, reason = "numbers and names that only the HTTP door shows"))]

// The macros write `::greenroom`, in here too.
extern crate self as greenroom;

mod actor;
mod blocking;
mod cluster;
mod context;
mod duration;
#[cfg(feature = "flags")]
pub mod flags;
#[cfg(feature = "http")]
mod gateway;
mod geo;
mod here;
mod hosts;
mod intercept;
mod locality;
mod net;
mod node;
mod observe;
mod pids;
mod reliable;
mod shard;
pub mod state;
mod stream;
mod time;
mod topic;
pub mod versioned;

pub use greenroom_macros::{Actor, actor};
pub use greenroom_protocols::supervision::Supervise;

pub use crate::actor::call::{Call, Calling};
pub use crate::actor::cancelled::Cancelled;
pub use crate::actor::cx::{Cx, KEEP_ALIVE_MAX, Scope};
pub use crate::actor::error::{CallError, Doubt, Never, Refusal};
pub use crate::actor::failed::Failed;
pub use crate::actor::interface::{Actor, Why};
pub use crate::actor::key::{ActorId, KEY_LEN_MAX, KIND_LEN_MAX, KINDS_MAX, KINDS_OFFERED_MAX, Key, Kind};
pub use crate::actor::migration::Unmoved;
pub use crate::actor::reference::Ref;
pub use crate::actor::spent::{Behind, Spent};
pub use crate::actor::version_gap::VersionGap;
pub use crate::blocking::settings::{POOL_THREADS_MAX, PoolSize, Threads};
pub use crate::blocking::{Blocking, NotBegun, PoolStatus, StallingMethod};
pub use crate::cluster::placement::{Candidate, Placement};
pub use crate::context::{Context, ContextError, TraceContext, TraceError};
pub use greenroom_security::auth::{Auth, Issuer};
pub use greenroom_security::files::{DoorTls, NodeTls};
pub use greenroom_security::principal::Principal;
pub use greenroom_security::rules::Rule;

pub use crate::geo::{
    Adaptive, ClusterChange, ClusterStatus, ClustersUnchanged, GeoActivation, GeoAdaptive, GeoCluster, GeoConfig,
    GeoCounts, GeoHome, GeoInstances, GeoKind, MultiCluster, Standings,
};
pub use crate::here::figures::Figure;
pub use crate::hosts::settings::{HostRule, HostsConfig};
pub use crate::intercept::{CallInfo, End, Interceptor, Outcome};
pub use crate::node::builder::Builder;
pub use crate::node::signals::StopSignals;
pub use crate::node::{
    Brought, Config, ConsoleMode, Drained, Error, Inspected, Inspection, KindConfig, LongTurn, Node, PastTurn, Result,
    RunningTurn, SPAWNED_LISTED_MAX, WaitingMessage, Waits,
};
pub use crate::observe::events::{Event, Moved};
pub use crate::observe::findings::{Evidence, Finding};
pub use crate::observe::level::Level;
pub use crate::observe::subject::Subject;
pub use crate::pids::dead_letters::DEAD_LETTERS_LEN_MAX;
pub use crate::pids::{DeadLetter, DeadLetters, Ended, Pid, Spawnable, Spawned};
pub use crate::reliable::{Map, Queue, Register, Reliability, Set};
pub use crate::shard::frames::{CurrentTurn, current_turn};
pub use crate::state::{State, StateError, Stored};
pub use crate::stream::reply_stream::ReplyStream;
pub use crate::time::{Registering, Reminder, ReminderError, ReminderInfo, Reminders, Schedule, Tick, Timer};
pub use crate::topic::{Delivery, EventId, PublishError, Published, Slow, Subscription, Topic, Watch};
pub use crate::versioned::{Versioned, VersionedState, VersionedStateWithOutput};
pub use futures_util::Stream;

/// Doors of other protocols, as `greenroom-grpc` is one: they call by kind, key, method and bytes, and share the HTTP door's guard,
/// rules and bounds.
#[cfg(feature = "http")]
pub mod door {
    pub use crate::gateway::{
        Arguments, Call, DoorConnection as Connection, Item, Items, Problem, Protocol, Received, TopicWatch, Visit,
        Working,
    };
}

/// The optimiser: what it is told, and what it says of who talks with whom; [`Node::advice`] and [`Node::explain`] ask it.
pub mod optimiser {
    pub use crate::locality::settings::{Optimiser, OptimiserMode};
    pub use crate::locality::{ActorAdvice, Advice, Edge, FarKind, Judged, KindAdvice, MovedActor, ShardAdvice, Wish};
}

/// What is written for who explores actors: it is there where `greenroom-explore` is.
#[doc(hidden)]
#[cfg(feature = "rehearsal")]
#[macro_export]
macro_rules! __rehearsed {
    ($($written:tt)*) => { $($written)* };
}

/// The same where nobody explores: nothing.
#[doc(hidden)]
#[cfg(not(feature = "rehearsal"))]
#[macro_export]
macro_rules! __rehearsed {
    ($($written:tt)*) => {};
}

/// For greenroom-explore. Nothing here is promised.
#[doc(hidden)]
#[cfg(feature = "rehearsal")]
pub mod rehearsal {
    pub use greenroom_macros::explore;

    pub use crate::actor::interface::{Behaviour, Interface};
    pub use crate::actor::invent::{Inventor, NotInvented};
    pub use crate::actor::reference::Ref;
    pub use crate::here::port::Port;
    pub use crate::shard::rehearsal::{
        Answer, Digest, Event, Fault, Happened, Kind, Look, Outcome, Party, Performed, Seen, Stage, Step, Waiting,
        ask_maybe, hold_late_write, hold_operation, mix,
    };
}

/// What most programs need.
pub mod prelude {
    pub use greenroom_macros::actor;

    pub use crate::{
        Actor, CallError, Cx, Doubt, Ended, Key, Map, Never, Node, NotBegun, Pid, Queue, Refusal, Register,
        ReminderError, ReplyStream, Scope, Set, State, StateError, Stored, Stream, Supervise, Tick, Timer, Versioned,
        VersionedState, VersionedStateWithOutput, Why,
    };
}

/// For the code that the macros write. Nothing here is promised.
#[doc(hidden)]
pub mod __private {
    pub use bytes::{Bytes, BytesMut};
    pub use greenroom_protocols::node::Instances;
    pub use greenroom_protocols::state_versions::StateVersions;
    pub use greenroom_reliable::fields::{Field, Part, Whole};
    pub use greenroom_wire::EncodeError;
    pub use greenroom_wire::codec::{self, Codec, DecodeError};
    pub use serde;

    pub use crate::actor::call::Call;
    pub use crate::actor::cx::{Cx, Scope};
    pub use crate::actor::error::{CallError, Never};
    pub use crate::actor::interface::{
        Actor, Asserted, Behaviour, Interface, Message, Method, MethodInfo, Options, Outcome, Plain, Portable,
        ReadOnly, Sound, Travels, Why, travels,
    };
    #[cfg(feature = "rehearsal")]
    pub use crate::actor::invent::{Invent, invent};
    pub use crate::actor::key::{ActorId, Key};
    pub use crate::actor::migration::{carried, carry};
    pub use crate::actor::reference::Ref;
    pub use crate::actor::reply::{AnyReply, ReplyTo, TYPE_VERSION, Told, Untold, WireReply};
    #[cfg(feature = "rehearsal")]
    pub use crate::actor::shown::{AsData, NoData, Shown, Unshown};
    pub use crate::actor::signature::{Parameter, Schemed, Signature, Typed, Unschemed, Untyped, type_of};
    pub use crate::blocking::on_a_thread;
    pub use crate::pids::Ended;
    pub use crate::reliable::{
        Anything, Awaited, Kept, collect, defer, ignore, is_known, kept, load, state, unhandled,
    };
    pub use crate::state::{
        AnyStored, Data, Old, Older, Saving, State, StateError, StoredVersions, Written, state_of, versions, written,
    };
    pub use crate::stream::reply_stream::ReplyStream;
}
