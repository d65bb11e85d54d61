//! Who owns a range, and since when without a break.

use super::RangeId;
use crate::checks::Checks;
use crate::mix::weight;
use crate::node::{NodeId, Status, View};

/// The owner of `range` in `view`: the active node with the highest weight (rendezvous hashing: Thaler & Ravishankar,
/// IEEE/ACM ToN '98) of those that are not about to leave; `None` if there is no such node.
pub fn owner(range: RangeId, view: &View) -> Option<NodeId> {
    view.serving().map(|(node, _)| node).max_by_key(|node| (claim(range, *node), *node))
}

fn claim(range: RangeId, node: NodeId) -> u64 {
    weight(u64::from(range.0), node.0)
}

/// The owner of one range as one node knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Tenure {
    pub(super) owner: Option<NodeId>,
    /// The first version that this node saw at which the owner had come in.
    pub(super) since: u64,
}

impl Tenure {
    /// Takes in `new` after `old`; whether a new tenure begins, of whomever.
    pub(super) fn advance(&mut self, range: RangeId, old: Option<&View>, new: &View, checks: Checks) -> bool {
        assert!(old.is_none_or(|old| old.version <= new.version), "a tenure goes back to an earlier view");
        let owner = owner(range, new);
        let continues = owner == self.owner
            && owner.is_some_and(|owner| {
                old.is_some_and(|old| !checks.skipped_views || !interrupted(range, owner, old, new))
            });
        if !continues {
            *self = Self { owner, since: new.version };
        }
        !continues
    }
}

/// Whether a node that could own ranges neither in `old` nor in `new` may have owned the range before `owner` did again.
/// Who could in `old` and has a higher claim would own it there; and who drains never serves again.
fn interrupted(range: RangeId, owner: NodeId, old: &View, new: &View) -> bool {
    let joined_between = (old.next_node..new.next_node).map(NodeId);
    let was_joining = old.members.iter().filter(|(_, m)| m.status == Status::Joining).map(|(id, _)| *id);
    joined_between
        .chain(was_joining)
        .any(|node| !new.is_serving(node) && (claim(range, node), node) > (claim(range, owner), owner))
        && new.version > old.version + 1
}
