//! How a connection of a host begins: with a Hello it is a control lane, with a Join a user lane.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use greenroom_security::principal::Principal;
use greenroom_wire::host::{Closing, Decoder, FRAME_LEN_MAX, FromHost, FromNode, Hello, JoinMap};
use greenroom_world::{Stream, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Hosts;
use super::control::reside;
use super::on_shard::{Joined, OnShard};
use super::socket::Process;
use super::visa::Visa;
use crate::here::Here;
use crate::shard::{Item, Shard};

/// Who has connected.
pub(crate) struct Peer {
    /// Its process on this machine, if that is known.
    pub(super) process: Option<Process>,
    /// What the HTTP door knows of it, if it has shown credentials there.
    pub(super) visa: Option<Arc<dyn Visa>>,
    /// Whether it came by the socket, and so is trusted.
    pub(super) is_local: bool,
    /// Its address, for people.
    pub(super) from: String,
}

impl Peer {
    /// Who has come by a way that is trusted as the socket is.
    pub(crate) fn trusted(from: String) -> Self {
        Self { process: None, visa: None, is_local: true, from }
    }

    /// Who has come by the HTTP door, and has shown credentials there if it knows any.
    #[cfg(feature = "http")]
    pub(crate) fn by_door(visa: Option<Arc<dyn Visa>>, from: String) -> Self {
        Self { process: None, visa, is_local: false, from }
    }

    /// Who it has shown to be.
    pub(super) fn principal(&self) -> Option<&Principal> {
        self.visa.as_deref().map(Visa::principal)
    }
}

/// Serves a connection until it ends: a control lane, or a user lane that is handed to its shard.
pub(crate) async fn attend(here: &Arc<Here>, stream: Box<dyn Stream>, peer: Peer) {
    let from = peer.from.clone();
    let (mut line, greeting) = match greet(here, stream).await {
        Ok(greeted) => greeted,
        // It wanted to know whether somebody listens, as who looks for a node does.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return tracing::debug!(from, "a connection has closed that said no Hello");
        }
        Err(error) => {
            here.strangers().count_bad_frame();
            return tracing::warn!(from, %error, "a host was not let in");
        }
    };
    match greeting {
        Greeting::Join(map) => {
            if let Err(reason) = join(here, line.take(), map, &peer) {
                tracing::warn!(from, reason, "a host's lane was not let in");
            }
        }
        Greeting::Hello(hello) => {
            let name = hello.map.name.clone();
            // From then on what it calls finds its actors.
            while !here.takes_part() && !here.is_stopped() {
                here.world().sleep_until(here.world().now() + JOIN_POLL).await;
            }
            if let Err((code, reason)) = reside(here, &mut line, *hello, peer).await {
                tracing::info!(host = name, from, reason, "a host's session is over");
                let _ = line.say(&FromNode::Goodbye { code, reason: &reason }).await;
                line.close().await;
            }
        }
    }
}

pub(super) enum Greeting {
    Hello(Box<Hello>),
    Join(JoinMap),
}

/// A control lane's connection.
pub(super) struct Line {
    stream: Option<Box<dyn Stream>>,
    pub(super) input: BytesMut,
    pub(super) decoder: Decoder,
    world: Arc<dyn World>,
}

pub(super) type Ended = (Closing, String);

impl Line {
    pub(super) async fn say(&mut self, frame: &FromNode<'_>) -> io::Result<()> {
        let mut out = BytesMut::new();
        frame.write(&mut out, FRAME_LEN_MAX).map_err(io::Error::other)?;
        self.write(&out).await
    }

    /// Writes to a host, which has a time to take it.
    pub(super) async fn write(&mut self, out: &[u8]) -> io::Result<()> {
        let timeout = self.world.sleep_until(self.world.now() + WRITE_TIMEOUT);
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let writing = async {
            stream.write_all(out).await?;
            stream.flush().await
        };
        tokio::select! {
            written = writing => written,
            () = timeout => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Reads what has come. Safe to be dropped.
    pub(super) async fn read(&mut self) -> io::Result<()> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        match stream.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Ends the connection. The host may still be sending: it gets the time to read why.
    pub(super) async fn close(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            // A host that is gone already reads nothing.
            let _ = stream.shutdown().await;
        }
    }

    fn take(self) -> (Box<dyn Stream>, Joined) {
        let Self { stream, input, decoder, .. } = self;
        (stream.expect("it is taken once"), Joined { input, decoder })
    }
}

async fn greet(here: &Arc<Here>, stream: Box<dyn Stream>) -> io::Result<(Line, Greeting)> {
    let world = here.world().clone();
    let timeout = world.sleep_until(world.now() + GREETING_TIMEOUT);
    let mut line = Line { stream: Some(stream), input: BytesMut::new(), decoder: Decoder::new(FRAME_LEN_MAX), world };
    let greeting = {
        let reading = async {
            loop {
                let mut rest = &line.input[..];
                let frame = line.decoder.next::<FromHost<'_>>(&mut rest).map_err(io::Error::other)?;
                let greeting = match frame {
                    Some(FromHost::Hello(hello)) => Some(Greeting::Hello(Box::new(hello))),
                    Some(FromHost::Join(join)) => Some(Greeting::Join(join.map)),
                    Some(_) => return Err(io::Error::other("the first frame is no greeting")),
                    None => None,
                };
                let consumed = line.input.len() - rest.len();
                line.input.advance(consumed);
                if let Some(greeting) = greeting {
                    return Ok(greeting);
                }
                line.read().await?;
            }
        };
        tokio::select! {
            greeting = reading => greeting?,
            () = timeout => return Err(io::ErrorKind::TimedOut.into()),
        }
    };
    Ok((line, greeting))
}

/// Hands a user lane to its shard. A host may join before its offers are judged.
fn join(
    here: &Arc<Here>,
    (stream, joined): (Box<dyn Stream>, Joined),
    map: JoinMap,
    peer: &Peer,
) -> Result<(), String> {
    let JoinMap { session: number, secret, shard } = map;
    let Some(session) = here.part::<Hosts>().session(number, secret) else {
        return Err(format!("there is no session {number} with that secret"));
    };
    if !session.is_of(peer.principal()) {
        return Err(format!("session {number} came with the credentials of another principal"));
    }
    let port = here.shards().get(shard as usize).filter(|_| shard < u32::from(session.shards));
    let Some(port) = port else { return Err(format!("session {number} has no lane for shard {shard}")) };
    let enter = move |shard: &Shard| OnShard::of(shard).join(shard, &session, stream, joined);
    port.push(Item::Run(Box::new(enter))).map_err(|_| "the node is stopping".to_owned())
}

/// Time for a host to say who it is.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for a host to take what it is sent on its control lane.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// So often it is looked whether the node has joined, for hosts that came before.
const JOIN_POLL: Duration = Duration::from_millis(5);
