//! Keys that name no actor, and actors that the journal cannot give back: both are said at once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use greenroom::prelude::*;
use greenroom_protocols::delivery::{Commit, CommitId, Envelope, Lane, PartitionId, Write};
use greenroom_protocols::reminders::Wall;
use greenroom_reliable::ledger::{Ledger, Name, Outcome, OwnerProcess, Place};
use greenroom_store::Store;
use greenroom_store::memory::MemoryStore;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use crate::client::{get, post, raw};

#[derive(Default, Actor)]
struct Writer {
    letters: u64,
}

#[actor(reliable)]
impl Writer {
    pub async fn write(&mut self, cx: &Cx, to: String) -> u64 {
        self.letters += 1;
        ReaderRef::of(cx, to).read().send();
        self.letters
    }

    pub async fn tell(&mut self, cx: &Cx, to: String) -> u64 {
        self.letters += 1;
        PlainRef::of(cx, to).hear().send();
        self.letters
    }

    pub async fn letters(&self) -> u64 {
        self.letters
    }
}

#[derive(Default, Actor)]
struct Reader {
    letters: u64,
}

#[actor(reliable)]
impl Reader {
    pub async fn read(&mut self) -> u64 {
        self.letters += 1;
        self.letters
    }

    /// Reads on until it is disturbed.
    pub async fn immerse(&mut self) {
        DISTURBED.notified().await;
    }
}

static DISTURBED: Notify = Notify::const_new();

#[derive(Default, Actor)]
struct Plain {}

#[actor]
impl Plain {
    pub async fn hear(&mut self) {}
}

async fn node(journal: &Arc<MemoryStore>) -> (Node, String) {
    let builder = Node::builder().http("127.0.0.1:0").journal_store(journal.clone());
    let builder = builder.register::<Writer>().register::<Reader>().register::<Plain>();
    let node = builder.configure(|config| config.reliable.partitions = 1).start().await.expect("it starts");
    let door = node.http_address().expect("it has a door");
    (node, door)
}

/// What is parked, once something is.
async fn parked(door: &str) -> Vec<Value> {
    loop {
        let shown = get(door, "/-/reliable/parked").await.json();
        let parked = shown["parked"].as_array().expect("a list").clone();
        if !parked.is_empty() {
            return parked;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_key_that_names_no_actor_is_400_wherever_it_is_given() {
    let (node, door) = node(&Arc::new(MemoryStore::new())).await;
    let (long, slashes) = ("k".repeat(greenroom::KEY_LEN_MAX + 1), "%2F".repeat(200));
    for key in [
        "",
        "%00",
        "a%00b",
        "a%0Ab",
        "%7F",
        "%C2%85",
        "%2E",
        "%2E%2E",
        &long,
        &"k".repeat(900),
        &slashes,
        "@ffffffff.1.1.1",
    ] {
        for path in [format!("/reader/{key}/read"), format!("/-/reliable/actor/reader/{key}")] {
            if key.starts_with('@') && path.starts_with("/-") {
                continue;
            }
            let answer =
                if path.starts_with("/-") { get(&door, &path).await } else { raw(&door, &post(&path, "", "")).await };
            let problem = answer.problem(400, "invalid-key");
            assert!(answer.header("retry-after").is_none(), "{path}: {problem}");
        }
        if !key.starts_with('@') {
            raw(&door, &post(&format!("/plain/{key}/hear"), "", "")).await.problem(400, "invalid-key");
            raw(&door, &post(&format!("/topics/{key}"), "", "1")).await.problem(400, "invalid-key");
            get(&door, &format!("/-/inspect/plain/{key}")).await.problem(400, "invalid-key");
            get(&door, &format!("/-/reminders/plain/{key}")).await.problem(400, "invalid-key");
        }
    }
    let longest = "k".repeat(greenroom::KEY_LEN_MAX);
    assert_eq!(raw(&door, &post(&format!("/reader/{longest}/read"), "", "")).await.status, 200);
    node.stop().await;
}

#[tokio::test]
async fn a_turn_that_sends_to_nobody_fails_and_has_done_nothing() {
    let (node, _) = node(&Arc::new(MemoryStore::new())).await;
    let writer = WriterRef::of(&node, "w");
    let long = "k".repeat(greenroom::KEY_LEN_MAX + 1);
    for key in ["", &long, "a\0b", "~1.1.1.1", "@ffffffff.1.1.1"] {
        let failed = writer.write(key).await.expect_err("its letter cannot be sent").to_string();
        assert!(failed.contains("cannot send read to reader"), "{failed}");
    }
    for key in ["", &long, "~1.1.1.1"] {
        let failed = writer.tell(key).await.expect_err("its word cannot be sent").to_string();
        assert!(failed.contains("cannot send hear to plain"), "{failed}");
    }
    assert_eq!(writer.letters().await, Ok(0));
    assert_eq!(writer.write("somebody").await, Ok(1));
    node.stop().await;
}

#[tokio::test]
async fn who_calls_an_actor_whose_records_are_damaged_is_told_and_messages_for_it_are_parked() {
    let journal = Arc::new(MemoryStore::new());
    let damaged = "reliable/greenroom/00000/present/reader/r";
    let version = journal.create(damaged, Bytes::from_static(b"\x01\x01no record"), BY).await.unwrap();
    let (node, door) = node(&journal).await;
    let answer = raw(&door, &post("/reader/r/read", "", "")).await;
    let problem = answer.problem(503, "unavailable");
    assert!(problem["detail"].as_str().unwrap().contains(damaged), "{problem}");
    assert_eq!(problem["may_have_run"], false);
    assert_eq!(WriterRef::of(&node, "w").write("r").await, Ok(1), "its own records are whole");
    let shown = parked(&door).await;
    assert!(shown[0]["error"].as_str().unwrap().contains(damaged), "{shown:?}");

    journal.delete(damaged, &version, BY).await.unwrap();
    let (partition, slot) = (&shown[0]["partition"], shown[0]["slot"].as_str().unwrap());
    assert_eq!(raw(&door, &post(&format!("/-/reliable/{partition}/retry/{slot}"), "", "")).await.status, 200);
    while ReaderRef::of(&node, "r").read().await.unwrap() < 2 {}
    node.stop().await;
}

#[tokio::test]
async fn a_call_waits_no_longer_than_its_caller_and_never_runs_after_it() {
    let (node, door) = node(&Arc::new(MemoryStore::new())).await;
    let reader = ReaderRef::of(&node, "r");
    let waiting = async |count: u64| {
        while get(&door, "/-/reliable").await.json()["partitions"][0]["waiting"] != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let immersed = tokio::spawn({
        let reader = reader.clone();
        async move { reader.immerse().by(Duration::from_secs(60)).await }
    });
    waiting(1).await;
    let calls = (0..10).map(|_| reader.read().by(Duration::from_millis(100)).into_future());
    let ended = futures_util::future::join_all(calls).await;
    assert!(ended.iter().all(Result::is_err), "{ended:?}");
    waiting(1).await;
    DISTURBED.notify_one();
    immersed.await.unwrap().unwrap();
    assert_eq!(reader.read().await, Ok(1), "none of the others has run");
    node.stop().await;
}

#[tokio::test]
async fn a_name_for_which_stores_have_no_room_does_not_start() {
    let named = |cluster: &str| {
        let cluster = cluster.to_owned();
        Node::builder().configure(move |config| config.cluster = cluster).start()
    };
    for (cluster, why) in
        [("", "it is empty"), ("a\nb", "control character"), (&*"c".repeat(65), "over the limit of 64")]
    {
        let error = named(cluster).await.expect_err("there is no room for it").to_string();
        assert!(error.contains("cluster") && error.contains(why), "{error}");
    }
    named(&"c".repeat(64)).await.expect("it fits").stop().await;
}

/// A name as the ledger holds it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
struct Named {
    kind: String,
    key: String,
}

impl Name for Named {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn key(&self) -> &str {
        &self.key
    }
}

/// A message as the ledger holds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Body {
    Call {
        method: String,
        #[serde(with = "serde_bytes")]
        arguments: Vec<u8>,
    },
}

#[tokio::test]
async fn a_committed_message_for_a_key_that_names_no_actor_is_parked_at_once() {
    let journal = Arc::new(MemoryStore::new());
    let place = Place::new("greenroom", PartitionId(0));
    let (ledger, _) = Ledger::take::<Named, Body>(
        journal.clone(),
        place,
        OwnerProcess { name: "an older program", number: 1 },
        Wall(1),
        BY,
    )
    .await
    .unwrap();
    let to = Named { kind: "reader".to_owned(), key: "k".repeat(900) };
    let body = Body::Call { method: "read".to_owned(), arguments: vec![1, 1, 0x90] };
    let envelope = Envelope { from: None, to, birth: None, creates: false, call: None, body }.into();
    let writes = vec![Write::Append { lane: Lane::Counted(PartitionId(0)), number: 1, envelope }];
    let commit = Commit { id: CommitId(1), epoch: ledger.owner().epoch, turns: Vec::new(), writes };
    assert_eq!(ledger.commit(&commit, &[]).await, Outcome::Committed);
    let (node, door) = node(&journal).await;
    let shown = parked(&door).await;
    assert!(shown[0]["error"].as_str().unwrap().contains("over the limit"), "{shown:?}");
    assert_eq!(WriterRef::of(&node, "w").write("r").await, Ok(1), "the lane goes on");
    node.stop().await;
}

const BY: Duration = Duration::from_secs(5);
