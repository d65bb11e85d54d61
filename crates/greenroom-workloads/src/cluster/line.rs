//! A connection to an HTTP server that stays open, with one request in flight.

use std::io::{self, Write as _};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that stays open.
pub(crate) struct Line {
    stream: TcpStream,
    host: String,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Line {
    /// A connection to `address`, written as `127.0.0.1:80`.
    pub(crate) async fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host: address.to_owned(), request: Vec::new(), answer: Vec::new() })
    }

    /// What the server answers to `body`, in JSON, at `path`: under an idempotency key, if there is one.
    pub(crate) async fn post(&mut self, path: &str, key: Option<&str>, body: &str) -> io::Result<Vec<u8>> {
        self.request.clear();
        write!(self.request, "POST {path} HTTP/1.1\r\nhost: {}\r\n", self.host)?;
        if let Some(key) = key {
            write!(self.request, "idempotency-key: {key}\r\n")?;
        }
        write!(self.request, "content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            if let Some((head, body)) = split(&self.answer) {
                let all = head.len() + END.len() + length(head)?;
                if self.answer.len() >= all {
                    return match head.starts_with("HTTP/1.1 200") {
                        true => Ok(body.to_vec()),
                        false => Err(io::Error::other(String::from_utf8_lossy(&self.answer).into_owned())),
                    };
                }
            }
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn split(answer: &[u8]) -> Option<(&str, &[u8])> {
    let at = answer.windows(END.len()).position(|window| window == END)?;
    Some((std::str::from_utf8(&answer[..at]).ok()?, &answer[at + END.len()..]))
}

/// What the head says of the body's length.
fn length(head: &str) -> io::Result<usize> {
    let named = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let mut lengths = named.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = lengths.next().and_then(|(_, length)| length.trim().parse().ok());
    length.ok_or_else(|| io::Error::other("an answer without a length"))
}

const END: &[u8] = b"\r\n\r\n";
