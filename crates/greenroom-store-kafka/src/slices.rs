//! Which partition of the topics a key or log lies in.
//!
//! What one partition of reliable actors has lies together, as it is committed together; so does all else.

use greenroom_store::{Commit, Result, StoreError};

/// The slice of a key or log, of `slices`.
pub(crate) fn slice_of(name: &str, slices: i32) -> i32 {
    let Some((cluster, partition)) = scope(name) else { return COMMON };
    let hash = cluster.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte));
    (hash.wrapping_add(partition) % slices.max(1).cast_unsigned()).cast_signed()
}

/// The slices in which names may lie that begin with `prefix`.
pub(crate) fn slices_of_prefix(prefix: &str, slices: i32) -> Vec<i32> {
    if scope(prefix).is_some() {
        return vec![slice_of(prefix, slices)];
    }
    if prefix.starts_with(RELIABLE) || RELIABLE.starts_with(prefix) {
        return (0..slices).collect();
    }
    vec![COMMON]
}

/// The one slice of a commit.
///
/// # Errors
/// [`StoreError::InvalidCommit`] if it has none.
pub(crate) fn slice_of_commit(commit: &Commit, slices: i32) -> Result<i32> {
    let keys = commit.writes.iter().map(|write| write.key());
    let mut names = keys.chain(commit.appends.iter().map(|append| append.log.as_str()));
    let first = names.next().map_or(COMMON, |name| slice_of(name, slices));
    match names.find(|name| slice_of(name, slices) != first) {
        None => Ok(first),
        Some(other) => {
            let reason = format!(
                "{other:?} lies in another partition of Kafka's topics; commit together only what one partition of reliable \
                 actors has, or what none has"
            );
            Err(StoreError::InvalidCommit { key: commit.name().to_owned(), reason })
        }
    }
}

/// The cluster and the partition of reliable actors that a name is of: `reliable/CLUSTER/00017/…`.
fn scope(name: &str) -> Option<(&str, u32)> {
    let (cluster, rest) = name.strip_prefix(RELIABLE)?.split_once('/')?;
    let (partition, _) = rest.split_once('/')?;
    Some((cluster, partition.parse().ok()?))
}

const RELIABLE: &str = "reliable/";
/// Where all lies that no partition of reliable actors has.
const COMMON: i32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_partition_of_actors_has_lies_together() {
        let names = ["reliable/bank/00007/fence", "reliable/bank/00007/out/counted-00002", "reliable/bank/00007/"];
        let slices = names.map(|name| slice_of(name, 16));
        assert!(slices.iter().all(|slice| *slice == slices[0]), "{slices:?}");
        let all: std::collections::BTreeSet<i32> =
            (0..64).map(|n| slice_of(&format!("reliable/bank/{n:05}/fence"), 16)).collect();
        assert_eq!(all.len(), 16, "partitions are spread");
        assert_eq!(slice_of("reliable/bank/about", 16), COMMON);
    }

    #[test]
    fn a_scan_looks_wherever_its_names_may_lie() {
        assert_eq!(slices_of_prefix("reliable/bank/00007/state/", 16), [slice_of("reliable/bank/00007/x", 16)]);
        assert_eq!(slices_of_prefix("bench/", 16), [COMMON]);
        for wide in ["", "rel", "reliable/", "reliable/bank/", "reliable/bank/0000"] {
            assert_eq!(slices_of_prefix(wide, 4), [0, 1, 2, 3], "{wide:?}");
        }
    }

    #[test]
    fn a_commit_of_two_slices_is_refused() {
        let commit = Commit::new().put("reliable/bank/00007/x", "".into()).append("reliable/bank/00008/y", "".into());
        assert!(matches!(slice_of_commit(&commit, 16), Err(StoreError::InvalidCommit { .. })));
        assert!(slice_of_commit(&Commit::new().put("a", "".into()).append("b", "".into()), 16).is_ok());
    }
}
