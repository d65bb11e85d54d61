//! Connections between nodes' control planes: user traffic has others, so that it delays no probe.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use greenroom_protocols::node::NodeId;
use greenroom_security::link::Links;
use greenroom_wire::{Decoder, EncodeError, Encoder, Frame, Hello, HelloBody, Lane};
use greenroom_world::{BoxFuture, Stage, Stream, World};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use super::control::{CHANNEL, ControlMessage};
use crate::here::Here;
use crate::net::{OPEN_TIMEOUT, dial_node, say, within};

/// What comes from other nodes.
pub(super) type Inbound = (NodeId, ControlMessage);

/// A message, and the channel that it goes on.
type Said = (u8, Bytes);

/// Sends messages to other nodes: each has a queue, and a task that dials it when there is something to send.
pub(super) struct Mesh {
    world: Arc<dyn World>,
    links: Arc<Links>,
    cluster: String,
    name: String,
    me: NodeId,
    peers: Mutex<BTreeMap<NodeId, mpsc::Sender<Said>>>,
}

impl Mesh {
    pub(super) fn new(
        world: Arc<dyn World>,
        links: Arc<Links>,
        cluster: String,
        name: String,
        me: NodeId,
    ) -> Arc<Self> {
        Arc::new(Self { world, links, cluster, name, me, peers: Mutex::default() })
    }

    /// Sends `message` to `to` at `address`. What does not fit or does not arrive is lost: the protocols repeat.
    pub(super) fn send(self: &Arc<Self>, to: NodeId, address: &str, message: &ControlMessage) {
        self.send_on(to, address, CHANNEL, message.encode());
    }

    /// The same, of what a part of the node says on its channel.
    pub(super) fn send_on(self: &Arc<Self>, to: NodeId, address: &str, channel: u8, payload: Bytes) {
        let mut said = Some((channel, payload));
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = peers.get(&to) {
            match queue.try_send(said.take().unwrap_or_default()) {
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => return,
                Err(mpsc::error::TrySendError::Closed(unsent)) => said = Some(unsent),
            }
        }
        let (sender, receiver) = mpsc::channel(QUEUE_LEN_MAX);
        // The queue is empty: there is room.
        let _ = sender.try_send(said.unwrap_or_default());
        peers.insert(to, sender);
        drop(peers);
        let this = self.clone();
        let address = address.to_owned();
        self.world.spawn(Stage::Control, Box::pin(async move { this.serve(to, address, receiver).await }));
    }

    /// Forgets the nodes that `keep` does not name.
    pub(super) fn retain(&self, keep: impl Fn(NodeId) -> bool) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).retain(|node, _| keep(*node));
    }

    /// Opens a control connection to `to`.
    pub(super) fn open(&self, to: NodeId, address: String) -> BoxFuture<io::Result<Box<dyn Stream>>> {
        let (world, links) = (self.world.clone(), self.links.clone());
        let body = HelloBody::new(&self.cluster, self.me.0, &self.name, Lane::Control).expecting(to.0);
        let timeout = world.sleep_until(world.now() + OPEN_TIMEOUT);
        Box::pin(within(timeout, async move {
            let answered = dial_node(&*world, &links, &address, &Hello::new(body), Decoder::default()).await?;
            Ok(answered.met.stream)
        }))
    }

    async fn serve(self: Arc<Self>, to: NodeId, address: String, mut queue: mpsc::Receiver<Said>) {
        match self.open(to, address.clone()).await {
            Ok(mut stream) => {
                let mut batch = BytesMut::new();
                while let Some(said) = queue.recv().await {
                    put(&mut batch, &said);
                    while let Ok(said) = queue.try_recv() {
                        put(&mut batch, &said);
                    }
                    let timeout = self.world.sleep_until(self.world.now() + OPEN_TIMEOUT);
                    if let Err(error) = within(timeout, say(&mut stream, &batch)).await {
                        tracing::debug!(%to, %error, "a control connection broke");
                        break;
                    }
                    batch.clear();
                }
            }
            Err(error) => {
                tracing::debug!(%to, %error, "a node could not be reached");
                self.links.failed(format!("node {to} at {address} could not be reached: {error}"));
            }
        }
    }
}

fn put(batch: &mut BytesMut, (channel, payload): &Said) {
    let written = Encoder::default().control(batch, *channel, |batch| {
        batch.extend_from_slice(payload);
        Ok::<(), EncodeError>(())
    });
    if let Err(error) = written {
        tracing::error!(%error, "a control message is too large");
    }
}

/// Reads control messages from a connection that another node opened, until it closes.
pub(super) async fn read(
    node: &Arc<Here>,
    from: NodeId,
    mut stream: Box<dyn Stream>,
    mut decoder: Decoder,
    mut input: BytesMut,
    inbound: mpsc::Sender<Inbound>,
) -> io::Result<()> {
    loop {
        while let Some(frame) = decoder.decode(&mut input).map_err(io::Error::other)? {
            let Frame::Control(control) = frame else { continue };
            if control.channel != CHANNEL {
                // What nobody here listens to is a later version's.
                let part = node.parts().find(|part| part.channel() == Some(control.channel));
                part.into_iter().for_each(|part| part.told(node, from, &control.payload));
            } else {
                match ControlMessage::decode(&control.payload) {
                    // A full queue holds up this connection alone.
                    Ok(message) => {
                        if inbound.send((from, message)).await.is_err() {
                            return Ok(());
                        }
                    }
                    Err(error) => tracing::debug!(%from, %error, "a control message could not be read"),
                }
            }
        }
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
    }
}

/// Messages that may wait for one node.
const QUEUE_LEN_MAX: usize = 1024;
