//! `greenroom state` from outside, on SQLite: what it prints, what it refuses, and its exit statuses.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

/// A store in a directory that goes with it.
struct Store {
    directory: tempfile::TempDir,
}

impl Store {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.path("store.db").display())
    }

    fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, b"")
    }

    /// Runs `greenroom state` on the store, with what it reads from standard input.
    fn run_with(&self, args: &[&str], input: &[u8]) -> Output {
        let url = self.url();
        let mut command = Command::new(PROGRAM);
        command.arg("state").args(args).env("GREENROOM_STORE", url).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        // Those that read nothing may end before it is written.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// What a command prints that must succeed.
    fn said(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        text(&output.stdout)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

fn assert_fails(output: &Output, status: i32, words: &str) {
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    assert!(text(&output.stderr).contains(words), "{words:?} is not in {output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// A purse whose every change is kept.
mod purse {
    use greenroom::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Default, Clone, Serialize, Deserialize)]
    pub(crate) struct Balance {
        cents: i64,
    }

    impl VersionedState for Balance {
        type Update = i64;

        fn apply(&mut self, cents: &i64) {
            assert!(self.cents + cents >= 0, "not enough");
            self.cents += cents;
        }
    }

    #[derive(Default, Actor)]
    pub(crate) struct Purse {
        balance: Versioned<Balance>,
    }

    #[actor(protocol = "log")]
    impl Purse {
        #[update]
        pub async fn add(&self, cents: i64) -> Result<(), StateError> {
            self.balance.enqueue(cents);
            self.balance.confirm_updates().await
        }
    }
}

#[tokio::test]
async fn the_log_of_a_state_shows_its_updates_and_what_a_state_was_made_of() {
    let store = Store::new();
    let node = greenroom::Node::builder().register::<purse::Purse>().state(store.url()).configure(|config| {
        config.kinds.entry("purse".to_owned()).or_default().snapshot_every = Some(2);
    });
    let node = node.start().await.unwrap();
    for cents in [5, -9, 2] {
        purse::PurseRef::of(&node, "a/b").add(cents).await.unwrap();
    }
    node.stop().await;
    let lines = |args: &[&str]| -> Vec<serde_json::Value> {
        store.said(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = lines(&["log", "purse/balance/a/b"]);
    assert_eq!(all.iter().map(|line| line["update"].as_i64()).collect::<Vec<_>>(), [Some(5), Some(-9), Some(2)]);
    assert!(all[1]["rejected"].as_str().is_some_and(|why| why.contains("not enough")), "{all:?}");
    assert_eq!(all[2]["version"]["number"], 3);
    assert_eq!(lines(&["log", "state/purse/balance/a/b", "--from", "2", "--limit", "1"]), all[1..2]);
    let at = lines(&["log", "purse/balance/a/b", "--at", "3"]);
    assert_eq!((&at[0]["snapshot"], &at[0]["state"]["cents"], &at[1]), (&2.into(), &5.into(), &all[2]));
    assert_eq!(lines(&["log", "purse/balance/a/b", "--at", "1"]), all[..1]);
    assert_fails(&store.run(&["log", "purse/balance/a/b", "--at", "4"]), 3, "the last one is 3");
    assert_fails(&store.run(&["log", "purse/balance/b"]), 3, "there is no log");
}

#[test]
fn what_was_put_is_got_byte_by_byte() {
    let store = Store::new();
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(store.run_with(&["put", "raw/é", "--file", "-"], &bytes).status.code(), Some(0));
    assert_eq!(store.run(&["get", "raw/é"]).stdout, bytes);
    store.said(&["put", "empty", ""]);
    assert_eq!(store.said(&["get", "empty"]), "");
    let version = store.said(&["put", "a", "one"]);
    let shown = format!(r#"{{"key":"a","version":"{}","text":"one"}}"#, version.trim());
    assert_eq!(store.said(&["get", "a", "--json"]).trim(), shown);
}

#[test]
fn a_write_under_a_version_that_is_past_changes_nothing() {
    let store = Store::new();
    let first = store.said(&["put", "a", "one", "--create"]);
    store.said(&["put", "a", "two"]);
    for refused in [
        &["put", "a", "lost", "--expect", first.trim()][..],
        &["put", "a", "lost", "--create"],
        &["put", "absent", "lost", "--expect", first.trim()],
        &["delete", "a", "--expect", first.trim()],
    ] {
        assert_fails(&store.run(refused), 4, "not what the write expected");
    }
    assert_eq!(store.said(&["get", "a"]), "two");
    assert_fails(&store.run(&["get", "absent"]), 3, "there is no key");
    let version: serde_json::Value = serde_json::from_str(&store.said(&["get", "a", "--json"])).unwrap();
    store.said(&["delete", "a", "--expect", version["version"].as_str().unwrap()]);
    assert_fails(&store.run(&["delete", "a"]), 3, "there is no key");
}

#[test]
fn keys_are_listed_in_order_and_page_by_page() {
    let store = Store::new();
    let lines: String = (0..1201).map(|n| format!("{{\"key\":\"many/{n:04}\",\"text\":\"{n}\"}}\n")).collect();
    let imported = store.run_with(&["import"], lines.as_bytes());
    assert!(text(&imported.stderr).contains("created 1201"), "{imported:?}");
    store.said(&["put", "line\nbreak", "1"]);
    let all = store.said(&["list", "many/"]);
    let all: Vec<&str> = all.lines().collect();
    assert_eq!((all.len(), all[0], all[1200]), (1201, "many/0000", "many/1200"));
    assert!(all.is_sorted());
    let page = store.run(&["list", "many/", "--limit", "700"]);
    assert_eq!(text(&page.stdout).lines().collect::<Vec<_>>(), all[..700]);
    assert!(text(&page.stderr).contains("--after many/0699"), "{page:?}");
    assert_eq!(store.said(&["list", "many/", "--after", "many/0699"]).lines().collect::<Vec<_>>(), all[700..]);
    let page = store.run(&["list", "many/", "--limit", "1201"]);
    assert!(page.stderr.is_empty(), "there are no more: {page:?}");
    assert_eq!(store.said(&["list", "line"]), "\"line\\nbreak\"\n");
    assert_eq!(store.said(&["list", "line", "--long"]).split('\t').count(), 3);
    let listed: serde_json::Value = serde_json::from_str(&store.said(&["list", "line", "--json"])).unwrap();
    assert_eq!((&listed["key"], &listed["bytes"]), (&"line\nbreak".into(), &1.into()));
}

#[test]
fn what_is_exported_is_imported_into_another_store() {
    let (from, to) = (Store::new(), Store::new());
    from.said(&["put", "text", "zwölf\n\"quoted\""]);
    assert_eq!(from.run_with(&["put", "odd \" key", "--file", "-"], &[0, 255, 10]).status.code(), Some(0));
    let file = from.path("export.jsonl");
    let file = file.to_str().unwrap();
    from.said(&["export", "--output", file]);
    assert_eq!(from.said(&["export"]), std::fs::read_to_string(file).unwrap());
    to.said(&["import", file]);
    assert_eq!(to.said(&["export"]), from.said(&["export"]));
    assert_eq!(to.run(&["get", "odd \" key"]).stdout, [0, 255, 10]);
}

#[test]
fn keys_that_are_there_are_conflicts_unless_they_are_to_be_replaced_or_skipped() {
    let store = Store::new();
    store.said(&["put", "b", "old"]);
    let lines =
        b"{\"key\":\"a\",\"text\":\"new\"}\n\n{\"key\":\"b\",\"text\":\"new\"}\n{\"key\":\"c\",\"text\":\"new\"}\n";
    let refused = store.run_with(&["import"], lines);
    assert_fails(&refused, 4, "line 3: conflict: key b is there");
    assert!(text(&refused.stderr).contains("created 2, replaced 0, skipped 0, conflicts 1"), "{refused:?}");
    assert_eq!((store.said(&["get", "b"]), store.said(&["get", "c"])), ("old".into(), "new".into()));
    let skipped = store.run_with(&["import", "--skip"], lines);
    assert!(text(&skipped.stderr).contains("created 0, replaced 0, skipped 3, conflicts 0"), "{skipped:?}");
    assert_eq!((skipped.status.code(), store.said(&["get", "b"])), (Some(0), "old".into()));
    let replaced = store.run_with(&["import", "--replace"], lines);
    assert!(text(&replaced.stderr).contains("created 0, replaced 3, skipped 0, conflicts 0"), "{replaced:?}");
    assert_eq!((replaced.status.code(), store.said(&["get", "b"])), (Some(0), "new".into()));
    let twice = b"{\"key\":\"d\",\"text\":\"1\"}\n{\"key\":\"d\",\"text\":\"2\"}\n";
    assert_eq!(store.run_with(&["import", "--replace"], twice).status.code(), Some(0));
    assert_eq!(store.said(&["get", "d"]), "2", "lines of one key are written in their order");
}

#[test]
fn a_line_that_cannot_be_read_is_named_and_what_went_before_is_counted() {
    let store = Store::new();
    let failed = store.run_with(&["import"], b"{\"key\":\"a\",\"text\":\"1\"}\n{\"key\":\"b\"}\n");
    assert_fails(&failed, 1, "line 2: key \"b\" needs either");
}

#[test]
fn a_store_that_cannot_be_meant_is_refused_and_not_made() {
    let store = Store::new();
    assert_fails(&store.run(&["list"]), 1, "there is no file");
    assert!(!store.path("store.db").exists());
    assert_fails(&store.run(&["get", "a", "--store", "memory:"]), 1, "would be gone");
    assert_fails(&store.run(&["get", "a", "--store", "sqlit:a"]), 1, "did you mean \"sqlite\"");
    assert_eq!(store.run(&["put", "a"]).status.code(), Some(2), "no value");
    let refused = store.run(&["get", "a", "--store", "postgres://ada:lace@127.0.0.1:1/x"]);
    assert_fails(&refused, 1, "127.0.0.1");
    assert!(!text(&refused.stderr).contains("lace"), "{refused:?}");
}

#[cfg(not(feature = "postgres"))]
#[test]
fn an_engine_that_is_not_built_in_is_refused_with_the_feature() {
    let refused = Store::new().run(&["list", "--store", "postgres://db/x"]);
    assert_fails(&refused, 1, "built without PostgreSQL: build it with --features postgres");
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let store = Store::new();
    let lines: String = (0..5000).map(|n| format!("{{\"key\":\"many/{n:04}\",\"text\":\"{n}\"}}\n")).collect();
    assert_eq!(store.run_with(&["import"], lines.as_bytes()).status.code(), Some(0));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let url = format!("sqlite:{}", store.path("store.db").display());
    let listed = Command::new(PROGRAM).args(["state", "list", "--store", &url]).stdout(writer).output().unwrap();
    assert_eq!((listed.status.code(), text(&listed.stderr)), (Some(0), String::new()));
}

#[test]
fn a_failed_export_leaves_no_file() {
    let store = Store::new();
    store.said(&["put", "a", "1"]);
    let nowhere = store.path("nowhere/export.jsonl");
    assert_fails(&store.run(&["export", "--output", nowhere.to_str().unwrap()]), 1, "cannot write");
    let files: Vec<_> = std::fs::read_dir(Path::new(store.directory.path())).unwrap().flatten().collect();
    assert!(files.iter().all(|file| file.file_name().to_string_lossy().starts_with("store.db")), "{files:?}");
}
