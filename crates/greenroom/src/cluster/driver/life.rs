//! A node's life and that of its cluster, as its log tells them.

use greenroom_protocols::membership::StopReason;
use greenroom_protocols::node::{End, Member, NodeId, Status, View};

use super::Driver;
use crate::here::Here;
use crate::observe::events::Happened;

impl Driver {
    /// Tells what is new in `view`.
    pub(super) fn tell(&self, before: &View, view: &View) {
        let (name, cluster) = (self.node.name(), &self.node.config().cluster);
        let Some(me) = self.membership.me() else {
            if let Some((id, other)) = view.called(name).find(|(id, _)| !before.members.contains_key(id)) {
                let address = &other.address;
                tracing::info!(name, %id, %address, "a node has this node's name; it must leave or lose its lease first");
            }
            return;
        };
        let joined = view.is_active(me) && !before.is_active(me);
        if joined {
            let members: Vec<&str> = view.active().map(|(_, member)| member.name.as_str()).collect();
            tracing::info!(name, id = %me, cluster, ?members, "this node has joined the cluster");
            self.node.happened(Happened::Joined { node: name.to_owned() });
        }
        // Who joins is told of the others at once.
        if view.is_active(me) && !joined {
            for (id, member) in view.members.iter().filter(|(id, _)| **id != me) {
                tell_of(&self.node, (*id, member), before, view);
            }
        }
    }

    /// Tells why this node stops.
    pub(super) fn tell_stop(&self, reason: StopReason) {
        let name = self.node.name();
        if let Some(why) = lost(reason) {
            self.node.happened(Happened::LeaseLost { node: name.to_owned(), why });
        }
        match reason {
            StopReason::Left => tracing::info!(name, "this node has left the cluster"),
            StopReason::DeclaredDead => tracing::error!(name, "the cluster has declared this node dead; it stops"),
            StopReason::LeaseRanOut => {
                tracing::error!(name, "this node has lost its lease, as it could not be renewed in time; it stops");
            }
            StopReason::NameTaken(id) => tracing::error!(name, %id, "a node that lives has this node's name; it stops"),
        }
    }
}

/// How a node has lost its lease, if that is why it stops.
fn lost(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::DeclaredDead => Some("the cluster has declared it dead"),
        StopReason::LeaseRanOut => Some("its lease could not be renewed in time"),
        StopReason::Left | StopReason::NameTaken(_) => None,
    }
}

/// Tells what is new of one other node.
fn tell_of(here: &Here, (id, member): (NodeId, &Member), before: &View, view: &View) {
    let (name, address) = (&member.name, &member.address);
    let node = || name.clone();
    let was = before.members.get(&id);
    match member.status {
        Status::Joining => {}
        Status::Active if !before.is_active(id) => {
            tracing::info!(name, %id, %address, "a node has joined");
            here.happened(Happened::Joined { node: node() });
        }
        Status::Active if member.draining && was.is_some_and(|was| !was.draining) => {
            tracing::info!(name, %id, "a node is about to leave");
            here.happened(Happened::Draining { node: node() });
        }
        Status::Active => {}
        Status::Dead if was.is_some_and(|was| was.status == Status::Dead) => {}
        Status::Dead => match view.ends.get(&id).copied().unwrap_or_default() {
            End::Left => {
                tracing::info!(name, %id, "a node has left");
                here.happened(Happened::Left { node: node() });
            }
            why => {
                tracing::info!(name, %id, %why, "a node is dead");
                here.happened(Happened::Died { node: node(), why: why.to_string() });
            }
        },
    }
}
