//! Clients that ask for much and take nothing: what they hold is bounded, and nobody waits for them.

use std::time::Duration;

use greenroom::{Delivery, Slow, Topic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::client::{Events, call, get, post};
use crate::kinds::{node, open};

/// A connection that takes little beyond what it reads.
async fn narrow(door: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(door.parse().unwrap()).await.expect("the door listens")
}

/// A client that watches a topic and reads nothing.
async fn stalled(door: &str, path: &str) -> TcpStream {
    let mut stream = narrow(door).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn status(door: &str) -> serde_json::Value {
    get(door, "/-/status").await.json()
}

/// Waits until the node's status is so.
async fn until(door: &str, what: &str, is_so: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    let waiting = async {
        loop {
            let status = status(door).await;
            if is_so(&status) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    waited.unwrap_or_else(|_| panic!("{what}; but it never was"))
}

async fn subscribed(topic: &Topic<String>, count: u64) {
    while topic.subscribers().await.unwrap() < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_watchers_hold_a_bounded_memory_all_together_and_who_reads_gets_everything() {
    const MAX: u64 = 2 << 20;
    const STALLED: u64 = 32;
    let (node, door) = open(node().configure(|config| config.backlog_len_max = MAX as usize)).await;
    let topic = Topic::<String>::of(&node, "news");
    let mut slow = Vec::new();
    for at in 0..STALLED {
        slow.push(stalled(&door, if at % 2 == 0 { "/topics/news" } else { "/topics/news?slow=disconnect" }).await);
    }
    let mut reading = Events::open(&door, "GET", "/topics/news", "", "").await;
    subscribed(&topic, STALLED + 1).await;
    let text = "x".repeat(32 << 10);
    let mut most = 0;
    for number in 0..200 {
        topic.publish(&format!("{number} {text}")).await.unwrap();
        let event = reading.next().await.expect("the stream goes on");
        assert!(event.data.starts_with(&format!("\"{number} ")), "{} is missing", number);
        most = most.max(status(&door).await["backlog_bytes"].as_u64().unwrap());
    }
    // Nobody holds more than a window of each stream and of the topic, whatever has come since.
    assert!(most < STALLED * (512 << 10) + (4 << 20), "{most}");
    let settled = until(&door, "the backlog is within its bound", |status| {
        status["backlog_bytes"].as_u64().unwrap() <= MAX && status["http"]["watchers_let_go"] != 0
    });
    let settled = settled.await;
    topic.publish(&"last".to_owned()).await.unwrap();
    assert_eq!(reading.next().await.expect("who reads is not let go").data, "\"last\"", "{settled}");
    drop((slow, reading));
    until(&door, "who leaves holds nothing", |status| status["backlog_bytes"].as_u64().unwrap() < 1 << 20).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_a_kilobyte_a_second_of_a_page_is_told_of_a_gap_and_costs_nobody_anything() {
    const SLOW: u64 = 24;
    const SECONDS: u64 = 8;
    let (node, door) = open(node()).await;
    // Once a second a page of some 180 KB.
    let long = "k".repeat(greenroom::KEY_LEN_MAX - 8);
    for number in 0..500 {
        assert_eq!(call(&door, &format!("/notes/{number}-{long}/size"), r#"{"text":"x"}"#).await.status, 200);
    }
    let mut slow = Vec::new();
    for _ in 0..SLOW {
        slow.push(stalled(&door, "/-/live?views=actors%3Flimit%3D500").await);
    }
    let mut reading = Events::open(&door, "GET", "/-/live?views=overview", "", "").await;
    let (mut told, mut most) = (0, 0);
    for _ in 0..SECONDS {
        let mut some = [0; 1024];
        for stream in &mut slow {
            stream.read_exact(&mut some).await.expect("it is told something");
        }
        told += u64::from(reading.next().await.expect("it goes on").name.as_deref() == Some("overview"));
        assert_eq!(call(&door, "/notes/other/size", r#"{"text":"x"}"#).await.status, 200, "others are served");
        most = most.max(status(&door).await["backlog_bytes"].as_u64().unwrap());
    }
    assert!(told >= SECONDS - 1, "who reads is told each second: {told} of {SECONDS}");
    assert!(most < SLOW * (512 << 10), "of each no more than one page waits: {most}");
    // Whoever reads on hears what it has missed, and that before much that is old.
    let mut text = Vec::new();
    let mut stream = slow.pop().expect("there are some");
    let gap = async {
        let mut some = [0; 16 << 10];
        loop {
            let len = stream.read(&mut some).await.expect("it goes on");
            text.extend_from_slice(&some[..len]);
            if len == 0 || text.windows(10).any(|part| part == b"event: gap") {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gap).await.expect("the gap is told");
    let old = String::from_utf8_lossy(&text).matches("event: actors").count();
    assert!(old <= 2, "{old} pages were told that were old");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_larger_events_fewer_are_on_their_way_to_a_watcher_on_their_own_node() {
    let (node, _) = open(node()).await;
    let topic = Topic::<String>::of(&node, "news").slow(Slow::DropOldest, 1);
    let mut watching = topic.watch().await.unwrap();
    let text = "x".repeat(100 << 10);
    topic.publish(&text).await.unwrap();
    assert!(matches!(watching.next().await, Some(Ok(Delivery::Event(_)))));
    // From here on it takes nothing.
    for _ in 0..64 {
        topic.publish(&text).await.unwrap();
    }
    let mut waited = 0;
    while let Some(Ok(Delivery::Event(_))) = watching.next().await {
        waited += 1;
        assert!(waited <= 4, "more than 400 KB waited for one watcher");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_that_take_nothing_keep_no_places_from_others() {
    let (node, door) = open(node().configure(|config| config.http_connections_max = 8)).await;
    let topic = Topic::<String>::of(&node, "news");
    let slow = [stalled(&door, "/topics/news").await, stalled(&door, "/topics/news").await];
    let more = [stalled(&door, "/topics/news").await, stalled(&door, "/topics/news").await];
    subscribed(&topic, 4).await;
    let text = "x".repeat(64 << 10);
    let trying = async {
        loop {
            // More than the system's own buffers take, however large it makes them.
            for _ in 0..32 {
                topic.publish(&text).await.unwrap();
            }
            let watching = Events::open(&door, "GET", "/topics/news", "", "").await;
            if watching.head.starts_with("HTTP/1.0 200") || watching.head.starts_with("HTTP/1.1 200") {
                return;
            }
            assert!(watching.head.contains(" 503 "), "{}", watching.head);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    // Left alone, each could stay for a minute.
    tokio::time::timeout(Duration::from_secs(30), trying).await.expect("a place is made");
    drop((slow, more));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_client_that_reads_nothing_are_not_all_answered() {
    const ASKED: u64 = 2000;
    let (node, door) = open(node()).await;
    for key in ["a", "b"] {
        let added = call(&door, &format!("/notes/{key}/add"), r#"{"text":"0123456789","times":10000}"#).await;
        assert_eq!(added.status, 200);
    }
    let answers = |status: &serde_json::Value| status["http"]["answers"]["200"].as_u64().unwrap();
    let mut greedy = narrow(&door).await;
    let requests: Vec<u8> = (0..ASKED).flat_map(|_| post("/notes/a/all", "", "")).collect();
    let writing = tokio::spawn(async move {
        // The door may close before it has read all.
        let _ = greedy.write_all(&requests).await;
        greedy
    });
    let (mut before, mut polls) = (0, 0);
    let answered = loop {
        let now = answers(&status(&door).await);
        // Each look is an answer of its own.
        polls = if now - before <= 2 { polls + 1 } else { 0 };
        if polls == 20 {
            break now;
        }
        before = now;
        assert_eq!(call(&door, "/notes/b/size", r#"{"text":"x"}"#).await.status, 200, "others are served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    // What the system's own buffers hold.
    assert!(answered < 300, "{answered} answers of 130 KB were made, and none was read");
    writing.abort();
    node.stop().await;
}
