//! Files that are not what they should be.

use greenroom_store::StoreError;

use super::*;

fn refused(path: impl AsRef<Path>) -> StoreError {
    SqliteStore::open(path).unwrap_err()
}

#[test]
fn a_file_of_another_sort_is_refused_and_left_alone() {
    let (_directory, path) = fresh();
    let text = "this is a letter to my mother ".repeat(50);
    std::fs::write(&path, &text).unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::Format { .. }) && error.to_string().contains("not an SQLite database"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn the_database_of_another_program_is_refused_and_left_alone() {
    let (_directory, path) = fresh();
    raw(&path).execute_batch("CREATE TABLE recipes (name)").unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = refused(&path);
    assert!(error.to_string().contains("database of another program"), "{error}");
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn a_directory_and_a_missing_directory_are_named() {
    let (directory, _) = fresh();
    let error = refused(directory.path());
    assert!(error.to_string().contains("it is a directory; name a file in it"), "{error}");
    let error = refused(directory.path().join("none/store.db"));
    assert!(error.to_string().contains("none; create it"), "{error}");
    assert!(refused("/dev/null").to_string().contains("not a regular file"));
}

#[cfg(unix)]
#[test]
fn a_file_without_rights_is_denied_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, path) = fresh();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    // The superuser may write anywhere else, but nobody creates files here.
    let superuser = std::fs::write(directory.path().join("probe"), "").is_ok();
    let error = refused(if superuser { PathBuf::from("/proc/self/store.db") } else { path });
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    assert!(error.to_string().contains("let this user read and write"), "{error}");
}

/// In a process of its own, which may open few files: no other test has to do without.
#[cfg(unix)]
#[test]
fn a_process_that_may_open_no_more_files_says_so_and_nothing_of_rights() {
    const CHILD: &str = "GREENROOM_TEST_WITHOUT_FILES";
    if std::env::var_os(CHILD).is_none() {
        let name = "tests::odd_files::a_process_that_may_open_no_more_files_says_so_and_nothing_of_rights";
        let limited = "ulimit -n 64 && exec \"$0\" --exact \"$1\" --nocapture";
        let mut child = std::process::Command::new("sh");
        child.args(["-c", limited]).arg(std::env::current_exe().unwrap()).arg(name).env(CHILD, "1");
        let ended = child.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && said.contains("1 passed"), "{ended:?}");
        return;
    }
    let (_directory, path) = fresh();
    let held: Vec<std::fs::File> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    let error = refused(&path);
    drop(held);
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("too many files are open"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_replaced_under_an_open_store_is_used_by_nobody() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let version = store.create("key", "x".into(), BY).await.unwrap();
    std::fs::rename(&path, path.with_extension("moved")).unwrap();
    for error in [
        store.read("key", BY).await.unwrap_err(),
        store.replace("key", "y".into(), &version, BY).await.unwrap_err(),
        store.scan("", None, 1, BY).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("removed or replaced while it was open"), "{error}");
    }
    std::fs::rename(path.with_extension("moved"), &path).unwrap();
    assert_eq!(store.read("key", BY).await.unwrap().unwrap().version, version);
}

#[tokio::test]
async fn a_value_over_the_limit_is_refused_with_both_sizes() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let error = store.create("key", vec![0; VALUE_BYTES_MAX + 1].into(), BY).await.unwrap_err();
    assert!(error.to_string().contains("67108865 bytes") && error.to_string().contains("at most 67108864"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_files_are_their_users_alone_unless_they_were_there() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, path) = fresh();
    let mode = |name: &str| {
        let found = std::fs::metadata(directory.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        found.permissions().mode() & 0o777
    };
    let store = SqliteStore::open(&path).unwrap();
    store.create("key", "x".into(), BY).await.unwrap();
    for name in ["store.db", "store.db-wal", "store.db-shm", "store.db-turn"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    drop(store);
    let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("-new-")), "{names:?}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    store.create("other", "x".into(), BY).await.unwrap();
    assert_eq!((mode("store.db"), mode("store.db-wal")), (0o640, 0o640));
}
