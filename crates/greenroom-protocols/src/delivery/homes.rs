//! Which node each partition belongs on: rendezvous hashing with bounded loads (Mirrokni, Thorup & Zadimoghaddam, 2018).

use super::PartitionId;
use crate::mix::weight;

/// For each of `partitions`, the position of its node among `nodes`, which are numbers that tell nodes apart and stay the
/// same when one restarts. No node has more than its share, rounded up; few partitions move when a node comes or goes.
/// Empty if there is no node.
pub fn homes(nodes: &[u64], partitions: u32) -> Vec<usize> {
    let Some(share) = (partitions as usize).checked_div(nodes.len()) else { return Vec::new() };
    let share = share + usize::from(!(partitions as usize).is_multiple_of(nodes.len()));
    let mut loads = vec![0; nodes.len()];
    (0..partitions).map(PartitionId).map(|partition| home(partition, nodes, share, &mut loads)).collect()
}

/// The node with room that is first in the partition's contest.
fn home(partition: PartitionId, nodes: &[u64], share: usize, loads: &mut [usize]) -> usize {
    let contest = u64::from(partition.0);
    let with_room = (0..nodes.len()).filter(|node| loads[*node] < share);
    // The shares add up to all partitions at least, so one has room.
    let first = with_room.max_by_key(|node| (weight(contest, nodes[*node]), nodes[*node])).unwrap_or_default();
    loads[first] += 1;
    first
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(homes: &[usize], nodes: &[u64]) -> Vec<u64> {
        homes.iter().map(|home| nodes[*home]).collect()
    }

    proptest! {
        #[test]
        fn no_node_has_more_than_its_share_and_all_partitions_have_a_home(
            nodes in prop::collection::btree_set(any::<u64>(), 1..12),
            partitions in 1_u32..300,
        ) {
            let nodes: Vec<u64> = nodes.into_iter().collect();
            let homes = homes(&nodes, partitions);
            prop_assert_eq!(homes.len(), partitions as usize);
            let most = (0..nodes.len()).map(|node| homes.iter().filter(|home| **home == node).count()).max();
            prop_assert!(most.unwrap_or_default() <= (partitions as usize).div_ceil(nodes.len()));
        }

        #[test]
        fn the_order_in_which_nodes_are_named_does_not_matter(
            nodes in prop::collection::btree_set(any::<u64>(), 1..12),
        ) {
            let forth: Vec<u64> = nodes.iter().copied().collect();
            let back: Vec<u64> = nodes.iter().rev().copied().collect();
            prop_assert_eq!(names(&homes(&forth, 64), &forth), names(&homes(&back, 64), &back));
        }

        #[test]
        fn most_partitions_stay_when_a_node_comes(nodes in prop::collection::btree_set(any::<u64>(), 3..12)) {
            let after: Vec<u64> = nodes.into_iter().collect();
            let before = &after[1..];
            let (old, new) = (names(&homes(before, 256), before), names(&homes(&after, 256), &after));
            let moved = old.iter().zip(&new).filter(|(old, new)| old != new).count();
            prop_assert!(moved <= 2 * 256 / after.len() + 16, "{} of 256 moved to make room for one of {}", moved, after.len());
        }
    }

    #[test]
    fn without_nodes_no_partition_has_a_home() {
        assert_eq!(homes(&[], 64), Vec::<usize>::new());
    }

    #[test]
    fn homes_are_a_promise_between_nodes() {
        assert_eq!(homes(&[1, 2, 3], 12), GOLDEN);
    }

    const GOLDEN: [usize; 12] = [1, 0, 0, 0, 0, 2, 2, 2, 1, 2, 1, 1];
}
