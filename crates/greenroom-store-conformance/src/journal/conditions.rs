//! One commit after another: what is applied, and when.

use greenroom_store::{Commit, Journal, StoreError, Version};

use super::{commit, texts};
use crate::BY;
use crate::plain::{assert_conflict, create, read};

/// Each write and append of a commit is there afterwards, under the versions and positions that it answers.
pub async fn a_commit_applies_all_of_itself(journal: &dyn Journal) {
    let (old, gone) = (create(journal, "all/replaced", "old").await, create(journal, "all/deleted", "x").await);
    let fence = create(journal, "all/fence", "x").await;
    create(journal, "all/removed", "x").await;
    let mixed = Commit::new()
        .create("all/created", "1".into())
        .replace("all/replaced", "2".into(), &old)
        .delete("all/deleted", &gone)
        .put("all/put", "3".into())
        .remove("all/removed")
        .hold("all/fence", &fence)
        .append("all/log", "4".into())
        .append("all/other", "5".into())
        .append("all/log", "6".into());
    let committed = commit(journal, mixed).await;
    assert_eq!(committed.positions, [1, 1, 2]);
    let [created, replaced, None, put, None, None] = &committed.versions[..] else { panic!("{committed:?}") };
    for (key, value, version) in [("created", "1", created), ("replaced", "2", replaced), ("put", "3", put)] {
        let version = version.clone().unwrap_or_else(|| panic!("all/{key} has no version: {committed:?}"));
        assert_eq!(read(journal, &format!("all/{key}")).await, Some((value.into(), version)));
    }
    assert_eq!(read(journal, "all/deleted").await, None);
    assert_eq!(read(journal, "all/removed").await, None);
    assert_eq!(texts(journal, "all/log", 1).await, ["4", "6"]);
    assert_eq!(texts(journal, "all/other", 1).await, ["5"]);
}

/// A commit may be empty; it answers nothing.
pub async fn a_commit_of_nothing_does_nothing(journal: &dyn Journal) {
    let committed = commit(journal, Commit::new()).await;
    assert!(committed.versions.is_empty() && committed.positions.is_empty());
}

/// Whichever condition fails, wherever in the commit: the key is named, nothing is written, no position is used up.
pub async fn a_condition_that_fails_leaves_nothing_and_is_named(journal: &dyn Journal) {
    let stale = create(journal, "fail/there", "old").await;
    let current = journal.replace("fail/there", "new".into(), &stale, BY).await.expect("the version is current");
    let failing = [
        ("fail/there", Commit::new().create("fail/there", "x".into())),
        ("fail/there", Commit::new().replace("fail/there", "x".into(), &stale)),
        ("fail/there", Commit::new().delete("fail/there", &stale)),
        ("fail/there", Commit::new().hold("fail/there", &stale)),
        ("fail/absent", Commit::new().replace("fail/absent", "x".into(), &current)),
        ("fail/absent", Commit::new().delete("fail/absent", &current)),
        ("fail/absent", Commit::new().hold("fail/absent", &current)),
        ("fail/there", Commit::new().hold("fail/there", &Version::new("of another engine"))),
    ];
    for (n, (key, failing)) in failing.into_iter().enumerate() {
        let around = |commit: Commit| commit.put(format!("fail/after/{n}"), "x".into()).append("fail/log", "x".into());
        let mut before = around(Commit::new().create(format!("fail/before/{n}"), "x".into()));
        before.writes.extend(failing.writes.clone());
        for commit in [around(failing), before] {
            let found = (key == "fail/there").then_some(&current);
            assert_conflict(journal.commit(commit, BY).await, key, found);
        }
    }
    assert_eq!(read(journal, "fail/there").await, Some(("new".into(), current)));
    for prefix in ["fail/before/", "fail/after/", "fail/absent"] {
        assert_eq!(journal.scan(prefix, None, 10, BY).await.expect("a scan").items, []);
    }
    assert_eq!(journal.end("fail/log", BY).await, Ok(1));
}

/// `Put` creates and overwrites, `Remove` removes what is there and is content with nothing.
pub async fn writes_without_conditions_apply_whatever_is_there(journal: &dyn Journal) {
    for value in ["first", "second"] {
        commit(journal, Commit::new().put("free/a", value.into())).await;
        assert_eq!(read(journal, "free/a").await.map(|(value, _)| value), Some(value.into()));
    }
    for _ in 0..2 {
        commit(journal, Commit::new().remove("free/a")).await;
        assert_eq!(read(journal, "free/a").await, None);
    }
}

/// A condition alone is no write: the version that it names stays.
pub async fn a_held_key_keeps_its_version(journal: &dyn Journal) {
    let version = create(journal, "held/a", "x").await;
    for _ in 0..3 {
        let held = commit(journal, Commit::new().hold("held/a", &version)).await;
        assert_eq!(held.versions, [None]);
    }
    assert_eq!(read(journal, "held/a").await, Some(("x".into(), version)));
}

/// No version of a key is given again, whichever kind of write gives it.
pub async fn versions_of_commits_are_not_reused(journal: &dyn Journal) {
    let mut seen: Vec<Version> = Vec::new();
    for n in 0..12 {
        let write = match n % 4 {
            0 => Commit::new().create("again/a", "same".into()),
            1 => Commit::new().replace("again/a", "same".into(), seen.last().expect("it was created")),
            2 => Commit::new().put("again/a", "same".into()),
            _ => Commit::new().remove("again/a"),
        };
        let committed = commit(journal, write).await;
        for version in committed.versions.into_iter().flatten() {
            assert!(!seen.contains(&version), "version {version} was given twice");
            for old in &seen {
                assert_conflict(
                    journal.commit(Commit::new().hold("again/a", old), BY).await,
                    "again/a",
                    Some(&version),
                );
            }
            seen.push(version);
        }
    }
    assert_eq!(seen.len(), 9);
}

/// One commit writes a key once: which of two writes should win, nobody says.
pub async fn a_key_that_occurs_twice_is_refused(journal: &dyn Journal) {
    let version = create(journal, "twin/a", "x").await;
    for commit in [
        Commit::new().put("twin/a", "y".into()).put("twin/a", "z".into()),
        Commit::new().hold("twin/a", &version).replace("twin/a", "y".into(), &version),
        Commit::new().remove("twin/a").append("twin/log", "y".into()).create("twin/a", "z".into()),
    ] {
        let error = journal.commit(commit, BY).await.expect_err("the key occurs twice");
        assert!(matches!(error, StoreError::InvalidCommit { .. }), "{error}");
        assert!(error.to_string().contains("twin/a"), "{error}");
    }
    assert_eq!(read(journal, "twin/a").await, Some(("x".into(), version)));
    assert_eq!(journal.end("twin/log", BY).await, Ok(1));
}
