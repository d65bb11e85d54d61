//! Why activations end.

use serde::{Deserialize, Serialize};

/// Why an activation ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Why {
    /// No message came for the kind's idle time.
    Idle,
    /// The node is stopping.
    Stopping,
    /// The actor asked for it: [`Cx::deactivate`](crate::Cx::deactivate).
    Asked,
    /// A turn panicked: the actor is made anew.
    Panicked,
    /// It goes to another node, with what it carries: [`Cx::migrate_to`](crate::Cx::migrate_to).
    Migrating,
    /// Another activation of the actor has a higher epoch.
    Superseded,
    /// Another cluster owns the actor: this was a second instance, made while the clusters could not reach each other.
    Duplicate,
    /// Its cluster is leaving the multi-cluster, or another one makes most of its calls: the next call activates it there.
    Leaving,
    /// A caller needs a newer version of the actor's interface, which another node hosts.
    Upgraded,
    /// A save of its state has failed or is in doubt: what is in the store counts.
    Unsaved,
    /// Somebody stopped the spawned actor: [`Pid::stop`](crate::Pid::stop).
    Stopped,
    /// Somebody killed the spawned actor: [`Pid::kill`](crate::Pid::kill). What its turn had begun was dropped.
    Killed,
    /// The spawned actor's parent has ended or was made anew.
    Parent,
    /// The spawned actor has failed, and its supervision does not restart it.
    Failed,
    /// A spawned child has failed and escalates.
    Escalated,
    /// A sibling has failed, and they are restarted together.
    Together,
    /// The node that the spawned actor was on has left the cluster.
    NodeLost,
    /// The spawned actor had ended before anybody asked; why is no longer known.
    Unknown,
    /// The host that had the actor was lost, and no other one offered its kind in time.
    HostLost,
}
