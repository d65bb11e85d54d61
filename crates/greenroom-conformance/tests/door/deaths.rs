//! A message or a reminder whose turn aborts its node's process is parked after three deaths, and an operator drops messages that wait and
//! lets reminders tick that are parked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_reliable::ledger::{OfflineJournal, StoredMessage};
use greenroom_store::Journal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{get, post, raw};

/// Counts, and aborts or hangs if it is told so.
#[derive(Default, Actor)]
struct Charge {
    count: u64,
}

#[actor(reliable)]
impl Charge {
    pub async fn pass(&mut self, cx: &Cx, to: String, method: String) -> u64 {
        let to = ChargeRef::of(cx, &to);
        match &*method {
            "explode" => to.explode().send(),
            "hang" => to.hang().send(),
            _ => to.add().send(),
        }
        self.count
    }

    pub async fn explode(&mut self) {
        std::process::abort();
    }

    pub async fn hang(&mut self) {
        std::future::pending().await
    }

    pub async fn add(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

/// Aborts its process when its reminder ticks, unless it is defused.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Alarm {
    is_live: bool,
    rings: u64,
}

#[actor(persistent, save = "turn")]
impl Alarm {
    pub async fn set(&mut self, cx: &Cx, is_live: bool) -> Result<u64, String> {
        self.is_live = is_live;
        let ring = AlarmRef::of(cx, cx.key()).ring().after(Duration::from_secs(1));
        ring.await.map(|()| 1).map_err(|error| error.to_string())
    }

    pub async fn defuse(&mut self) -> u64 {
        self.is_live = false;
        self.rings
    }

    pub async fn ring(&mut self) {
        if self.is_live {
            std::process::abort();
        }
        self.rings += 1;
    }

    pub async fn rings(&self) -> u64 {
        self.rings
    }
}

async fn node(folder: &Path) -> Node {
    let url = |name: &str| format!("sqlite:{}", folder.join(name).display());
    let builder = Node::builder().name("charged").http("127.0.0.1:0").table(url("table.db")).journal(url("journal.db"));
    let builder = builder.state(url("states.db")).configure(|config| config.reliable.partitions = 4);
    let builder = builder.register::<Charge>().register::<Alarm>();
    builder.start().await.expect("it starts")
}

/// Lets this process be a node, if the test below has started it as one.
#[tokio::test]
#[ignore = "it is the node of the test below, in a process of its own"]
async fn a_node_of_its_own() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let node = node(&folder).await;
    fs::write(folder.join("door.new"), node.http_address().expect("it has a door")).expect("the folder is there");
    fs::rename(folder.join("door.new"), folder.join("door")).expect("the folder is there");
    std::future::pending().await
}

/// A node in a process of its own, started again whenever it dies.
struct Supervised {
    folder: PathBuf,
    process: Child,
    deaths: u32,
}

impl Supervised {
    fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), process: started(folder), deaths: 0 }
    }

    /// Starts the node again if it has died.
    fn look(&mut self) {
        if self.process.try_wait().expect("it is a child").is_some() {
            self.deaths += 1;
            // The next one says where its door is.
            let _ = fs::remove_file(self.folder.join("door"));
            self.process = started(&self.folder);
        }
    }

    /// Asks until there is an answer that `judge` accepts.
    async fn until<T>(&mut self, request: &str, judge: impl Fn(&Value) -> Option<T>) -> T {
        for _ in 0..6000 {
            self.look();
            tokio::time::sleep(Duration::from_millis(20)).await;
            let Ok(door) = fs::read_to_string(self.folder.join("door")) else { continue };
            let Some(body) = ask(&door, request).await else { continue };
            if let Some(wanted) = serde_json::from_str(&body).ok().as_ref().and_then(&judge) {
                return wanted;
            }
        }
        panic!("there is no such answer to {request}");
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // It may have died by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn started(folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this process has a program"));
    command.args(["--exact", "deaths::a_node_of_its_own", "--ignored"]).env(FOLDER, folder);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

/// The body of the answer to a request; `None` if the node is not there.
async fn ask(door: &str, request: &str) -> Option<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let asked = async {
        let mut stream = tokio::net::TcpStream::connect(door).await.ok()?;
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    };
    tokio::time::timeout(Duration::from_secs(5), asked).await.ok().flatten()
}

fn call(path: &str, arguments: &Value, key: &str) -> String {
    let body = arguments.to_string();
    let key = if key.is_empty() { String::new() } else { format!("idempotency-key: {key}\r\n") };
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{key}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_message_that_aborts_its_process_is_parked_after_three_deaths_and_other_actors_answer() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut node = Supervised::new(folder.path());
    let pass = call("/charge/first/pass", &json!({ "to": "bomb", "method": "explode" }), "once");
    node.until(&pass, Value::as_u64).await;
    let look = "GET /-/reliable/parked HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let parked = node.until(look, |answer| answer["parked"].as_array()?.first().cloned()).await;
    assert_eq!((&parked["to"], &parked["method"]), (&json!("charge/bomb"), &json!("explode")));
    assert!(parked["error"].as_str().is_some_and(|error| error.contains("3 processes")), "{parked}");
    assert_eq!(node.deaths, 3);
    for actor in ["bystander", "bomb"] {
        let add = call(&format!("/charge/{actor}/add"), &json!({}), actor);
        assert_eq!(node.until(&add, Value::as_u64).await, 1);
    }
    assert_eq!(node.deaths, 3, "it stays up");
}

#[tokio::test]
async fn a_reminder_that_aborts_its_process_is_parked_after_three_deaths_until_an_operator_retries_it() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut node = Supervised::new(folder.path());
    // The harmless one is due at the same time on the same node.
    for (actor, is_live) in [("harmless", false), ("bomb", true)] {
        let set = call(&format!("/alarm/{actor}/set"), &json!({ "is_live": is_live }), "");
        node.until(&set, Value::as_u64).await;
    }
    let request =
        |path: &str| format!("{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let look = request("GET /-/reminders/alarm/bomb");
    let is_parked = |answer: &Value| answer["reminders"].as_array()?.first().filter(|it| it["parked"] == true).cloned();
    let parked = node.until(&look, is_parked).await;
    assert_eq!((&parked["name"], &parked["deaths"], node.deaths), (&json!("ring"), &json!(3), 3), "{parked}");
    let rings = |actor: &str| call(&format!("/alarm/{actor}/rings"), &json!({}), "");
    let has_rung = |answer: &Value| answer.as_u64().filter(|rings| *rings > 0);
    node.until(&rings("harmless"), has_rung).await;
    assert_eq!(node.until(&call("/alarm/bomb/defuse", &json!({}), ""), Value::as_u64).await, 0);
    let retry = request("POST /-/reminders/alarm/bomb/ring/retry");
    assert!(node.until(&retry, |answer| answer["existed"].as_bool()).await, "it is there");
    node.until(&rings("bomb"), has_rung).await;
    assert_eq!(node.deaths, 3, "it stays up");
}

#[tokio::test]
async fn a_message_whose_turn_hangs_is_listed_and_dropped_and_the_next_one_runs() {
    let folder = tempfile::tempdir().expect("there is room");
    let node = node(folder.path()).await;
    let door = node.http_address().expect("it has a door");
    let first = ChargeRef::of(&node, "first");
    for method in ["hang", "add"] {
        first.pass("slow", method).await.expect("it is committed");
    }
    let mut listed = Vec::new();
    for _ in 0..3000 {
        let shown = get(&door, "/-/reliable/waiting/charge/slow").await.json();
        listed = shown["waiting"].as_array().expect("a list").clone();
        if listed.len() == 2 && listed.iter().any(|message| message["state"] == "running") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let hangs = listed.iter().find(|message| message["method"] == "hang").expect("it waits");
    assert_eq!((&hangs["state"], &hangs["from"]), (&json!("running"), &json!("charge/first")), "{listed:?}");
    let place = hangs["place"].as_str().expect("it has a place");
    let path = format!("/-/reliable/{}/drop/{place}", hangs["partition"]);
    let dropped = raw(&door, &post(&path, "", "")).await;
    assert_eq!(dropped.status, 200, "{dropped:?}");
    assert_eq!(ChargeRef::of(&node, "slow").add().await, Ok(2), "the one behind it has run");
    let again = raw(&door, &post(&path, "", "")).await;
    assert!(again.status != 200 && again.body.contains("no message waits"), "{again:?}");
    node.stop().await;
}

#[tokio::test]
async fn without_a_node_a_waiting_message_is_listed_and_dropped_in_the_journal() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut first = Supervised::new(folder.path());
    let pass = call("/charge/first/pass", &json!({ "to": "slow", "method": "hang" }), "once");
    first.until(&pass, Value::as_u64).await;
    let look = "GET /-/reliable/waiting/charge/slow HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let is_running = |message: &Value| (message["state"] == "running").then_some(());
    first.until(look, |answer| answer["waiting"].as_array()?.first().and_then(is_running)).await;
    drop(first);
    let url = format!("sqlite:{}", folder.path().join("journal.db").display());
    let journal: Arc<dyn Journal> =
        greenroom_stores::open(&url).await.expect("it is there").journal.expect("it is one");
    let offline =
        OfflineJournal::open(journal, "greenroom", Duration::from_secs(5)).await.expect("it is the cluster's");
    let waiting = offline.messages().await.expect("it can be read");
    let [StoredMessage { partition, place, to, method, .. }] = &waiting[..] else { panic!("{waiting:?}") };
    assert_eq!((&*to.kind, &*to.key, &**method), ("charge", "slow", "hang"));
    let dropped = offline.discard(*partition, &place.name()).await.expect("it is dropped");
    assert_eq!(dropped, waiting[0]);
    assert_eq!(offline.messages().await.expect("it can be read"), []);
    drop(offline);
    let node = node(folder.path()).await;
    assert_eq!(ChargeRef::of(&node, "slow").add().await, Ok(1), "nothing hangs any more");
    node.stop().await;
}

/// Folder of the node that this process is to be.
const FOLDER: &str = "GREENROOM_TEST_CHARGED";
