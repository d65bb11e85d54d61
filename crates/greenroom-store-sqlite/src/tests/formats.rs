//! Files of other formats.

use greenroom_store::StoreError;

use super::*;

/// A file as the first format's program left it: `node/a` replaced once, `node/b` deleted, `raw`.
const FORMAT_1: &[u8] = include_bytes!("format-1.sqlite");

#[tokio::test]
async fn a_file_of_the_first_format_opens_with_all_it_holds_and_becomes_a_journal() {
    let (_directory, path) = fresh();
    std::fs::write(&path, FORMAT_1).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let found = store.scan("", None, 10, BY).await.unwrap().items;
    let found: Vec<_> =
        found.iter().map(|item| (&*item.key, &*item.versioned.value, item.versioned.version.as_str())).collect();
    assert_eq!(found, [("node/a", &b"active"[..], "2"), ("raw", &[0, 255, 7], "5")]);
    let version = Version::new("2");
    let commit = Commit::new().hold("node/a", &version).create("node/b", "again".into()).append("log", "x".into());
    let committed = store.commit(commit, BY).await.unwrap();
    assert_eq!(committed.versions, [None, Some(Version::new("6"))], "versions go on after the highest ever given");
    assert_eq!(committed.positions, [1]);
    drop(store);
    assert_eq!(SqliteStore::open(&path).unwrap().end("log", BY).await, Ok(2));
}

#[test]
fn many_openers_at_once_bring_a_file_up_to_date_once() {
    let (_directory, path) = fresh();
    std::fs::write(&path, FORMAT_1).unwrap();
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || drop(SqliteStore::open(path).unwrap()))
        })
        .collect();
    openers.into_iter().for_each(|opener| opener.join().unwrap());
    let format: i64 = raw(&path).query_row("SELECT format FROM greenroom_meta", [], |row| row.get(0)).unwrap();
    assert_eq!(format, 2);
}

#[tokio::test]
async fn a_newer_format_is_refused_by_name_also_when_it_comes_while_open() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    raw(&path).execute("UPDATE greenroom_meta SET format = 7", []).unwrap();
    let append = Commit::new().append("log", "x".into());
    for error in [
        store.create("key", "x".into(), BY).await.unwrap_err(),
        store.commit(append, BY).await.unwrap_err(),
        SqliteStore::open(&path).unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::Format { .. }));
        assert!(error.to_string().contains("its format is 7, this program knows 2; use the newer"), "{error}");
    }
}
