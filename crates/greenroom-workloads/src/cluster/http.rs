//! A client of the HTTP door: a connection a request, which is enough for a driver.

use std::io;
use std::net::SocketAddr;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Target;

/// A node's HTTP door.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door(pub(super) SocketAddr);

impl Door {
    /// Calls a method with an object of its arguments.
    pub(crate) async fn call<T: DeserializeOwned>(&self, target: Target<'_>, arguments: &Value) -> io::Result<T> {
        let path = format!("/{}/{}/{}", target.kind, target.key, target.method);
        let body = self.ask("POST", &path, &arguments.to_string()).await?;
        // A method that returns nothing may be answered without a body.
        let body = if body.is_empty() { &b"null"[..] } else { &body };
        Ok(serde_json::from_slice(body)?)
    }

    /// Whether a `GET` of `path` is answered with success.
    pub(super) async fn answers(&self, path: &str) -> bool {
        self.ask("GET", path, "").await.is_ok()
    }

    /// How many nodes are in the cluster, as far as this one knows.
    pub(crate) async fn members(&self) -> Option<usize> {
        let about = self.json("/").await?;
        Some(about.get("members")?.as_array()?.len())
    }

    /// What `path` shows, if it answers with JSON.
    pub(crate) async fn json(&self, path: &str) -> Option<Value> {
        serde_json::from_slice(&self.ask("GET", path, "").await.ok()?).ok()
    }

    /// What `path` shows, as text.
    pub(super) async fn text(&self, path: &str) -> Option<String> {
        String::from_utf8(self.ask("GET", path, "").await.ok()?).ok()
    }

    async fn ask(&self, verb: &str, path: &str, body: &str) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(self.0).await?;
        let head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            self.0,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        read(&answer)
    }
}

/// The sum of a metric's samples on a page of metrics.
pub(super) fn metric(page: &str, name: &str) -> f64 {
    let value = |line: &str| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' ']))?;
        rest.rsplit(' ').next()?.parse::<f64>().ok()
    };
    page.lines().filter_map(value).sum()
}

/// The body of a whole answer, or what it says went wrong.
fn read(answer: &[u8]) -> io::Result<Vec<u8>> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let head_len = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(|| bad("no whole answer"))?;
    let head = std::str::from_utf8(&answer[..head_len]).map_err(|_| bad("the answer's head is no text"))?;
    let body = &answer[head_len + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).ok_or_else(|| bad("no status"))?;
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") && value.trim().parse() != Ok(body.len()) {
            return Err(bad("the answer was cut short"));
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(bad("the answer is in chunks, which this client does not read"));
        }
    }
    if status.starts_with('2') {
        return Ok(body.to_vec());
    }
    Err(io::Error::other(format!("{status} {}", String::from_utf8_lossy(body))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_the_sum_of_its_samples() {
        let page = "# TYPE a counter\na{shard=\"0\"} 3\na{shard=\"1\"} 4\na_b 100\nb 2\n";
        assert_eq!((metric(page, "a"), metric(page, "b"), metric(page, "c")), (7.0, 2.0, 0.0));
    }

    #[test]
    fn an_answer_is_its_body_unless_it_says_otherwise() {
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").ok(), Some(b"{}".to_vec()));
        let refused = read(b"HTTP/1.1 404 Not Found\r\n\r\nno such kind").map_err(|error| error.to_string());
        assert_eq!(refused, Err("404 no such kind".to_owned()));
        assert!(read(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}").is_err());
        assert!(read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").is_err());
        assert!(read(b"").is_err());
    }
}
