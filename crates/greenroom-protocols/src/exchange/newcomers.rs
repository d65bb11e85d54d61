//! Which nodes are being filled: by their activations, whether anybody's cores are busy or not.

use std::collections::{BTreeMap, BTreeSet};

use super::Tolerance;
use crate::node::NodeId;

/// Nodes that were so far below the mean that balance began to fill them, and have not been at it since.
///
/// One exchange seldom fills a node, and what it has after the first differs by less than makes balance begin.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Newcomers(BTreeSet<NodeId>);

impl Newcomers {
    /// Looks at the activations of all nodes.
    pub(super) fn look(&mut self, activations: &BTreeMap<NodeId, u64>, tolerance: Tolerance) {
        let sum = activations.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let mean = sum.div_ceil(activations.len().max(1) as u64);
        let delta = tolerance.of_count(mean);
        let most = activations.values().copied().max().unwrap_or_default();
        let is_new = |node: &NodeId, count: u64| {
            let begins = count < mean.saturating_sub(delta) && most - count > tolerance.far_by_count(mean);
            begins || (self.0.contains(node) && count < mean - mean / NEARLY)
        };
        self.0 = activations.iter().filter(|(node, count)| is_new(node, **count)).map(|(node, _)| *node).collect();
    }

    /// Whether this node is one of them.
    pub(super) fn contains(&self, node: NodeId) -> bool {
        self.0.contains(&node)
    }
}

/// Who lacks but so small a part of the mean is filled: the mean itself wavers from one second to the next.
pub(super) const NEARLY: u64 = 32;
