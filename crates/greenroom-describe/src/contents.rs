//! What stands in a description.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::schema::Schema;

/// A kind: its methods, and what the runtime must know of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Contents {
    /// The version of the format.
    #[serde(rename = "greenroom")]
    pub format: u32,
    /// The kind's name: ASCII letters, digits, `_`, `-` and `.`, with a letter or digit among them.
    pub kind: String,
    /// The version of the interface, from 1.
    #[serde(default = "first")]
    pub version: u16,
    /// The oldest version of the interface whose callers are served.
    #[serde(default = "first")]
    pub compatible: u16,
    /// What it is, in a paragraph; empty if nobody has said it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// What was said of the kind; the node decides what was not.
    #[serde(default)]
    pub options: Options,
    /// What may be called, in the order in which it is written.
    pub methods: Vec<Method>,
    /// The states that its actors have in a store.
    #[serde(default)]
    pub states: Vec<State>,
    /// The namespaces of topics whose events come to its actors.
    #[serde(default)]
    pub topics: Vec<Topic>,
    /// Types that schemas refer to as `#/$defs/NAME`.
    #[serde(default, rename = "$defs")]
    pub definitions: BTreeMap<String, Schema>,
}

/// One method.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Method {
    /// The name on the wire.
    pub name: String,
    /// What it does, in a paragraph.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// Whether its turns interleave with those of other reads.
    #[serde(default)]
    pub read: bool,
    /// Whether it is a read that changes versioned state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub update: bool,
    /// An object of the arguments by name, or anything.
    #[serde(default)]
    pub arguments: Schema,
    /// What it answers; `None` for a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Schema>,
    /// Its own error; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Schema>,
    /// The items of the stream that it answers with; `None` if it answers with one value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Schema>,
    /// What becomes of its messages in each state of a state machine; under `*` in those that are not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<BTreeMap<String, Handling>>,
}

/// What becomes of a message in a state of a state machine. In a state for which nothing is said it is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handling {
    /// A turn handles it.
    Run,
    /// It waits until the actor has jumped.
    Defer,
    /// It is taken, and nothing runs.
    Ignore,
}

/// What `#[actor(..)]`, or an SDK's like of it, says of a kind. What is not said is for the node to decide.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The actor as a whole is a state in a store.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub persistent: bool,
    /// Its turns commit in a journal with the messages that they send.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reliable: bool,
    /// Its activations carry what they hold to other nodes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub migrate: bool,
    /// The first state of a state machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// `balanced`, `local`, `random`, `hash`, `role:NAME`, or a name of the node's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Stateless workers: so many activations a node and key at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u16>,
    /// Milliseconds without a message after which an activation ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// Messages that may wait at one activation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mailbox: Option<u32>,
    /// Messages of the kind that may wait and run at once on one node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
    /// When its states are saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save: Option<Save>,
    /// The name of the node's store that its states are kept in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// In a multi-cluster: `single`, `per_cluster` or `adaptive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<String>,
    /// Of a single instance: `optimistic` or `pessimistic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<String>,
    /// `lease` or `lease:CLUSTER`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// How instances of versioned states agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The cluster whose instances lead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// Whether the optimiser moves its actors, if that does not follow from their placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimise: Option<bool>,
    /// `restart`: an exception that a handler does not mean makes the instance anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_error: Option<String>,
}

/// When states are saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Save {
    /// When the actor says so.
    Explicit,
    /// After each turn that has changed something.
    Turn,
    /// So many milliseconds after a change.
    AfterMs(u64),
}

/// A state in a store.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct State {
    /// The name that its record has in the store; `self` for the actor as a whole.
    pub name: String,
    /// The version of its type, from 1.
    #[serde(default = "first_type")]
    pub version: u8,
    /// Whether instances of several clusters update it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub versioned: bool,
}

/// A namespace of topics: events published there come to the actors that have the topics' keys.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Topic {
    /// The name before the `/` of a topic.
    pub namespace: String,
    /// The method that takes its events.
    pub method: String,
}

fn first() -> u16 {
    1
}

fn first_type() -> u8 {
    1
}
