//! What stops a store: each refusal names its cause and the remedy, changes nothing, and gives no password away.

use std::process::Command;
use std::time::Duration;

use greenroom_store::{Applied, Commit, Journal, Store, StoreError};
use greenroom_store_redis::{Durability, VALUE_BYTES_MAX};

use crate::{PASSWORD, administer, open, refusal, start, start_with, try_open};

const BY: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_the_password() {
    let port = greenroom_engines::free_port();
    let error = refusal(&format!("redis://ada:{PASSWORD}@127.0.0.1:{port}/0")).await;
    let StoreError::Unavailable { store, reason } = &error else { panic!("{error}") };
    assert!(store.contains(&port.to_string()) && reason.contains("is the server running"), "{error}");
    let error = refusal("redis://no-such-host.invalid/0").await;
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn wrong_parameters_are_named_with_the_right_ones() {
    for (url, remedy) in [
        ("redis://h/0?prefx=a", "there are: ca, prefix, replicas"),
        ("redis://h/users", "redis://host/0"),
        ("redis://h/0?replicas=many", "a number from 0 to 16"),
        ("redis://h/0?prefix=", "1 to 100 bytes"),
        ("redis://h/0?ca=/etc/ca.pem", "rediss://"),
        ("rediss://h/0?ca=/no/such/file", "PEM"),
    ] {
        let error = refusal(url).await;
        let told = error.to_string();
        assert!(matches!(error, StoreError::Configuration { .. }) && told.contains(remedy), "{told}");
    }
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_denied() {
    let Some(redis) = start() else { return };
    let wrong = redis.url().replace(PASSWORD, "guess");
    let missing = redis.url().replace(&format!(":{PASSWORD}@"), "");
    for url in [wrong, missing] {
        let error = refusal(&url).await;
        assert!(matches!(&error, StoreError::Denied { reason, .. } if reason.contains("password_file")), "{error}");
        assert!(!error.to_string().contains("guess"), "{error}");
    }
    let error = refusal(&format!("{}/99", redis.url())).await;
    assert!(error.to_string().contains("database"), "{error}");
}

#[tokio::test]
async fn missing_rights_are_told_when_opening_with_the_command_that_helps() {
    let Some(redis) = start() else { return };
    let url = redis.url().replace(&format!(":{PASSWORD}"), "ada:word");
    let rights = "~greenroom:* +@read +@write +@scripting +@connection +info +config|get +wait";
    for lacking in
        ["-@all +@connection", "~greenroom:* +@all -zadd", "~other:* +@all", "~greenroom:* +@all -@scripting"]
    {
        administer(&redis, &[&format!("ACL SETUSER ada reset on >word {lacking}")]).await;
        let error = refusal(&url).await;
        let told = error.to_string();
        assert!(matches!(error, StoreError::Denied { .. }) && told.contains(rights), "{lacking}: {told}");
    }
    administer(&redis, &[&format!("ACL SETUSER ada reset on >word {rights}")]).await;
    let store = try_open(&url).await.expect("what the message names is enough");
    let version = store.create("a", "1".into(), BY).await.expect("it may write");
    store.commit(Commit::new().append("log", "x".into()), BY).await.expect("and append");
    assert_eq!(store.entries("log", 1, 5, BY).await.expect("and read").len(), 1);
    store.trim("log", 1, BY).await.expect("and trim");
    assert_eq!(store.scan("", None, 5, BY).await.expect("and scan").items.len(), 1);
    administer(&redis, &["ACL SETUSER ada -@scripting"]).await;
    let error = store.replace("a", "2".into(), &version, BY).await.expect_err("it may not any more");
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    assert_eq!(error.applied(), Applied::No);
}

#[tokio::test]
async fn a_newer_format_is_refused_when_opening_and_when_writing() {
    let Some(redis) = start() else { return };
    let store = open(&redis, "aging").await;
    let version = store.create("a", "1".into(), BY).await.expect("it is there");
    administer(&redis, &["SET aging:format 7"]).await;
    let errors = [
        refusal(&format!("{}?prefix=aging:", redis.url())).await,
        store.replace("a", "2".into(), &version, BY).await.expect_err("the format is newer"),
        store.commit(Commit::new().append("log", "x".into()), BY).await.expect_err("the format is newer"),
    ];
    for error in errors {
        let told = error.to_string();
        assert!(matches!(error, StoreError::Format { .. }) && told.contains("format is 7"), "{told}");
    }
    administer(&redis, &["SET aging:format 1"]).await;
    store.replace("a", "2".into(), &version, BY).await.expect("nothing has changed meanwhile");
}

#[tokio::test]
async fn a_flushed_store_refuses_to_go_on_as_if_nothing_had_been_there() {
    let Some(redis) = start() else { return };
    let store = open(&redis, "flushed").await;
    store.create("a", "1".into(), BY).await.expect("it is there");
    administer(&redis, &["FLUSHALL"]).await;
    let error = store.create("a", "2".into(), BY).await.expect_err("the data are gone");
    assert!(matches!(&error, StoreError::Format { reason, .. } if reason.contains("data are gone")), "{error}");
}

#[tokio::test]
async fn scripts_that_the_server_has_forgotten_are_loaded_again() {
    let Some(redis) = start() else { return };
    let store = open(&redis, "scripts").await;
    let version = store.create("a", "1".into(), BY).await.expect("it is there");
    administer(&redis, &["SCRIPT FLUSH"]).await;
    assert_eq!(store.scan("", None, 5, BY).await.expect("a scan").items.len(), 1);
    administer(&redis, &["SCRIPT FLUSH"]).await;
    store.replace("a", "2".into(), &version, BY).await.expect("it is loaded and called again");
}

#[tokio::test]
async fn full_memory_is_told_and_loses_nothing() {
    let Some(redis) = start_with(&[("maxmemory", "6mb")]) else { return };
    let store = open(&redis, "cramped").await;
    let kept = store.create("kept", "1".into(), BY).await.expect("there is room");
    let mut full = None;
    for n in 0..8 {
        let commit = Commit::new().create(format!("large/{n}"), vec![7; 1 << 20].into()).append("log", "x".into());
        if let Err(error) = store.commit(commit, BY).await {
            full = Some((n, error));
            break;
        }
    }
    let (n, full) = full.expect("8 MiB do not fit in 6");
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    assert_eq!(full.applied(), Applied::No);
    assert_eq!(store.read(&format!("large/{n}"), BY).await, Ok(None));
    assert_eq!(store.end("log", BY).await, Ok(n + 1));
    assert_eq!(store.read("kept", BY).await.expect("reads work").map(|found| found.version), Some(kept.clone()));
    store.delete("kept", &kept, BY).await.expect("a deletion needs no room");
}

#[tokio::test]
async fn a_full_disk_is_told_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(folder.path()).status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this user may not mount a small disk, so nothing was checked about a full one");
        return;
    }
    let _mounted = Mounted(folder.path().to_owned());
    let place = folder.path().to_str().expect("text").to_owned();
    let settings = [("dir", &*place), ("appendonly", "yes"), ("appendfsync", "everysec")];
    let Some(redis) = start_with(&settings) else { return };
    let store = open(&redis, "cramped").await;
    assert_eq!(store.status().durability, Durability::LastSecond);
    let kept = store.create("kept", "1".into(), BY).await.expect("there is room");
    let mut full = None;
    for n in 0..12 {
        if let Err(error) = store.create(&format!("large/{n}"), vec![7; 1 << 20].into(), BY).await {
            full = Some(error);
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let full = full.expect("12 MiB do not fit in 8");
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    assert_eq!(store.read("kept", BY).await.expect("reads work").map(|found| found.version), Some(kept));
}

/// A small disk that goes with the test.
struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

#[tokio::test]
async fn a_server_that_evicts_or_is_a_cluster_is_refused() {
    let Some(redis) = start_with(&[("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")]) else { return };
    let error = refusal(&redis.url()).await.to_string();
    assert!(error.contains("noeviction"), "{error}");
    let Some(redis) = start_with(&[("cluster-enabled", "yes")]) else { return };
    let error = refusal(&redis.url()).await;
    assert!(matches!(&error, StoreError::Configuration { reason, .. } if reason.contains("cluster mode")), "{error}");
}

#[tokio::test]
async fn a_value_over_the_limit_is_refused_and_one_at_the_limit_is_kept() {
    let Some(redis) = start() else { return };
    let store = open(&redis, "large").await;
    let error = store.create("a", vec![7; VALUE_BYTES_MAX + 1].into(), BY).await.expect_err("it is too large");
    assert!(matches!(error, StoreError::TooLarge { bytes_max: VALUE_BYTES_MAX, .. }), "{error}");
    store.create("a", vec![7; VALUE_BYTES_MAX].into(), BY).await.expect("it fits");
}

#[tokio::test]
async fn what_a_server_keeps_is_told_as_it_is_set() {
    for (settings, durability) in [
        (vec![], Durability::Snapshots),
        (vec![("appendonly", "yes"), ("appendfsync", "always")], Durability::Full),
        (vec![("appendonly", "yes"), ("appendfsync", "everysec")], Durability::LastSecond),
        (vec![("appendonly", "yes"), ("appendfsync", "no")], Durability::ProcessCrash),
    ] {
        let Some(redis) = start_with(&settings) else { return };
        assert_eq!(open(&redis, "kept").await.status().durability, durability);
        if durability == Durability::Full {
            let no_questions = "ACL SETUSER ada on >word ~* +@all -config";
            administer(&redis, &[no_questions]).await;
            let url = redis.url().replace(&format!(":{PASSWORD}"), "ada:word");
            let store = try_open(&url).await.expect("it is enough");
            assert_eq!(store.status().durability, Durability::Unknown);
        }
    }
}
