//! What stops a store: each refusal names its cause and the remedy, changes nothing, and gives no password away.

use std::process::Command;
use std::time::Duration;

use greenroom_engines::Postgres;
use greenroom_store::{Applied, Commit, Journal, Store, StoreError};

use crate::{administer, open, refusal, start, try_open};

const BY: Duration = Duration::from_secs(20);

fn as_user(postgres: &Postgres, user: &str) -> String {
    format!("postgres://{user}:word@127.0.0.1:{}/postgres", postgres.port())
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_the_password() {
    let port = greenroom_engines::free_port();
    let error = refusal(&format!("postgres://ada:{}@127.0.0.1:{port}/db", Postgres::PASSWORD)).await;
    let StoreError::Unavailable { store, reason } = &error else { panic!("{error}") };
    assert!(store.contains(&port.to_string()) && reason.contains("is the server running"), "{error}");
    let error = refusal("postgres://ada@no-such-host.invalid/db").await;
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn wrong_parameters_are_named_with_the_right_ones() {
    let error = refusal("postgres://h/db?sslmod=require").await.to_string();
    assert!(error.contains("no parameter \"sslmod\"") && error.contains("sslmode"), "{error}");
    let error = refusal("postgres://h/db?sslmode=full").await.to_string();
    assert!(error.contains("verify-full"), "{error}");
    let error = refusal("postgres://h/db?sslmode=require&tls=on").await.to_string();
    assert!(error.contains("keep one"), "{error}");
    let error = refusal("postgres://h").await.to_string();
    assert!(error.contains("postgres://host/database"), "{error}");
    let error = refusal("postgres://h/db?schema=pg_mine").await.to_string();
    assert!(error.contains("schema"), "{error}");
    let error = refusal("postgres://h/db?connections=0").await.to_string();
    assert!(error.contains("from 1 to 16"), "{error}");
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_denied() {
    let Some(postgres) = start() else { return };
    let wrong = postgres.url().replace(Postgres::PASSWORD, "guess");
    let error = refusal(&wrong).await;
    assert!(matches!(&error, StoreError::Denied { reason, .. } if reason.contains("password_file")), "{error}");
    assert!(!error.to_string().contains("guess"), "{error}");
    let missing = postgres.url().replace(&format!(":{}", Postgres::PASSWORD), "");
    let error = refusal(&missing).await;
    assert!(matches!(&error, StoreError::Denied { reason, .. } if reason.contains("password_file")), "{error}");
}

#[tokio::test]
async fn a_database_that_is_not_there_or_not_in_utf8_is_refused_with_the_statement_that_makes_one() {
    let Some(postgres) = start() else { return };
    let url = |name: &str| format!("{}/{name}", postgres.url().trim_end_matches("/postgres"));
    let error = refusal(&url("nowhere")).await;
    assert!(
        matches!(&error, StoreError::Configuration { reason, .. } if reason.contains("CREATE DATABASE \"nowhere\"")),
        "{error}"
    );
    administer(&postgres, "CREATE DATABASE old ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0").await;
    let error = refusal(&url("old")).await;
    assert!(matches!(&error, StoreError::Format { reason, .. } if reason.contains("ENCODING 'UTF8'")), "{error}");
}

#[tokio::test]
async fn missing_rights_are_told_with_the_grants_that_help() {
    let Some(postgres) = start() else { return };
    administer(&postgres, "CREATE USER ada PASSWORD 'word'; CREATE USER bob PASSWORD 'word'").await;
    let error = refusal(&as_user(&postgres, "ada")).await;
    let granted = "GRANT CREATE ON DATABASE \"postgres\" TO \"ada\"";
    assert!(matches!(&error, StoreError::Denied { reason, .. } if reason.contains(granted)), "{error}");
    administer(&postgres, granted).await;
    let store = try_open(&as_user(&postgres, "ada")).await.expect("it may create now");

    let error = refusal(&as_user(&postgres, "bob")).await;
    assert!(error.to_string().contains("GRANT USAGE ON SCHEMA"), "{error}");
    administer(
        &postgres,
        "GRANT USAGE ON SCHEMA greenroom TO bob; GRANT SELECT ON ALL TABLES IN SCHEMA greenroom TO bob",
    )
    .await;
    let error = refusal(&as_user(&postgres, "bob")).await.to_string();
    assert!(error.contains("UPDATE on greenroom_store") && error.contains("USAGE on greenroom_version"), "{error}");
    administer(
        &postgres,
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA greenroom TO bob;
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA greenroom TO bob",
    )
    .await;
    let bobs = try_open(&as_user(&postgres, "bob")).await.expect("it may do all that is needed");
    let version = bobs.create("a", "bob's".into(), BY).await.expect("it may write");
    assert_eq!(store.read("a", BY).await.expect("a read").map(|found| found.version), Some(version.clone()));

    administer(&postgres, "REVOKE UPDATE ON greenroom.greenroom_store FROM bob").await;
    let error = bobs.replace("a", "no".into(), &version, BY).await.expect_err("it may not any more");
    assert!(matches!(&error, StoreError::Denied { reason, .. } if reason.contains("GRANT")), "{error}");
    assert_eq!(error.applied(), Applied::No);
}

#[tokio::test]
async fn a_newer_format_is_refused_when_opening_and_when_writing() {
    let Some(postgres) = start() else { return };
    let store = open(&postgres, "aging").await;
    let version = store.create("a", "1".into(), BY).await.expect("it is there");
    administer(&postgres, "UPDATE aging.greenroom_meta SET format = 7").await;
    let errors = [
        refusal(&format!("{}?schema=aging", postgres.url())).await,
        store.replace("a", "2".into(), &version, BY).await.expect_err("the format is newer"),
        store.commit(Commit::new().append("log", "x".into()), BY).await.expect_err("the format is newer"),
    ];
    for error in errors {
        let told = error.to_string();
        assert!(matches!(error, StoreError::Format { .. }) && told.contains("format is 7"), "{told}");
    }
    administer(&postgres, "UPDATE aging.greenroom_meta SET format = 1").await;
    store.replace("a", "2".into(), &version, BY).await.expect("nothing has changed meanwhile");
}

#[tokio::test]
async fn a_row_that_another_transaction_keeps_locked_is_given_up_in_time_and_other_rows_go_on() {
    let Some(postgres) = start() else { return };
    let store = open(&postgres, "locked").await;
    let version = store.create("a", "1".into(), BY).await.expect("it is there");
    let connected = tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls).await;
    let (client, connection) = connected.expect("the server is ready");
    tokio::spawn(connection);
    client.batch_execute("BEGIN; SELECT 1 FROM locked.greenroom_store FOR UPDATE").await.expect("it locks");
    let patience = Duration::from_millis(300);
    let held = store.replace("a", "2".into(), &version, patience).await.expect_err("the row is locked");
    assert!(matches!(held, StoreError::NotApplied { .. } | StoreError::Unknown { .. }), "{held}");
    store.create("b", "1".into(), BY).await.expect("this row is not");
    client.batch_execute("ROLLBACK").await.expect("it unlocks");
    store.replace("a", "3".into(), &version, BY).await.expect("what was refused was not applied later");
}

#[tokio::test]
async fn a_full_disk_is_told_and_loses_nothing() {
    let Some(postgres) = start() else { return };
    let small = postgres.directory().join("small");
    std::fs::create_dir(&small).expect("a folder");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=24m,mode=777", "tmpfs"]).arg(&small).status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this user may not mount a small disk, so nothing was checked about a full one");
        return;
    }
    let _mounted = Mounted(small.clone());
    let place = small.join("place");
    std::fs::create_dir(&place).expect("a folder");
    postgres.give(&place).expect("it is given to the server");
    administer(&postgres, &format!("CREATE TABLESPACE small LOCATION '{}'", place.display())).await;
    administer(&postgres, "CREATE DATABASE cramped TABLESPACE small").await;
    let url = format!("{}/cramped", postgres.url().trim_end_matches("/postgres"));
    let store = try_open(&url).await.expect("there is room for the tables");
    let kept = store.create("kept", "1".into(), BY).await.expect("there is room for this");
    // Bytes that do not compress.
    let mut state = 1_u32;
    let large: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(3 << 20)
    .collect();
    let mut full = None;
    for n in 0..10 {
        match store.create(&format!("large/{n}"), large.clone().into(), BY).await {
            Ok(_) => assert_eq!(full, None, "it was full already"),
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    let full = full.expect("30 MiB do not fit in 24");
    assert!(matches!(full, StoreError::Full { .. }) && full.to_string().contains("free or add space"), "{full}");
    assert_eq!(full.applied(), Applied::No);
    assert_eq!(store.read("kept", BY).await.expect("reads work").map(|found| found.version), Some(kept.clone()));
    store.delete("kept", &kept, BY).await.expect("a deletion needs no room");
}

/// A small disk, gone before the server whose folder it lies in.
struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}
