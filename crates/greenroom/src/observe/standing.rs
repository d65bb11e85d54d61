//! Where a member stands, in one word.

use greenroom_protocols::node::{End, Member, NodeId, Status, View};

/// `joining`, `active`, `draining`, `left` or `dead`.
pub(crate) fn standing(view: &View, id: NodeId, member: &Member) -> &'static str {
    match member.status {
        Status::Joining => "joining",
        Status::Active if member.draining => "draining",
        Status::Active => "active",
        Status::Dead if view.ends.get(&id) == Some(&End::Left) => "left",
        Status::Dead => "dead",
    }
}
