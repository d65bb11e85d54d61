//! Which keys are kept, and apart.

use greenroom_store::key::KEY_BYTES_MAX;
use greenroom_store::{Applied, Store, StoreError};

use crate::BY;
use crate::plain::{create, read, scan};

/// Every allowed key is itself and no other: case, escapes, wildcards and scripts included.
pub async fn odd_keys_are_kept_apart(store: &dyn Store) {
    let longest = format!("odd/{}", "k".repeat(KEY_BYTES_MAX - 4));
    let mut keys: Vec<String> = [
        "/", "//", ".", "..", "a/", "/a", "a//b", "a/../b", "%", "%25", "%2F", "_", "*", "?", "a%", "A", "a", " ",
        " a", "a ", "\t", "\n", "'", "\"", "\\", "é", "e\u{301}", "日本", "🎭", "a:b", "{a}", "[a]", "#", "+", "&",
        "\u{7f}",
    ]
    .map(|name| format!("odd/{name}"))
    .into();
    keys.push(longest);
    let mut versions = Vec::new();
    for key in &keys {
        versions.push(create(store, key, key).await);
    }
    for (key, version) in keys.iter().zip(versions) {
        assert_eq!(read(store, key).await, Some((key.clone().into(), version)), "under {key:?}");
    }
    keys.sort();
    assert_eq!(scan(store, "odd/", 7).await, keys);
    assert_eq!(scan(store, "odd/%", 7).await, ["odd/%", "odd/%25", "odd/%2F"]);
}

/// What not every engine can hold is refused by all, by reads too.
pub async fn impossible_keys_are_refused_by_name(store: &dyn Store) {
    let version = create(store, "impossible/a", "x").await;
    for key in ["", "impossible/\0", &"k".repeat(KEY_BYTES_MAX + 1)] {
        let errors = [
            store.read(key, BY).await.expect_err("a read"),
            store.create(key, "x".into(), BY).await.expect_err("a create"),
            store.replace(key, "x".into(), &version, BY).await.expect_err("a replace"),
            store.delete(key, &version, BY).await.expect_err("a delete"),
        ];
        for error in errors {
            assert!(matches!(error, StoreError::InvalidKey { .. }), "for {key:?}: {error}");
            assert_eq!(error.applied(), Applied::No);
        }
    }
}
