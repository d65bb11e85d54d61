//! Hellos: what a connection begins with, and how somebody hears that it is turned away.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use greenroom_security::link::{Links, NotAccepted, PLAIN_WANTED, Peer, is_tls};
use greenroom_wire::{Decoder, Encoder, Frame, Hello};
use greenroom_world::{Stream, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::within;
use crate::here::parts::Met;

/// What is answered to a hello.
pub(crate) struct Answer {
    /// Our own, unless the reason comes in its place.
    pub(crate) hello: Option<Hello>,
    /// Why who says it is turned away.
    pub(crate) refusal: Option<String>,
}

/// Reads the hello of who has dialled, and answers as `judge` says. Who is turned away has been told why, and should be
/// [heard out](turn_away).
pub(crate) async fn greet(
    links: &Links,
    stream: Box<dyn Stream>,
    judge: impl FnOnce(&Hello, &Peer) -> Answer,
) -> Result<(Hello, Met), NotAccepted> {
    let (mut stream, shown) = match links.accepted(stream).await {
        Ok(secured) => secured,
        Err(refused) => return Err(dismiss(refused).await),
    };
    let mut decoder = Decoder::default();
    let mut input = BytesMut::new();
    let theirs = match read_hello(&mut stream, &mut decoder, &mut input).await {
        Ok(hello) => hello,
        Err(_) if is_tls(&input) => {
            let why = io::Error::other(PLAIN_WANTED);
            return Err(dismiss(NotAccepted { why, plain: true, stream: Some(stream) }).await);
        }
        Err(why) => return Err(NotAccepted { why, plain: false, stream: Some(stream) }),
    };
    let Answer { hello, refusal } = judge(&theirs, &shown);
    let mut out = BytesMut::new();
    let mut answered = match &hello {
        Some(ours) => Encoder::default().hello(&mut out, ours).map_err(io::Error::other),
        None => Ok(()),
    };
    if let Some(reason) = &refusal {
        Encoder::default().goodbye(&mut out, reason);
    }
    if answered.is_ok() {
        answered = say(&mut stream, &out).await;
    }
    match (answered, refusal) {
        (Ok(()), None) => Ok((theirs, Met { stream, decoder, input })),
        (_, Some(reason)) => Err(NotAccepted { why: io::Error::other(reason), plain: false, stream: Some(stream) }),
        (Err(why), None) => Err(NotAccepted { why, plain: false, stream: None }),
    }
}

/// What is said of who has not said its hello within [`OPEN_TIMEOUT`](super::OPEN_TIMEOUT).
pub(crate) fn too_late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it did not say who it is in time")
}

/// Ends a connection that was not accepted: a short time for who was turned away to hear why.
pub(crate) async fn turn_away(world: &dyn World, refused: NotAccepted) {
    if let Some(stream) = refused.stream {
        let timeout = world.sleep_until(world.now() + HEAR_OUT_TIMEOUT);
        // Whether who was refused stays to hear it is its own affair.
        let _ = within(timeout, hear_out(stream)).await;
    }
}

/// Reads the first frame, which must be a hello.
pub(super) async fn read_hello(
    stream: &mut Box<dyn Stream>,
    decoder: &mut Decoder,
    input: &mut BytesMut,
) -> io::Result<Hello> {
    loop {
        match decoder.decode(input).map_err(io::Error::other)? {
            Some(Frame::Hello(hello)) => return Ok(hello),
            Some(Frame::Goodbye(reason)) => return Err(io::Error::other(reason.as_str().to_owned())),
            Some(_) => return Err(io::Error::other("the first frame is no hello")),
            None => {}
        }
        if stream.read_buf(input).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed before its hello"));
        }
    }
}

/// Writes all of `bytes`, now.
pub(crate) async fn say(stream: &mut Box<dyn Stream>, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Tells who speaks plain why it is refused.
async fn dismiss(mut refused: NotAccepted) -> NotAccepted {
    if let Some(stream) = refused.stream.as_mut().filter(|_| refused.plain) {
        let mut out = BytesMut::new();
        Encoder::default().goodbye(&mut out, &refused.why.to_string());
        // If it is gone, there is nobody to tell.
        let _ = say(stream, &out).await;
    }
    refused
}

/// Reads on until who was refused has gone: a connection that is closed over unread bytes takes back what was said on it.
async fn hear_out(mut stream: Box<dyn Stream>) -> io::Result<()> {
    // It is told at once that nothing more will be said.
    stream.shutdown().await?;
    let mut heard = 0;
    let mut ignored = [0; 1024];
    while heard < HEAR_OUT_LEN_MAX {
        match stream.read(&mut ignored).await? {
            0 => break,
            read => heard += read,
        }
    }
    Ok(())
}

/// Time for who was refused to hear it.
const HEAR_OUT_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes that are read of who was refused.
const HEAR_OUT_LEN_MAX: usize = 64 << 10;
