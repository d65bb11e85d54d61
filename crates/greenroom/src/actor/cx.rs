//! What a handler sees of its surroundings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::directory::Epoch;

use super::key::{ActorId, Key};
use crate::node::port::Port;
use crate::shard::Shard;

/// An actor's surroundings: who it is, where it runs, and the way to other actors.
pub struct Cx {
    pub(crate) port: Arc<Port>,
    pub(crate) id: ActorId,
    pub(crate) epoch: Epoch,
}

impl Cx {
    /// The actor's key.
    pub fn key(&self) -> &Key {
        &self.id.key
    }

    /// The actor's kind, as it is called on the wire.
    pub fn kind(&self) -> &'static str {
        self.id.kind.name()
    }

    /// The actor's full name.
    pub fn id(&self) -> &ActorId {
        &self.id
    }

    /// The number of this activation among all activations of the actor: it only rises.
    pub fn epoch(&self) -> u64 {
        self.epoch.0
    }

    /// The name of the node that the activation is on.
    pub fn node_name(&self) -> &str {
        self.port.node.name()
    }

    /// What is left of the time that the current call has been given.
    ///
    /// `None` outside of a turn, and in a turn that nobody waits for.
    pub fn time_left(&self) -> Option<Duration> {
        Shard::with(|shard| shard.and_then(Shard::time_left))
    }

    /// Ends the activation once the turns that it has begun are over. The next message activates the actor anew.
    pub fn deactivate(&self) {
        Shard::with(|shard| {
            if let Some(shard) = shard {
                shard.ask_deactivation();
            }
        });
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("id", &self.id).field("epoch", &self.epoch.0).finish()
    }
}

/// What a reference can be bound to: a node, or an actor's surroundings.
pub trait Scope {
    #[doc(hidden)]
    fn port(&self) -> &Arc<Port>;
}

impl Scope for Cx {
    fn port(&self) -> &Arc<Port> {
        &self.port
    }
}

impl<S: Scope> Scope for &S {
    fn port(&self) -> &Arc<Port> {
        (*self).port()
    }
}
