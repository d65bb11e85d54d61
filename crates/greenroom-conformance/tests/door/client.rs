//! An HTTP client that can also misbehave.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Checks that it is a problem document and gives the document.
    pub(crate) fn problem(&self, status: u16, name: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let document = self.json();
        assert_eq!(document["status"], status);
        assert_eq!(document["type"], format!("/-/problems/{name}"), "{document}");
        assert!(document["title"].is_string() && document["detail"].is_string());
        let runs = ["actor-error", "panicked", "unknown-outcome", "timed-out", "internal"].contains(&name);
        assert_eq!(document["may_have_run"], runs, "{document}");
        document
    }
}

/// Sends `request` as it is and reads until the door closes or the answer is complete.
pub(crate) async fn raw(address: &str, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.expect("the door listens");
    // The door may answer and close before all is written.
    let _ = stream.write_all(request).await;
    read(&mut stream).await
}

/// Reads one answer.
pub(crate) async fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let reading = async {
        let mut chunk = [0; 4096];
        loop {
            if let Some(answer) = parse(&bytes) {
                return answer;
            }
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => panic!("the door closed after {:?}", String::from_utf8_lossy(&bytes)),
                Ok(len) => bytes.extend_from_slice(&chunk[..len]),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the door answers")
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let answer = Answer { status, head: head.to_owned(), body: body.to_owned() };
    let len: usize = if status == NO_CONTENT { 0 } else { answer.header("content-length")?.parse().ok()? };
    (body.len() >= len).then_some(answer)
}

/// Such an answer has no body, and so no length.
const NO_CONTENT: u16 = 204;

/// A request with a body.
pub(crate) fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

/// Calls an actor.
pub(crate) async fn call(address: &str, path: &str, body: &str) -> Answer {
    raw(address, &post(path, "", body)).await
}

/// Gets a page.
pub(crate) async fn get(address: &str, path: &str) -> Answer {
    raw(address, format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await
}

/// An answer of server-sent events.
pub(crate) struct Events {
    stream: TcpStream,
    pub(crate) head: String,
    rest: String,
}

/// What one event says.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl Events {
    /// Asks for events: by HTTP/1.0, whose answers come as they are.
    pub(crate) async fn open(address: &str, method: &str, path: &str, headers: &str, body: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.expect("the door listens");
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\naccept: text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.expect("the door reads");
        let mut events = Self { stream, head: String::new(), rest: String::new() };
        events.head = events.until("\r\n\r\n").await.expect("an answer has a head");
        events
    }

    /// The next event; `None` at the end of the answer. Comments are passed over.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            let text = self.until("\n\n").await?;
            let mut event = Event::default();
            for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
                match name {
                    "id" => event.id = Some(value.to_owned()),
                    "event" => event.name = Some(value.to_owned()),
                    "data" => event.data = value.to_owned(),
                    other => panic!("{other} is no field of an event"),
                }
            }
            if !event.data.is_empty() {
                return Some(event);
            }
        }
    }

    async fn until(&mut self, end: &str) -> Option<String> {
        let reading = async {
            let mut chunk = [0; 4096];
            loop {
                if let Some((text, rest)) = self.rest.split_once(end) {
                    let (text, rest) = (text.to_owned(), rest.to_owned());
                    self.rest = rest;
                    return Some(text);
                }
                match self.stream.read(&mut chunk).await {
                    Ok(0) | Err(_) => return None,
                    Ok(len) => self.rest.push_str(&String::from_utf8_lossy(&chunk[..len])),
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the door goes on")
    }
}
