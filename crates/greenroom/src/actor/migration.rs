//! Actors that go to another node with what they hold in memory.

use bytes::{Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec};

use super::interface::Portable;
use super::reply::TYPE_VERSION;

/// Why an actor was not asked to move.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unmoved {
    /// No node of that name takes activations.
    #[error("no node called {node:?} takes activations; `greenroom status` names those that do")]
    NoSuchNode {
        /// The name.
        node: String,
    },
    /// The kind does not say how its state travels.
    #[error(
        "actors of kind {kind:?} hold in memory what they do not carry: write `#[actor(migrate)]`, or the hooks `migrating` and `migrated`"
    )]
    NotCarried {
        /// The kind.
        kind: String,
    },
    /// Stateless workers are wherever their callers are.
    #[error("actors of kind {kind:?} are stateless workers, which every node has of its own")]
    Worker {
        /// The kind.
        kind: String,
    },
    /// Spawned actors stay where they were spawned: their pids say where that is.
    #[error("{actor} was spawned, and stays where it is; spawn another one on the node")]
    Spawned {
        /// The actor.
        actor: String,
    },
    /// The node does not host the kind.
    #[error("node {node:?} does not host kind {kind:?}")]
    NotHosted {
        /// The node.
        node: String,
        /// The kind.
        kind: String,
    },
    /// The hosts of the node are of an older version of the kind: actors do not go back.
    #[error(
        "the hosts of node {node:?} are of version {version} of kind {kind:?}, and here it has version {here}: actors do not go back"
    )]
    Older {
        /// The node.
        node: String,
        /// The kind.
        kind: String,
        /// The version there.
        version: u16,
        /// The version here.
        here: u16,
    },
    /// Who asks is not in a turn of an actor, or its actor is in no directory.
    #[error("there is no activation here that could move")]
    NotActive,
}

/// What an actor carries, as it travels.
#[doc(hidden)]
pub fn carry<C: Portable>(carried: &C) -> Result<Bytes, String> {
    let mut out = BytesMut::new();
    codec::encode(Codec::MessagePack, TYPE_VERSION, carried, &mut out).map_err(|error| error.to_string())?;
    Ok(out.freeze())
}

/// What came along.
#[doc(hidden)]
pub fn carried<C: Portable>(bytes: &[u8]) -> Result<C, String> {
    codec::decode(bytes).map_err(|error| format!("what the actor carries cannot be read: {error}"))
}
