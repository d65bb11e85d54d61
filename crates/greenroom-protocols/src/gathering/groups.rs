//! Groups: actors of one shard that talk mostly with each other, and so go together.

use std::collections::BTreeMap;

use super::Actor;

/// The `seats`, each in one group: with those that have half of its messages, or half of whose messages it has. At most
/// [`MEMBERS_MAX`] are in one.
pub(super) fn groups(actors: &[Actor], seats: &[usize], by_hash: &BTreeMap<u64, usize>) -> Vec<Vec<usize>> {
    let mut group_of: BTreeMap<usize, usize> = seats.iter().map(|seat| (*seat, *seat)).collect();
    let mut groups: BTreeMap<usize, Vec<usize>> = seats.iter().map(|seat| (*seat, vec![*seat])).collect();
    for seat in seats {
        let Actor { flow, edges, .. } = &actors[*seat];
        let leads = |(_, weight): &&(u64, u32)| u64::from(*weight) * 2 >= u64::from(*flow) && *weight > 0;
        for (partner, _) in edges.iter().filter(leads) {
            let Some(other) = by_hash.get(partner).and_then(|other| group_of.get(other)).copied() else { continue };
            let own = group_of[seat];
            if own == other || groups[&own].len() + groups[&other].len() > MEMBERS_MAX {
                continue;
            }
            let joined = groups.remove(&own).unwrap_or_default();
            joined.iter().for_each(|member| _ = group_of.insert(*member, other));
            groups.entry(other).or_default().extend(joined);
        }
    }
    groups.into_values().collect()
}

/// Actors of one group.
const MEMBERS_MAX: usize = 64;
