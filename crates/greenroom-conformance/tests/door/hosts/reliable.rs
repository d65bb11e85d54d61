//! Reliable kinds in hosts: their turns commit in the node's partitions, each once, whatever becomes of the hosts.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_describe::Description;
use greenroom_host::{Actor, CallError, Connection, Cx, Dial, Ended, Host, Kind, Turning, arguments, payload};
use greenroom_wire::codec;
use greenroom_world::real::RealWorld;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::with_socket;
use crate::client::{Answer, call, get, post, raw};
use crate::kinds::{node, open};

/// What someone has, and how many turns have changed it.
#[derive(Default)]
struct Purse {
    coins: i64,
    turns: u64,
    received: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct Pay {
    to: String,
    coins: i64,
    number: u64,
}

#[derive(Serialize)]
enum PayError {
    TooFew { coins: i64 },
}

impl Purse {
    async fn pay(&mut self, cx: &Cx, Pay { to, coins, number }: Pay) -> Result<Vec<u8>, Ended> {
        if coins > 1000 {
            return Err(Ended::Error(payload(&PayError::TooFew { coins: self.coins })?));
        }
        self.coins -= coins;
        self.turns += 1;
        let taken = payload(&Pay { to: String::new(), coins, number })?;
        cx.send("purse", &to, "take", &taken).await.map_err(|error| Ended::Failed(error.to_string()))?;
        // Hosts die here as well.
        tokio::time::sleep(Duration::from_millis(2)).await;
        if coins == 13 {
            return Err(Ended::Failed("thirteen is no number of coins".to_owned()));
        }
        cx.reply(&self.coins)
    }
}

impl Actor for Purse {
    fn turn<'a>(&'a mut self, cx: &'a Cx, method: &'a str, given: &'a [u8]) -> Turning<'a> {
        Box::pin(async move {
            match method {
                "pay" => self.pay(cx, arguments(given)?).await,
                "take" => {
                    let Pay { coins, number, .. } = arguments(given)?;
                    self.coins += coins;
                    self.turns += 1;
                    self.received.push(number);
                    cx.reply(&())
                }
                "later" | "much_later" => {
                    let after = Duration::from_millis(if method == "later" { 20 } else { 2000 });
                    cx.after("pay", after, "pay", given).await.map_err(|error| Ended::Failed(error.to_string()))?;
                    cx.reply(&())
                }
                "look" => cx.reply(&json!({"coins": self.coins, "turns": self.turns, "received": self.received})),
                "ask" => {
                    let Pay { to, .. } = arguments(given)?;
                    match cx.call("purse", &to, "take", given).await {
                        Ok(_) => cx.reply(&"done"),
                        Err(CallError::Failed(_, said)) => cx.reply(&String::from_utf8_lossy(&said)),
                        Err(error) => cx.reply(&error.to_string()),
                    }
                }
                "close" => {
                    cx.halt();
                    cx.reply(&())
                }
                other => Err(Ended::Invalid(format!("there is no method {other}"))),
            }
        })
    }

    fn fields(&self) -> Vec<(&'static str, Vec<u8>)> {
        let field = |name, value: Result<Vec<u8>, Ended>| (name, value.expect("it has an encoding"));
        vec![
            field("coins", payload(&self.coins)),
            field("turns", payload(&self.turns)),
            field("received", payload(&self.received)),
        ]
    }

    fn load_field(&mut self, name: &str, value: &[u8]) -> Result<(), String> {
        let wrong = |error: codec::DecodeError| error.to_string();
        match name {
            "coins" => self.coins = codec::decode(value).map_err(wrong)?,
            "turns" => self.turns = codec::decode(value).map_err(wrong)?,
            _ => self.received = codec::decode(value).map_err(wrong)?,
        }
        Ok(())
    }
}

/// A host of purses whose connections a test cuts.
struct Purses {
    may_dial: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<UnixStream>>>,
}

impl Purses {
    fn serve(path: &Path) -> Self {
        let purses = Self { may_dial: Arc::new(AtomicBool::new(true)), open: Arc::default() };
        let (may_dial, open, path) = (purses.may_dial.clone(), purses.open.clone(), path.to_owned());
        let dial: Dial = Arc::new(move || {
            let (may_dial, open, path) = (may_dial.clone(), open.clone(), path.clone());
            Box::pin(async move {
                if !may_dial.load(Ordering::Relaxed) {
                    return std::future::pending().await;
                }
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                open.lock().expect("no dial panics").push(stream.try_clone()?);
                Ok(Box::new(tokio::net::UnixStream::from_std(stream)?) as Box<dyn Connection>)
            })
        });
        tokio::spawn(async move {
            let world = RealWorld::start().expect("there are threads");
            let kind = Kind::new(purse(), |_| Purse::default());
            let _ = Host::new("purses").offer(kind).serve(world, &dial).await;
        });
        purses
    }

    /// All of its connections break, in the middle of whatever it does; it dials again.
    fn cut(&self) {
        for stream in std::mem::take(&mut *self.open.lock().expect("no dial panics")) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// It is heard of no more.
    fn end(self) {
        self.may_dial.store(false, Ordering::Relaxed);
        self.cut();
    }
}

fn purse() -> Description {
    let method = |name: &str, read: bool| json!({"name": name, "read": read});
    let methods: Vec<Value> =
        ["pay", "take", "later", "much_later", "ask", "close"].map(|name| method(name, false)).into();
    let methods: Vec<Value> = methods.into_iter().chain([method("look", true)]).collect();
    let document = json!({"greenroom": 1, "kind": "purse", "version": 1, "compatible": 1, "options": {"reliable": true}, "methods": methods});
    Description::of_document(document).expect("it is a description")
}

async fn opened(folder: &TempDir) -> (Node, String, std::path::PathBuf) {
    let (builder, path) = with_socket(node(), folder, "a");
    let journal = format!("sqlite:{}", folder.path().join("journal").display());
    let (node, door) = open(builder.configure(|config| config.reliable.journal = journal)).await;
    (node, door, path)
}

/// Calls until a host has the kind.
async fn called(door: &str, path: &str, body: &str) -> Answer {
    loop {
        let answer = call(door, path, body).await;
        if answer.status != 404 && answer.status != 503 {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn look(door: &str, key: &str) -> Value {
    let answer = called(door, &format!("/purse/{key}/look"), "{}").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Looks until so many turns have changed the purse.
async fn after_turns(door: &str, key: &str, turns: u64) -> Value {
    loop {
        let found = look(door, key).await;
        if found["turns"].as_u64() >= Some(turns) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A figure of each partition that has an owner.
async fn partitions(door: &str, figure: &str) -> Vec<u64> {
    let shown = get(door, "/-/reliable").await.json();
    let all = shown["partitions"].as_array().expect("it is a list").iter();
    all.map(|partition| partition[figure].as_u64().unwrap_or_default()).collect()
}

fn pay(to: &str, coins: i64, number: u64) -> String {
    json!({"to": to, "coins": coins, "number": number}).to_string()
}

#[tokio::test]
async fn a_turn_in_a_host_commits_its_state_and_its_messages_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let _host = Purses::serve(&path);
    assert_eq!(called(&door, "/purse/ada/pay", &pay("bob", 5, 1)).await.body, "-5");
    assert_eq!(after_turns(&door, "bob", 1).await, json!({"coins": 5, "turns": 1, "received": [1]}));
    // Its own error commits what it has done by then: nothing.
    call(&door, "/purse/ada/pay", &pay("bob", 5000, 2)).await.problem(422, "actor-error");
    // What has failed has changed nothing and sent nothing.
    call(&door, "/purse/ada/pay", &pay("bob", 13, 3)).await.problem(500, "not-committed");
    assert_eq!(call(&door, "/purse/ada/pay", &pay("bob", 2, 4)).await.body, "-7");
    assert_eq!(after_turns(&door, "bob", 2).await, json!({"coins": 7, "turns": 2, "received": [1, 4]}));
    // A timer is a part of the commit, and a call that would act before it is refused.
    called(&door, "/purse/ada/later", &pay("bob", 1, 5)).await;
    assert_eq!(after_turns(&door, "bob", 3).await["received"], json!([1, 4, 5]));
    let refused = call(&door, "/purse/ada/ask", &pay("bob", 1, 6)).await.body;
    assert!(refused.contains("send it one-way"), "{refused}");
    assert_eq!(look(&door, "bob").await["turns"], 3);
    // Who halts begins anew.
    call(&door, "/purse/bob/close", "{}").await;
    assert_eq!(look(&door, "bob").await, json!({"coins": 0, "turns": 0, "received": []}));
    node.stop().await;
}

#[tokio::test]
async fn what_is_kept_of_an_actor_in_a_host_outlasts_host_and_node() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let host = Purses::serve(&path);
    called(&door, "/purse/ada/pay", &pay("bob", 5, 1)).await;
    after_turns(&door, "bob", 1).await;
    host.end();
    node.stop().await;
    let (node, door, path) = opened(&folder).await;
    let _host = Purses::serve(&path);
    assert_eq!(look(&door, "ada").await, json!({"coins": -5, "turns": 1, "received": []}));
    assert_eq!(look(&door, "bob").await, json!({"coins": 5, "turns": 1, "received": [1]}));
    node.stop().await;
}

#[tokio::test]
async fn payments_are_made_once_whatever_becomes_of_the_hosts_in_their_midst() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let hosts = [Purses::serve(&path), Purses::serve(&path)];
    look(&door, "ada").await;
    let cutting = tokio::spawn(async move {
        for round in 0.. {
            tokio::time::sleep(Duration::from_millis(60)).await;
            hosts[round % 2].cut();
        }
    });
    let callers = (0..CALLERS).map(|caller| {
        let door = door.clone();
        tokio::spawn(async move {
            for number in (caller * PAYMENTS..).take(PAYMENTS as usize) {
                let key = format!("idempotency-key: payment-{number}\r\n");
                let path = format!("/purse/from{}/pay", caller % 3);
                // Whoever is not answered asks again, under the same key.
                loop {
                    let answer = raw(&door, &post(&path, &key, &pay("bob", 1, number))).await;
                    // A turn that loses its host runs again: nobody hears that it has failed.
                    assert_ne!(answer.status, 500, "{answer:?}");
                    if answer.status == 200 {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("it pays");
    }
    cutting.abort();
    let bob = after_turns(&door, "bob", CALLERS * PAYMENTS).await;
    let mut received: Vec<u64> = serde_json::from_value(bob["received"].clone()).expect("they are numbers");
    received.sort_unstable();
    assert_eq!(received, (0..CALLERS * PAYMENTS).collect::<Vec<_>>(), "each came once");
    let mut paid = 0;
    for from in ["from0", "from1", "from2"] {
        paid += look(&door, from).await["coins"].as_i64().expect("a number");
    }
    assert_eq!((paid, bob["coins"].as_i64()), (-((CALLERS * PAYMENTS) as i64), Some((CALLERS * PAYMENTS) as i64)));
    node.stop().await;
}

#[tokio::test]
async fn l16_messages_wait_for_a_host_and_none_is_parked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let host = Purses::serve(&path);
    called(&door, "/purse/ada/pay", &pay("bob", 1, 1)).await;
    after_turns(&door, "bob", 1).await;
    // The message to bob is committed with the timer, and finds no host for longer than other kinds would wait.
    called(&door, "/purse/ada/much_later", &pay("bob", 1, 2)).await;
    host.end();
    // All are taken, those too that nobody has called yet.
    let before = loop {
        let epochs = partitions(&door, "epoch").await;
        if !epochs.contains(&0) {
            break epochs;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    tokio::time::sleep(Duration::from_secs(5)).await;
    let _host = Purses::serve(&path);
    assert_eq!(after_turns(&door, "bob", 2).await, json!({"coins": 2, "turns": 2, "received": [1, 2]}));
    assert_eq!(partitions(&door, "epoch").await, before, "no partition was recovered");
    node.stop().await;
}

#[tokio::test]
async fn l16_a_node_that_starts_anew_waits_for_the_host_of_what_it_recovers() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let host = Purses::serve(&path);
    called(&door, "/purse/ada/much_later", &pay("bob", 1, 1)).await;
    host.end();
    node.stop().await;
    // Its timer is due, and its kind is nobody's yet.
    let (node, door, path) = opened(&folder).await;
    while partitions(&door, "waiting").await.iter().sum::<u64>() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(partitions(&door, "parked").await.iter().sum::<u64>(), 0, "no try was counted");
    let _host = Purses::serve(&path);
    assert_eq!(after_turns(&door, "bob", 1).await["received"], json!([1]));
    node.stop().await;
}

#[tokio::test]
async fn a_reliable_kind_is_refused_where_there_is_no_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let (builder, path) = with_socket(node(), &folder, "a");
    let (node, _) = open(builder).await;
    let world = RealWorld::start().expect("there are threads");
    let host = Host::new("purses").offer(Kind::new(purse(), |_| Purse::default()));
    let refused = host.serve(world, &greenroom_host::unix(path)).await.expect_err("it is refused");
    assert!(refused.to_string().contains("no journal"), "{refused}");
    node.stop().await;
}

const CALLERS: u64 = 6;
const PAYMENTS: u64 = 20;
