//! The node's port: reads each connection's hello, and hands it to whom it is for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::BytesMut;
use greenroom_protocols::node::{NodeId, Status};
use greenroom_wire::{Decoder, Encoder, Hello, HelloBody, Lane, negotiate};
use greenroom_world::{Listener, Stage, Stream};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use super::mesh::{self, Inbound};
use crate::node::shared::Shared;
use crate::shard::Item;
use crate::shard::lanes::{Greeted, OPEN_TIMEOUT, read_hello, within};

/// Accepts connections until the node stops.
pub(super) async fn accept(node: Arc<Shared>, mut listener: Box<dyn Listener>, inbound: mpsc::Sender<Inbound>) {
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
            node.count_refused_connection();
            continue;
        }
        let (task_node, inbound, greeting) = (node.clone(), inbound.clone(), greeting.clone());
        node.world().spawn(
            Stage::Control,
            Box::pin(async move {
                let world = task_node.world();
                let timeout = world.sleep_until(world.now() + OPEN_TIMEOUT);
                let greeted = within(timeout, greet(&task_node, stream)).await;
                greeting.fetch_sub(1, Ordering::AcqRel);
                match greeted {
                    Ok((stream, hello, decoder, input)) => {
                        hand_over(&task_node, stream, hello, decoder, input, inbound).await
                    }
                    Err(error) => {
                        task_node.count_refused_connection();
                        tracing::debug!(%from, %error, "a connection was refused");
                    }
                }
            }),
        );
    }
}

async fn greet(node: &Shared, mut stream: Box<dyn Stream>) -> io::Result<(Box<dyn Stream>, Hello, Decoder, BytesMut)> {
    let mut decoder = Decoder::default();
    let mut input = BytesMut::new();
    let theirs = read_hello(&mut stream, &mut decoder, &mut input).await?;
    let ours = Hello::new(HelloBody::new(&node.config().cluster, node.me().0, node.name(), theirs.body.lane));
    let mut out = BytesMut::new();
    let refusal = negotiate(&ours, &theirs).err().map(|error| error.to_string()).or_else(|| stranger(node, &theirs));
    match &refusal {
        None => Encoder::default().hello(&mut out, &ours).map_err(io::Error::other)?,
        Some(reason) => {
            Encoder::default().hello(&mut out, &ours).map_err(io::Error::other)?;
            Encoder::default().goodbye(&mut out, reason);
        }
    }
    stream.write_all(&out).await?;
    stream.flush().await?;
    match refusal {
        None => Ok((stream, theirs, decoder, input)),
        Some(reason) => Err(io::Error::other(reason)),
    }
}

/// Why who says this hello is not let in.
fn stranger(node: &Shared, theirs: &Hello) -> Option<String> {
    let view = node.view();
    let peer = NodeId(theirs.body.node);
    match view.view.members.get(&peer) {
        Some(member) if member.status == Status::Dead => Some(format!("node {peer} has been declared dead")),
        // A node that this view does not show yet may be about to join, or be ahead.
        None if peer.0 < view.view.next_node => Some(format!("node {peer} is not in the cluster any more")),
        _ => None,
    }
}

async fn hand_over(
    node: &Arc<Shared>,
    stream: Box<dyn Stream>,
    hello: Hello,
    decoder: Decoder,
    input: BytesMut,
    inbound: mpsc::Sender<Inbound>,
) {
    let peer = NodeId(hello.body.node);
    match hello.body.lane {
        Lane::User { shard, .. } => {
            let greeted = Greeted { peer, peer_name: hello.body.name, decoder, input };
            let shards = node.shards();
            let port = shards[usize::from(shard) % shards.len()];
            // A shard that is gone drops the connection, which tells the peer.
            let _ = port.push(Item::Connection { stream, hello: Box::new(greeted) });
        }
        Lane::Control => {
            if let Err(error) = mesh::read(peer, stream, decoder, input, inbound).await {
                tracing::debug!(%peer, %error, "a control connection closed");
            }
        }
        _ => {}
    }
}

/// Connections whose hellos are awaited at once.
const GREETING_MAX: usize = 256;
/// Pause after a failed accept: the usual cause, too many open files, passes.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
