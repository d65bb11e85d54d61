//! How much one commit may hold.

use greenroom_store::key::KEY_BYTES_MAX;
use greenroom_store::{Applied, Commit, Journal, StoreError};

use super::{commit, entries};
use crate::BY;
use crate::dice::Dice;
use crate::plain::{read, scan};

/// Names are checked in commits as anywhere, those of logs too.
pub async fn impossible_names_are_refused(journal: &dyn Journal) {
    for name in ["", "impossible/\0", &"k".repeat(KEY_BYTES_MAX + 1)] {
        let errors = [
            journal.commit(Commit::new().put(name, "x".into()), BY).await.expect_err("a put"),
            journal.commit(Commit::new().append(name, "x".into()), BY).await.expect_err("an append"),
            journal.entries(name, 1, 1, BY).await.expect_err("entries"),
            journal.end(name, BY).await.expect_err("an end"),
            journal.trim(name, 1, BY).await.expect_err("a trim"),
        ];
        for error in errors {
            assert!(matches!(error, StoreError::InvalidKey { .. }), "for {name:?}: {error}");
        }
    }
}

/// What [`Journal::limits`] says is true: a commit of that many operations and one with the largest value are applied;
/// more is refused with the figures, and leaves nothing.
pub async fn a_commit_at_the_limits_is_applied_and_one_over_them_refused(journal: &dyn Journal) {
    let limits = journal.limits();
    let many = |operations: usize| {
        let writes = (0..operations / 2).fold(Commit::new(), |all, n| all.put(format!("many/{n:04}"), "x".into()));
        (operations / 2..operations).fold(writes, |all, n| all.append("many", n.to_string().into()))
    };
    let most = limits.operations_max;
    let committed = commit(journal, many(most)).await;
    assert_eq!(committed.positions.len(), most - most / 2);
    assert_eq!(scan(journal, "many/", 1000).await.len(), most / 2);
    assert_eq!(entries(journal, "many", 1, 1000).await.len(), most - most / 2);
    let error = journal.commit(many(most + 1), BY).await.expect_err("it is over the limit");
    assert!(
        matches!(error, StoreError::InvalidCommit { .. }) && error.to_string().contains(&most.to_string()),
        "{error}"
    );

    let largest = Dice::new(5).bytes(limits.value_bytes_max);
    commit(journal, Commit::new().put("most/value", largest.clone().into())).await;
    assert!(read(journal, "most/value").await.is_some_and(|(value, _)| value == largest), "it has changed");
    let over = vec![0; limits.value_bytes_max + 1];
    let with_value = Commit::new().put("most/small", "x".into()).put("most/over", over.clone().into());
    let with_entry = Commit::new().put("most/small", "x".into()).append("most/over", over.into());
    for commit in [with_value, with_entry] {
        let error = journal.commit(commit, BY).await.expect_err("it is over the limit");
        assert_eq!(error.applied(), Applied::No);
        assert!(matches!(&error, StoreError::TooLarge { key, .. } if key == "most/over"), "{error}");
    }

    let piece = bytes::Bytes::from(vec![1; limits.value_bytes_max]);
    let pieces = limits.bytes_max / limits.value_bytes_max + 1;
    let heavy = (0..pieces).fold(Commit::new(), |all, n| all.put(format!("most/heavy/{n}"), piece.clone()));
    let error = journal.commit(heavy, BY).await.expect_err("it is over the limit");
    assert!(matches!(error, StoreError::InvalidCommit { .. }), "{error}");
    assert_eq!(read(journal, "most/small").await, None);
    assert!(scan(journal, "most/heavy/", 10).await.is_empty());
}
