//! Topics, streams and WebSockets behind the door's credentials and rules.

use futures_util::{SinkExt, StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::client::post;
use super::door::{ADA, BOB, rule};
use super::*;

#[derive(Default, Actor)]
struct Clock;

#[actor(kind = "streaming_clock")]
impl Clock {
    pub fn ticks(&self) -> impl Stream<Item = u64> {
        stream::iter(0..1).chain(stream::pending())
    }
}

type Socket = WebSocketStream<TcpStream>;

/// An answer of events.
pub(super) struct Watching {
    stream: TcpStream,
    said: String,
}

impl Watching {
    pub(super) async fn open(door: &str, method: &str, path: &str, header: &str) -> Self {
        let mut stream = TcpStream::connect(door).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\naccept: text/event-stream\r\ncontent-length: 0\r\n{header}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        Self { stream, said: String::new() }
    }

    /// The text up to this one, which must come.
    pub(super) async fn until(&mut self, end: &str) -> String {
        let reading = async {
            let mut chunk = [0; 4096];
            while !self.said.contains(end) {
                match self.stream.read(&mut chunk).await.unwrap() {
                    0 => panic!("the answer ended with {:?}", self.said),
                    len => self.said.push_str(std::str::from_utf8(&chunk[..len]).unwrap()),
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the door goes on");
        let (text, rest) = self.said.split_once(end).unwrap();
        let (text, rest) = (text.to_owned(), rest.to_owned());
        self.said = rest;
        text
    }

    pub(super) async fn status(&mut self) -> u16 {
        let head = self.until("\r\n\r\n").await;
        head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// The problem that the stream ends with, and nothing after it.
    pub(super) async fn problem(&mut self) -> Value {
        self.until("event: error\ndata: ").await;
        let problem = self.until("\n\n").await;
        assert_eq!((self.stream.read(&mut [0; 64]).await.unwrap(), self.said.as_str()), (0, ""));
        serde_json::from_str(&problem).unwrap()
    }
}

/// A WebSocket, or the status of the refusal.
async fn socket(door: &str, path: &str, header: &str) -> Result<Socket, u16> {
    let mut request = format!("ws://{door}{path}").into_client_request().unwrap();
    if let Some(token) = header.split_once(": ").map(|(_, token)| token.parse().unwrap()) {
        request.headers_mut().insert("authorization", token);
    }
    let stream = TcpStream::connect(door).await.unwrap();
    match tokio_tungstenite::client_async(request, stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

async fn said(socket: &mut Socket) -> Message {
    let saying = async {
        loop {
            match socket.next().await.expect("the socket is open").unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), saying).await.expect("the door speaks")
}

async fn said_json(socket: &mut Socket) -> Value {
    serde_json::from_str(said(socket).await.to_text().unwrap()).unwrap()
}

impl Site {
    /// A node at whose door users publish and watch prices, and guests only watch them.
    async fn with_prices(&self) -> (Node, String) {
        let rules = vec![
            rule(&["user"], "topics", &["publish", "subscribe"], "prices/*"),
            rule(&["guest"], "topics", &["subscribe"], "prices/*"),
            rule(&["user"], "streaming_clock", &["ticks"], "*"),
        ];
        self.guarded_by("a", rules, |builder| builder.register::<Clock>()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_for_those_whom_rules_let_publish_and_subscribe() {
    let site = Site::new("music");
    let (node, door) = site.with_prices().await;
    const NOBODY: &str = "x: y";
    for (header, topic, publishes, watches) in [
        (NOBODY, "prices/eu", 401, 401),
        (BOB, "prices/eu", 403, 200),
        (ADA, "prices/eu", 200, 200),
        (BOB, "wages/eu", 403, 403),
        (ADA, "wages/eu", 403, 403),
        ("authorization: Bearer none-of-them", "prices/eu", 401, 401),
    ] {
        let path = format!("/topics/{topic}");
        assert_eq!(post(&door, &path, &[header], "1").await.status, publishes, "{header} publishes to {topic}");
        let mut watching = Watching::open(&door, "GET", &path, header).await;
        assert_eq!(watching.status().await, watches, "{header} watches {topic}");
        let header = if header == NOBODY { "" } else { header };
        let opened = socket(&door, &format!("{path}/ws"), header).await;
        assert_eq!(opened.err().unwrap_or(200), watches, "{header} opens a socket to {topic}");
    }
    let refused = post(&door, "/topics/prices/eu", &[BOB], "1").await;
    assert!(refused.body.contains(r#"kind = \"topics\", methods = [\"publish\"]"#), "{refused:?}");
    // Rules cannot be gone around by another way of writing the same.
    for path in ["/%74opics/prices/publish", "/topics/prices%2Feu/../../wages"] {
        let answer = post(&door, path, &[BOB], "1").await;
        assert!(matches!(answer.status, 403 | 404), "{path}: {answer:?}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_publishes_only_what_its_holder_may() {
    let site = Site::new("music");
    let (node, door) = site.with_prices().await;
    let mut guest = socket(&door, "/topics/prices/eu/ws", BOB).await.unwrap();
    guest.send(Message::text("1")).await.unwrap();
    let refused = said_json(&mut guest).await;
    assert_eq!(refused["error"]["type"], "/-/problems/forbidden", "{refused}");
    let mut user = socket(&door, "/topics/prices/eu/ws", ADA).await.unwrap();
    user.send(Message::text("2")).await.unwrap();
    assert_eq!(said_json(&mut guest).await["event"], json!(2), "the refused event came to nobody");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_token_is_withdrawn() {
    let site = Site::new("music");
    let (node, door) = site.with_prices().await;
    let mut topic = Watching::open(&door, "GET", "/topics/prices/eu", ADA).await;
    let mut method = Watching::open(&door, "POST", "/streaming_clock/a/ticks", ADA).await;
    let mut opened = socket(&door, "/topics/prices/eu/ws", ADA).await.unwrap();
    let mut kept = Watching::open(&door, "GET", "/topics/prices/eu", BOB).await;
    assert_eq!((topic.status().await, method.status().await, kept.status().await), (200, 200, 200));
    method.until("data: 0\n\n").await;
    let guests = door::tokens(&[("bob", "guest", "bob-0123456789abcdef")]);
    write(&site.folder.path().join("tokens.toml"), &guests);
    for problem in [topic.problem().await, method.problem().await, said_json(&mut opened).await["error"].clone()] {
        assert_eq!((&problem["status"], &problem["type"]), (&json!(401), &json!("/-/problems/unauthenticated")));
    }
    match said(&mut opened).await {
        Message::Close(Some(frame)) => assert_eq!((frame.code, &*frame.reason), (CloseCode::Policy, "unauthenticated")),
        other => panic!("{other:?}"),
    }
    greenroom::Topic::<u64>::of(&node, "prices/eu").publish(&7).await.unwrap();
    kept.until("data: 7\n\n").await;
    node.stop().await;
}

/// What the door closes a socket with on which `bytes` came.
async fn closed_over(door: &str, bytes: &[u8]) -> (CloseCode, String) {
    let mut socket = socket(door, "/topics/prices/ws", "").await.unwrap();
    socket.get_mut().write_all(bytes).await.unwrap();
    loop {
        match said(&mut socket).await {
            Message::Close(Some(frame)) => return (frame.code, frame.reason.to_string()),
            Message::Close(None) => panic!("it says no reason"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_closes_says_why() {
    let node = Node::builder().http("127.0.0.1:0").start().await.unwrap();
    let door = node.http_address().unwrap();
    let masked = |first: u8, payload: &[u8]| [&[first, 0x80 | payload.len() as u8, 0, 0, 0, 0][..], payload].concat();
    for (bytes, code) in [
        (masked(0x81, &[0xff]), CloseCode::Invalid),
        // Not masked, of a kind that there is not, with a flag that nobody asked for, and a control in parts.
        (vec![0x81, 1, b'1'], CloseCode::Protocol),
        (masked(0x83, b"1"), CloseCode::Protocol),
        (masked(0xc1, b"1"), CloseCode::Protocol),
        (masked(0x09, b"1"), CloseCode::Protocol),
        // A part of nothing.
        (masked(0x80, b"1"), CloseCode::Protocol),
        // A length over the limit.
        (vec![0x81, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], CloseCode::Size),
        // What the client says when it leaves is what it hears.
        (masked(0x88, &[0x03, 0xe8, b'o', b'k']), CloseCode::Normal),
        (masked(0x88, &[0x0f, 0xa1]), CloseCode::Library(4001)),
    ] {
        assert_eq!(closed_over(&door, &bytes).await.0, code, "{bytes:x?}");
    }
    let mut open = socket(&door, "/topics/prices/ws", "").await.unwrap();
    // It is being served.
    open.send(Message::text("1")).await.unwrap();
    said(&mut open).await;
    let stopping = tokio::spawn(async move { node.stop().await });
    loop {
        match said(&mut open).await {
            Message::Close(Some(frame)) => {
                break assert_eq!((frame.code, &*frame.reason), (CloseCode::Away, "stopping"));
            }
            Message::Text(_) => {}
            other => panic!("{other:?}"),
        }
    }
    drop(open);
    stopping.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_open_no_sockets() {
    let site = Site::new("music");
    let node = site.builder("a", None).http("127.0.0.1:0").start().await.unwrap();
    let door = node.http_address().unwrap();
    let with = async |name: &'static str, value: &str| {
        let mut request = format!("ws://{door}/topics/prices/ws").into_client_request().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        let stream = TcpStream::connect(&door).await.unwrap();
        match tokio_tungstenite::client_async(request, stream).await {
            Ok(_) => 101,
            Err(Error::Http(answer)) => answer.status().as_u16(),
            Err(error) => panic!("{error}"),
        }
    };
    for (name, value, status) in [
        ("origin", "https://elsewhere.example", 403),
        ("origin", "null", 403),
        ("origin", &format!("http://{door}.elsewhere.example"), 403),
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("origin", &format!("http://{door}"), 101),
        ("sec-fetch-site", "same-origin", 101),
    ] {
        assert_eq!(with(name, value).await, status, "{name}: {value}");
    }
    node.stop().await;
}
