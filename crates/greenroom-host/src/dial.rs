//! Ways to a node.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::{Connection, Dial};

/// Dials the socket of a node on this machine.
pub fn unix(path: impl Into<PathBuf>) -> Dial {
    let path = path.into();
    Arc::new(move || {
        let path = path.clone();
        Box::pin(async move {
            let stream = UnixStream::connect(path).await?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    })
}

/// Dials a node's HTTP door, as `127.0.0.1:7070`, without TLS; with a token if the door wants one.
pub fn door(address: impl Into<String>, token: Option<String>) -> Dial {
    let (address, token) = (address.into(), token);
    Arc::new(move || {
        let (address, token) = (address.clone(), token.clone());
        Box::pin(async move {
            let mut stream = TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
            let head = format!("Host: {address}\r\nConnection: Upgrade\r\nUpgrade: greenroom-host/1\r\n{token}\r\n");
            stream.write_all(format!("GET /-/host HTTP/1.1\r\n{head}").as_bytes()).await?;
            let answer = answer(&mut stream).await?;
            match answer.split(' ').nth(1) {
                Some("101") => Ok(Box::new(stream) as Box<dyn Connection>),
                _ => Err(io::Error::other(format!("the door does not let hosts in: {answer}"))),
            }
        })
    })
}

/// The first line of what the door answers. Behind the answer come frames, so no byte of these may be taken.
async fn answer(stream: &mut TcpStream) -> io::Result<String> {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == ANSWER_LEN_MAX {
            return Err(io::Error::other("the door's answer has no end"));
        }
        answer.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned())
}

const ANSWER_LEN_MAX: usize = 16 << 10;
