use super::*;
use crate::StoreError;

fn refusal(commit: &Commit) -> String {
    let limits = Limits { operations_max: 3, bytes_max: 20, value_bytes_max: 10 };
    let error = commit.check(&limits, "tiny:").unwrap_err();
    assert_eq!(error.applied(), crate::Applied::No);
    error.to_string()
}

#[test]
fn a_key_that_occurs_twice_is_named_with_the_remedy() {
    let version = Version::new("1");
    let message = refusal(&Commit::new().hold("a", &version).put("a", "x".into()));
    assert!(message.contains("key \"a\" occurs in it twice; make its writes one"), "{message}");
}

#[test]
fn one_log_may_get_several_entries() {
    let commit = Commit::new().append("a", "x".into()).append("a", "y".into()).put("a", "z".into());
    assert_eq!(commit.check(&Limits::default(), "any:"), Ok(()));
}

#[test]
fn what_is_over_a_limit_is_refused_with_both_figures() {
    let four = Commit::new().put("a", "".into()).put("b", "".into()).remove("c").append("d", "".into());
    assert!(refusal(&four).contains("4 writes and appends, tiny: takes at most 3"));
    let heavy = Commit::new().put("a", vec![0; 10].into()).append("b", vec![0; 9].into());
    assert!(refusal(&heavy).contains("21 bytes, tiny: takes at most 20"));
    let large = Commit::new().append("log", vec![0; 11].into());
    assert!(refusal(&large).contains("\"log\" has 11 bytes, tiny: takes at most 10"));
}

#[test]
fn impossible_names_are_refused() {
    let version = Version::new("1");
    for commit in [Commit::new().remove(""), Commit::new().hold("a\0", &version), Commit::new().append("", "".into())] {
        let error = commit.check(&Limits::default(), "any:").unwrap_err();
        assert!(matches!(error, StoreError::InvalidKey { .. }), "{error}");
    }
}

#[test]
fn a_commit_is_named_after_what_it_changes() {
    let version = Version::new("1");
    let fence = Commit::new().hold("fence", &version);
    assert_eq!(fence.name(), "fence");
    assert_eq!(fence.clone().append("log", "".into()).name(), "log");
    assert_eq!(fence.append("log", "".into()).remove("a").name(), "a");
}
