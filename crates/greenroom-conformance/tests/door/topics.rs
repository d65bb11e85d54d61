//! Topics at the door: published by a POST, watched as events and over WebSockets.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use greenroom::{Node, Topic};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::client::{Event, Events, call, get, post, raw};
use crate::kinds::{NotesRef, node, open};

type Socket = WebSocketStream<TcpStream>;

async fn socket(door: &str, path: &str) -> Socket {
    let stream = TcpStream::connect(door).await.unwrap();
    tokio_tungstenite::client_async(format!("ws://{door}{path}"), stream).await.unwrap().0
}

async fn said(socket: &mut Socket) -> Value {
    loop {
        match socket.next().await.expect("the socket is open").unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) | Message::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Waits until so many watch.
async fn watched(node: &Node, name: &str, count: u64) {
    while Topic::<Value>::of(node, name).subscribers().await.unwrap() != count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_is_published_comes_to_all_who_watch() {
    let (node, door) = open(Node::builder().http("127.0.0.1:0")).await;
    let mut events = Events::open(&door, "GET", "/topics/prices/eu", "", "").await;
    assert!(events.head.contains("text/event-stream"), "{}", events.head);
    let mut socket = socket(&door, "/topics/prices/eu/ws").await;
    watched(&node, "prices/eu", 2).await;
    let published = call(&door, "/topics/prices%2Feu", r#"{ "price": 1.5 }"#).await;
    assert_eq!((published.status, &published.json()["subscribers"]), (200, &json!(2)));
    let id = published.json()["id"].as_str().unwrap().to_owned();
    let expected = Event { id: Some(id.clone()), name: None, data: r#"{"price":1.5}"#.to_owned() };
    assert_eq!(events.next().await, Some(expected));
    assert_eq!(said(&mut socket).await, json!({ "id": id, "event": { "price": 1.5 } }));
    // A socket publishes as well.
    socket.send(Message::text("[7]")).await.unwrap();
    let (one, two) = (said(&mut socket).await, said(&mut socket).await);
    let event = if one["event"].is_null() { &two } else { &one };
    assert_eq!(event["event"], json!([7]));
    assert!(one["published"]["id"].is_string() || two["published"]["id"].is_string());
    assert_eq!(events.next().await.unwrap().data, "[7]");
    socket.send(Message::text("{")).await.unwrap();
    assert_eq!(said(&mut socket).await["error"]["type"], "/-/problems/invalid-arguments");
    drop(events);
    socket.close(None).await.unwrap();
    watched(&node, "prices/eu", 0).await;
    node.stop().await;
}

#[tokio::test]
async fn an_event_that_no_actor_of_a_subscribing_kind_can_get_is_refused_at_once() {
    let builder = node().subscribe("notes", |node, key, text: String| NotesRef::of(node, key).add(text, 1));
    let (node, door) = open(builder).await;
    let problem = call(&door, "/topics/notes%2F", "\"hi\"").await.problem(400, "invalid-key");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("it is empty")), "{problem}");
    let error = Topic::<String>::of(&node, "notes/").publish(&"hi".to_owned()).await.unwrap_err();
    assert!(error.to_string().contains("it is empty"), "{error}");
    assert_eq!(call(&door, "/topics/notes%2Fa", "\"hi\"").await.status, 200);
    assert_eq!(call(&door, "/topics/others%2F", "\"hi\"").await.status, 200, "nobody has to have its key");
    node.stop().await;
}

#[tokio::test]
async fn who_comes_back_says_what_it_had() {
    let (node, door) = open(Node::builder().http("127.0.0.1:0")).await;
    let mut ids = Vec::new();
    for event in 0..5 {
        let published = call(&door, "/topics/news", &event.to_string()).await.json();
        ids.push(published["id"].as_str().unwrap().to_owned());
    }
    let last = format!("last-event-id: {}\r\n", ids[2]);
    let mut events = Events::open(&door, "GET", "/topics/news?queue=10&slow=disconnect", &last, "").await;
    for event in 3..5 {
        assert_eq!(events.next().await.unwrap().data, event.to_string());
    }
    let mut events = Events::open(&door, "GET", "/topics/news", "last-event-id: 0-7\r\n", "").await;
    let missed = events.next().await.unwrap();
    assert_eq!((missed.name.as_deref(), missed.data.as_str()), (Some("missed"), r#"{"count":null}"#));
    assert_eq!(events.next().await.unwrap().data, "0");
    node.stop().await;
}

#[tokio::test]
async fn who_comes_back_after_a_restart_with_a_table_in_memory_is_told_that_it_has_missed_something() {
    let published = async |door: &str, event: u64| {
        let told = call(door, "/topics/news", &event.to_string()).await.json();
        told["id"].as_str().expect("an event has an id").to_owned()
    };
    let (node, door) = open(Node::builder().http("127.0.0.1:0")).await;
    let mut last = String::new();
    for event in 0..5 {
        last = published(&door, event).await;
    }
    node.stop().await;
    let (node, door) = open(Node::builder().http("127.0.0.1:0")).await;
    for event in 100..103 {
        assert_ne!(published(&door, event).await, last);
    }
    let mut events = Events::open(&door, "GET", "/topics/news", &format!("last-event-id: {last}\r\n"), "").await;
    let first = tokio::time::timeout(Duration::from_secs(30), events.next()).await.expect("it is told at once");
    assert_eq!(first.unwrap().name.as_deref(), Some("missed"));
    for event in 100..103 {
        assert_eq!(events.next().await.unwrap().data, event.to_string());
    }
    let fresh = Events::open(&door, "GET", "/topics/news", "last-event-id:\r\n", "").await;
    assert!(fresh.head.contains(" 200 "), "an empty id is none: {}", fresh.head);
    node.stop().await;
}

#[tokio::test]
async fn a_door_that_closes_says_so_to_all_who_watch() {
    let table = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", table.path().join("table.db").display());
    let (front, door) = open(Node::builder().http("127.0.0.1:0").table(&url).name("front")).await;
    let other = Node::builder().table(&url).name("other").start().await.unwrap();
    while front.members().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (mut watching, mut sockets) = (Vec::new(), Vec::new());
    for number in 0..8 {
        let path = format!("/topics/{number}");
        watching.push(Events::open(&door, "GET", &path, "", "").await);
        sockets.push(socket(&door, &format!("{path}/ws")).await);
        watched(&front, &number.to_string(), 2).await;
    }
    // The topics that it has leave it first, and are followed.
    let stopping = tokio::spawn(async move { front.stop().await });
    for events in &mut watching {
        let mut last = events.next().await.expect("the reason comes before the end");
        while last.name.as_deref() == Some("missed") {
            last = events.next().await.expect("the reason comes before the end");
        }
        assert_eq!((last.name.as_deref(), events.next().await), (Some("error"), None));
        let problem: Value = serde_json::from_str(&last.data).unwrap();
        assert_eq!(problem["type"], "/-/problems/stopping", "{problem}");
    }
    for socket in &mut sockets {
        let mut problem = said(socket).await;
        while problem["error"].is_null() {
            problem = said(socket).await;
        }
        assert_eq!(problem["error"]["type"], "/-/problems/stopping", "{problem}");
        let Some(Ok(Message::Close(Some(frame)))) = socket.next().await else { panic!("closed without a reason") };
        assert_eq!((frame.code, &*frame.reason), (CloseCode::Away, "stopping"));
    }
    stopping.await.unwrap();
    other.stop().await;
}

#[tokio::test]
async fn who_watches_at_a_door_follows_topics_that_move() {
    let table = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", table.path().join("table.db").display());
    let (front, door) = open(Node::builder().http("127.0.0.1:0").table(&url).name("front")).await;
    let other = Node::builder().table(&url).name("other").start().await.unwrap();
    while front.members().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut watching = Vec::new();
    for number in 0..8 {
        let path = format!("/topics/{number}");
        let events = Events::open(&door, "GET", &path, "", "").await;
        watching.push((events, socket(&door, &format!("{path}/ws")).await, path));
        watched(&front, &number.to_string(), 2).await;
    }
    assert!(other.activations() > 0, "all topics are on the node that stays");
    other.stop().await;
    for (events, socket, path) in &mut watching {
        assert_eq!(call(&door, path, "7").await.status, 200);
        let mut event = events.next().await.unwrap();
        if event.name.is_some() {
            assert_eq!((event.name.as_deref(), event.data.as_str()), (Some("missed"), r#"{"count":null}"#));
            event = events.next().await.unwrap();
        }
        assert_eq!(event.data, "7");
        let mut text = said(socket).await;
        if text["event"].is_null() {
            assert_eq!(text, json!({ "missed": null }));
            text = said(socket).await;
        }
        assert_eq!(text["event"], json!(7));
    }
    front.stop().await;
}

#[tokio::test]
async fn a_text_that_is_too_long_closes_the_socket() {
    let (node, door) = open(Node::builder().http("127.0.0.1:0")).await;
    let mut socket = socket(&door, "/topics/news/ws").await;
    socket.send(Message::text("7".repeat((64 << 10) + 1))).await.unwrap();
    assert_eq!(said(&mut socket).await["error"]["type"], "/-/problems/too-large");
    match socket.next().await {
        Some(Ok(Message::Close(Some(frame)))) => assert_eq!(frame.code, CloseCode::Size),
        other => panic!("{other:?}"),
    }
    watched(&node, "news", 0).await;
    node.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_named() {
    let (node, door) = open(Node::builder().http("127.0.0.1:0")).await;
    call(&door, "/topics/news", "{").await.problem(400, "invalid-arguments");
    call(&door, "/topics/", "1").await.problem(400, "invalid-key");
    get(&door, "/topics/news").await.problem(406, "only-events");
    let get = |path: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n{more}\r\n").into_bytes()
    };
    for path in ["/topics/news?slow=backpressure", "/topics/news?queue=0", "/topics/news?queue=many"] {
        raw(&door, &get(path, "")).await.problem(400, "bad-request");
    }
    raw(&door, &get("/topics/news", "last-event-id: 7\r\n")).await.problem(400, "bad-request");
    raw(&door, &get("/topics/news/ws", "upgrade: websocket\r\nconnection: upgrade\r\n"))
        .await
        .problem(400, "bad-request");
    let elsewhere = "origin: http://elsewhere\r\nupgrade: websocket\r\nconnection: upgrade\r\n";
    raw(&door, &get("/topics/news/ws", elsewhere)).await.problem(403, "other-site");
    raw(&door, &post("/topics/news", "origin: http://elsewhere\r\n", "1")).await.problem(403, "other-site");
    raw(&door, b"DELETE /topics/news HTTP/1.1\r\nhost: localhost\r\n\r\n").await.problem(405, "wrong-method");
    node.stop().await;
}

#[tokio::test]
async fn topics_are_listed_with_their_subscribers_and_what_waits() {
    let (node, door) = open(Node::builder().http("127.0.0.1:0")).await;
    let mut events = Events::open(&door, "GET", "/topics/listed/one", "", "").await;
    watched(&node, "listed/one", 1).await;
    for event in ["1", "2", "3"] {
        assert_eq!(call(&door, "/topics/listed%2Fone", event).await.status, 200);
    }
    assert_eq!(call(&door, "/topics/other", "0").await.status, 200);
    let page = get(&door, "/-/topics?prefix=listed%2F").await.json();
    let one = &page["topics"][0];
    assert_eq!((&one["topic"], &one["node"]), (&json!("listed/one"), &json!(node.name())), "{page}");
    assert_eq!((&one["subscribers"], &one["published"], &one["missed"]), (&json!(1), &json!(3), &json!(0)), "{page}");
    assert_eq!(page["topics"].as_array().map(Vec::len), Some(1), "{page}");
    let first = get(&door, "/-/topics?limit=1").await.json();
    assert_eq!(first["next"], "listed/one", "{first}");
    let last = get(&door, "/-/topics?limit=1&after=listed%2Fone").await.json();
    assert_eq!((&last["topics"][0]["topic"], &last["next"]), (&json!("other"), &Value::Null), "{last}");
    get(&door, "/-/topics?limit=0").await.problem(400, "bad-request");
    assert_eq!(events.next().await.expect("it goes on").data, "1");
    node.stop().await;
}
