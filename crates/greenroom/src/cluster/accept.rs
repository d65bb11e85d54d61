//! The node's port: reads each connection's hello, and hands it to whom it is for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use greenroom_protocols::node::{NodeId, Status};
use greenroom_security::link::{NotAccepted, PLAIN_WANTED, Peer, is_tls};
use greenroom_wire::{Decoder, Encoder, Hello, HelloBody, Lane, negotiate};
use greenroom_world::{Listener, Stage, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::mesh::{self, Inbound};
use crate::here::Here;
use crate::here::parts::Met;
use crate::shard::Item;
use crate::shard::lanes::{Flow, Greeted, OPEN_TIMEOUT, read_hello, within};

/// Accepts connections until the node stops.
pub(super) async fn accept(node: Arc<Here>, mut listener: Box<dyn Listener>, inbound: mpsc::Sender<Inbound>) {
    let greeting = Arc::new(AtomicUsize::new(0));
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                let world = node.world();
                world.sleep_until(world.now() + ACCEPT_PAUSE).await;
                continue;
            }
        };
        if node.is_stopped() {
            return;
        }
        if greeting.fetch_add(1, Ordering::AcqRel) >= GREETING_MAX {
            // Strangers that say nothing must not keep friends out for long, nor cost memory.
            greeting.fetch_sub(1, Ordering::AcqRel);
            node.strangers().count_refused();
            continue;
        }
        let (task_node, inbound, greeting) = (node.clone(), inbound.clone(), greeting.clone());
        node.world().spawn(
            Stage::Control,
            Box::pin(async move {
                let world = task_node.world();
                let timeout = world.sleep_until(world.now() + OPEN_TIMEOUT);
                let greeted = within(timeout, async { Ok(greet(&task_node, stream).await) }).await;
                let refused = match greeted {
                    Ok(Ok((hello, met))) => {
                        greeting.fetch_sub(1, Ordering::AcqRel);
                        return hand_over(&task_node, hello, met, inbound).await;
                    }
                    Ok(Err(refused)) => refused,
                    Err(_) => {
                        let why = io::Error::new(io::ErrorKind::TimedOut, "it did not say who it is in time");
                        NotAccepted { why, plain: false, stream: None }
                    }
                };
                task_node.strangers().refuse(task_node.world().now(), &from, &refused.why);
                if let Some(stream) = refused.stream {
                    let timeout = world.sleep_until(world.now() + HEAR_OUT_TIMEOUT);
                    // Whether who was refused stays to hear it is its own affair.
                    let _ = within(timeout, hear_out(stream)).await;
                }
                greeting.fetch_sub(1, Ordering::AcqRel);
            }),
        );
    }
}

async fn greet(node: &Here, stream: Box<dyn Stream>) -> Result<(Hello, Met), NotAccepted> {
    let (mut stream, peer) = match node.links().accepted(stream).await {
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
    let body = HelloBody::new(&node.config().cluster, node.me().0, node.name(), theirs.body.lane);
    let ours = Hello::new(body.giving(Flow::hello(node.world().now())));
    let refusal =
        negotiate(&ours, &theirs).err().map(|error| error.to_string()).or_else(|| stranger(node, &theirs, &peer));
    let mut out = BytesMut::new();
    let mut answered = Encoder::default().hello(&mut out, &ours).map_err(io::Error::other);
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

async fn say(stream: &mut Box<dyn Stream>, bytes: &[u8]) -> io::Result<()> {
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

/// Why who says this hello is not let in.
fn stranger(node: &Here, theirs: &Hello, shown: &Peer) -> Option<String> {
    if let Some(reason) = shown.not_node(&theirs.body.name) {
        return Some(reason);
    }
    let view = node.view();
    let peer = NodeId(theirs.body.node);
    match view.view.members.get(&peer) {
        Some(member) if member.status == Status::Dead => Some(format!("node {peer} has been declared dead")),
        Some(member) if member.name != theirs.body.name => {
            Some(format!("node {peer} is called {:?}, not {:?}", member.name, theirs.body.name))
        }
        // A node that this view does not show yet may be about to join, or be ahead.
        None if peer.0 < view.view.next_node => Some(format!("node {peer} is not in the cluster any more")),
        _ => None,
    }
}

async fn hand_over(node: &Arc<Here>, hello: Hello, met: Met, inbound: mpsc::Sender<Inbound>) {
    let Met { stream, decoder, input } = met;
    let peer = NodeId(hello.body.node);
    match hello.body.lane {
        Lane::User { shard, .. } => {
            let (peer_name, flow) = (hello.body.name, hello.body.flow);
            let greeted = Greeted { peer, peer_name, shard, decoder, input, flow };
            let shards = node.shards();
            let port = shards[usize::from(shard) % shards.len()];
            // A shard that is gone drops the connection, which tells the peer.
            let _ = port.push(Item::Connection { stream, hello: Box::new(greeted) });
        }
        Lane::Control => {
            if let Err(error) = mesh::read(node, peer, stream, decoder, input, inbound).await {
                tracing::debug!(%peer, %error, "a control connection closed");
            }
        }
        lane => {
            let mut met = Met { stream, decoder, input };
            for part in node.parts() {
                match part.read(node, lane, met) {
                    Err(back) => met = back,
                    Ok(reading) => {
                        if let Err(error) = reading.await {
                            tracing::debug!(%peer, %error, ?lane, "a connection closed");
                        }
                        return;
                    }
                }
            }
        }
    }
}

/// Connections whose hellos are awaited at once.
const GREETING_MAX: usize = 256;
/// Time for who was refused to hear it.
const HEAR_OUT_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes that are read of who was refused.
const HEAR_OUT_LEN_MAX: usize = 64 << 10;
/// Pause after a failed accept: the usual cause, too many open files, passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
