//! What a shard knows of the ways to other nodes: which of them may be had, and where messages had better go.

use greenroom_protocols::node::NodeId;

use super::Shard;
use super::mail::{AnyMail, is_awaited};
use crate::here::location::Location;

impl Shard {
    /// Whether a connection to `node` may be had: it lives, as far as is known here, and has not taken leave.
    pub(super) fn may_dial(&self, node: NodeId) -> bool {
        self.port.node.is_member(node) && !self.has_departed(node)
    }

    /// Whether nobody has said that an actor, once found at `node`, is elsewhere. Answers say so by themselves.
    pub(super) fn is_still_at(&self, node: NodeId, hash: u64, mail: &mut dyn AnyMail) -> bool {
        let hint = self.hints.borrow().find(hash);
        hint.is_none_or(|hint| hint == node) || is_awaited(mail)
    }

    /// Where a message that `owner` would send on had better go. Who last answered may be about to leave, and would take
    /// with it what nobody waits for.
    pub(crate) fn shortcut(&self, hash: u64, owner: NodeId, awaited: bool) -> NodeId {
        let answered = self.answered.borrow().find(hash).filter(|_| awaited);
        let hint = answered.or_else(|| self.hints.borrow().find(hash));
        // It may have been here, and has ended since.
        hint.filter(|hint| *hint != self.port.node.me() && self.may_dial(*hint)).unwrap_or(owner)
    }

    /// What a location comes to: a node that has taken leave will soon not be named any more, and one that only others
    /// reach is reached through one of them.
    pub(crate) fn reachable(&self, location: Location) -> Location {
        match location {
            Location::There { node, .. } if self.has_departed(node) => Location::Wait,
            Location::There { node, grant } => {
                Location::There { node: self.port.node.detour(node).unwrap_or(node), grant }
            }
            location => location,
        }
    }
}
