//! Greenroom: virtual actors, placed on a cluster, found, and kept single.

#![cfg_attr(not(feature = "http"), allow(dead_code, reason = "numbers and names that only the HTTP door shows"))]

// The macros write `::greenroom`, in here too.
extern crate self as greenroom;

mod actor;
mod cluster;
mod context;
#[cfg(any(feature = "flags", feature = "http"))]
mod duration;
#[cfg(feature = "flags")]
pub mod flags;
#[cfg(feature = "http")]
mod gateway;
mod geo;
mod intercept;
mod node;
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
pub use crate::cluster::placement::{Candidate, Placement};
pub use crate::context::{Context, ContextError, TraceContext, TraceError};
pub use greenroom_security::access::Auth;
pub use greenroom_security::files::{DoorTls, NodeTls};
pub use greenroom_security::jwt::Issuer;
pub use greenroom_security::principal::Principal;
pub use greenroom_security::rules::Rule;

pub use crate::geo::{
    Adaptive, ClusterChange, ClusterStatus, ClustersUnchanged, GeoActivation, GeoAdaptive, GeoCluster, GeoConfig,
    GeoCounts, GeoHome, GeoInstances, GeoKind, MultiCluster, Standings,
};
pub use crate::intercept::{CallInfo, End, Interceptor, Outcome};
pub use crate::node::{
    Builder, Config, Drained, Error, Inspected, Inspection, KindConfig, LongTurn, Node, PastTurn, Result, RunningTurn,
    SPAWNED_LISTED_MAX, WaitingMessage, Waits,
};
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

/// What most programs need.
pub mod prelude {
    pub use greenroom_macros::actor;

    pub use crate::{
        Actor, CallError, Cx, Doubt, Ended, Key, Map, Never, Node, Pid, Queue, Refusal, Register, ReminderError,
        ReplyStream, Scope, Set, State, StateError, Stored, Stream, Supervise, Tick, Timer, Versioned, VersionedState,
        VersionedStateWithOutput, Why,
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
        Actor, Behaviour, Interface, Message, Method, MethodInfo, Options, Outcome, Plain, Portable, ReadOnly, Travels,
        Why,
    };
    pub use crate::actor::key::{ActorId, Key};
    pub use crate::actor::migration::{carried, carry};
    pub use crate::actor::reference::Ref;
    pub use crate::actor::reply::{AnyReply, ReplyTo, TYPE_VERSION, WireReply};
    pub use crate::pids::Ended;
    pub use crate::reliable::{Anything, Awaited, Kept, collect, defer, ignore, is_known, load, state, unhandled};
    pub use crate::state::{AnyStored, Old, Older, Saving, State, StateError, StoredVersions, Written, versions};
    pub use crate::stream::reply_stream::ReplyStream;
}
