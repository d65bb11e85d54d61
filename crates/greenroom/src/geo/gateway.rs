//! Where other clusters come in, and letters that nodes of this cluster hand over.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use greenroom_protocols::gsi::ClusterId;
use greenroom_security::link::Peer;
use greenroom_wire::{Decoder, Encoder, Frame, Hello, HelloBody, Lane};
use greenroom_world::{Listener, Stage, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Geo;
use super::clusters::id_of;
use super::letter::Letter;
use super::news::CHANNEL;
use super::states::StateLetter;
use super::word::News;
use crate::here::Here;
use crate::shard::lanes::{OPEN_TIMEOUT, read_hello, within};

/// Accepts connections of other clusters until the node stops.
pub(super) async fn accept(geo: Arc<Geo>, node: Arc<Here>, mut listener: Box<dyn Listener>) {
    let open = Arc::new(AtomicUsize::new(0));
    while !node.is_stopped() {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection of another cluster could not be accepted");
                node.world().sleep_until(node.world().now() + ACCEPT_PAUSE).await;
                continue;
            }
        };
        if open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::AcqRel);
            node.strangers().count_refused();
            continue;
        }
        let (geo, task_node, open) = (geo.clone(), node.clone(), open.clone());
        let serve = async move {
            let timeout = task_node.world().sleep_until(task_node.world().now() + OPEN_TIMEOUT);
            match within(timeout, greet(&geo, &task_node, stream)).await {
                Ok((cluster, stream, decoder, input)) => {
                    if let Err(error) = read(&geo, &task_node, Some(cluster), stream, decoder, input).await {
                        tracing::debug!(%from, %error, "a connection of another cluster closed");
                    }
                }
                Err(why) => task_node.strangers().refuse(task_node.world().now(), &from, &why),
            }
            open.fetch_sub(1, Ordering::AcqRel);
        };
        node.world().spawn(Stage::Control, Box::pin(serve));
    }
}

type Met = (ClusterId, Box<dyn Stream>, Decoder, BytesMut);

async fn greet(geo: &Geo, node: &Here, stream: Box<dyn Stream>) -> io::Result<Met> {
    let (mut stream, shown) = geo.links(node).accepted(stream).await.map_err(|refused| refused.why)?;
    let (mut decoder, mut input) = (Decoder::default(), BytesMut::new());
    let theirs = read_hello(&mut stream, &mut decoder, &mut input).await?;
    let ours = Hello::new(HelloBody::new(geo.name(), node.me().0, node.name(), Lane::Geo));
    let mut out = BytesMut::new();
    let refused = stranger(geo, &theirs, &shown);
    match &refused {
        None => Encoder::default().hello(&mut out, &ours).map_err(io::Error::other)?,
        // In place of a hello: it ends there.
        Some(reason) => Encoder::default().goodbye(&mut out, reason),
    }
    stream.write_all(&out).await?;
    stream.flush().await?;
    match refused {
        None => Ok((id_of(&theirs.body.cluster), stream, decoder, input)),
        Some(reason) => {
            stream.shutdown().await?;
            Err(io::Error::other(reason))
        }
    }
}

/// Why who says this hello is not let in.
fn stranger(geo: &Geo, theirs: &Hello, shown: &Peer) -> Option<String> {
    let name = &theirs.body.cluster;
    if theirs.body.lane != Lane::Geo {
        return Some(format!("this is a gateway of cluster {:?}, not a node's port; correct the address", geo.name()));
    }
    if theirs.versions.min > greenroom_wire::VERSIONS.max || theirs.versions.max < greenroom_wire::VERSIONS.min {
        return Some("the clusters' builds have no protocol version in common; upgrade the older one".to_owned());
    }
    if name == geo.name() {
        return Some(format!(
            "two clusters are called {name:?}, or one dials its own gateway; give each a name of its own"
        ));
    }
    let list = geo.clusters();
    if !list.clusters.contains_key(name) {
        return Some(format!(
            "cluster {name:?} is not in the list of clusters (epoch {}) of cluster {:?}; add it there first",
            list.epoch,
            geo.name()
        ));
    }
    if list.lost.contains(name) {
        return Some(format!(
            "cluster {name:?} is taken out of the list of clusters (epoch {}) of cluster {:?} as lost; stop its nodes, and add it anew then",
            list.epoch,
            geo.name()
        ));
    }
    shown.not_node_of(name, &theirs.body.name)
}

/// Reads letters from a connection until it closes: of another cluster, or those that a node of this one hands over.
pub(crate) async fn read(
    geo: &Arc<Geo>,
    node: &Arc<Here>,
    from: Option<ClusterId>,
    mut stream: Box<dyn Stream>,
    mut decoder: Decoder,
    mut input: BytesMut,
) -> io::Result<()> {
    let world = node.world();
    loop {
        if node.is_stopped() {
            // Who speaks with it is to find another door.
            return Err(io::Error::other("the node has stopped"));
        }
        let mut out = BytesMut::new();
        while let Some(frame) = decoder.decode(&mut input).map_err(io::Error::other)? {
            match frame {
                Frame::Letter(payload) => match Letter::decode(&payload) {
                    Ok(letter) if from.is_none_or(|from| from == letter.from) => geo.receive(node, letter),
                    Ok(_) => return Err(io::Error::other("a cluster writes in another one's name")),
                    Err(error) => tracing::debug!(%error, "a letter could not be read"),
                },
                Frame::StateLetter(payload) => match StateLetter::decode(&payload) {
                    Ok(letter) if from.is_none_or(|from| from == letter.from) => geo.receive_state(node, letter),
                    Ok(_) => return Err(io::Error::other("a cluster writes in another one's name")),
                    Err(error) => tracing::debug!(%error, "a letter of a versioned state could not be read"),
                },
                Frame::Control(control) if control.channel == CHANNEL => {
                    if let (Some(from), Some(news)) = (from, News::decode(&control.payload)) {
                        geo.told_by_cluster(node, from, news);
                    }
                }
                Frame::Ping(nonce) => Encoder::default().pong(&mut out, nonce),
                Frame::Goodbye(reason) => return Err(io::Error::other(reason.as_str().to_owned())),
                _ => {}
            }
        }
        if let Some(from) = from
            && !geo.answers_to(from)
        {
            return Err(io::Error::other("its cluster is not in the list any more"));
        }
        if !out.is_empty() {
            stream.write_all(&out).await?;
            stream.flush().await?;
        }
        let timeout = world.sleep_until(world.now() + SILENCE_MAX);
        if within(timeout, stream.read_buf(&mut input)).await? == 0 {
            return Ok(());
        }
    }
}

/// Connections of other clusters that one gateway keeps.
const CONNECTIONS_MAX: usize = 4096;
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Silence after which a connection is closed: who opened it asks every second.
const SILENCE_MAX: Duration = Duration::from_secs(15);
