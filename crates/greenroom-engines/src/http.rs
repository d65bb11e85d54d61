//! As much HTTP as it takes to ask a server on loopback whether it is ready.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The whole answer, head and body, to a GET of `path`.
pub(crate) fn get(port: u16, path: &str) -> std::io::Result<String> {
    ask(port, &format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"))
}

/// The whole answer, head and body, to a POST of `json` to `path`.
pub(crate) fn post(port: u16, path: &str, json: &str) -> std::io::Result<String> {
    let length = json.len();
    ask(port, &format!("POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{json}"))
}

/// Whether `answer` begins with a status of 200.
pub(crate) fn is_ok(answer: &str) -> bool {
    answer.split(' ').nth(1) == Some("200")
}

fn ask(port: u16, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

const PATIENCE: Duration = Duration::from_secs(10);
