//! Where other clusters come in, and letters that nodes of this cluster hand over.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use greenroom_protocols::gsi::ClusterId;
use greenroom_security::link::{NotAccepted, Peer};
use greenroom_wire::{Encoder, Frame, Hello, HelloBody, Lane};
use greenroom_world::{BoxFuture, Listener, Stream};
use tokio::io::AsyncReadExt;

use super::Geo;
use super::clusters::id_of;
use super::letter::Letter;
use super::news::CHANNEL;
use super::states::StateLetter;
use super::word::News;
use crate::here::Here;
use crate::here::parts::Met;
use crate::net::{Answer, OPEN_TIMEOUT, Place, greet, let_in, say, too_late, turn_away, within};

/// Accepts connections of other clusters until the node stops.
pub(super) async fn accept(geo: Arc<Geo>, node: Arc<Here>, listener: Box<dyn Listener>) {
    let meeting = node.clone();
    let meet = move |stream, from: String, place| -> BoxFuture<()> {
        Box::pin(meet(geo.clone(), meeting.clone(), stream, from, place))
    };
    let_in(node, listener, CONNECTIONS_MAX, meet).await;
}

/// Greets who has come, and reads what it writes. It has a place until its connection closes.
async fn meet(geo: Arc<Geo>, node: Arc<Here>, stream: Box<dyn Stream>, from: String, place: Place) {
    let world = node.world();
    let timeout = world.sleep_until(world.now() + OPEN_TIMEOUT);
    let judge = |theirs: &Hello, shown: &Peer| answer(&geo, &node, theirs, shown);
    let greeted = within(timeout, async { Ok(greet(geo.links(&node), stream, judge).await) }).await;
    let refused = match greeted {
        Ok(Ok((hello, met))) => {
            if let Err(error) = read(&geo, &node, Some(id_of(&hello.body.cluster)), met).await {
                tracing::debug!(%from, %error, "a connection of another cluster closed");
            }
            return;
        }
        Ok(Err(refused)) => refused,
        Err(_) => NotAccepted { why: too_late(), plain: false, stream: None },
    };
    node.strangers().refuse(world.now(), &from, &refused.why);
    turn_away(&**world, refused).await;
    drop(place);
}

fn answer(geo: &Geo, node: &Here, theirs: &Hello, shown: &Peer) -> Answer {
    let refusal = stranger(geo, theirs, shown);
    let ours = || Hello::new(HelloBody::new(geo.name(), node.me().0, node.name(), Lane::Geo));
    Answer { hello: refusal.is_none().then(ours), refusal }
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
pub(crate) async fn read(geo: &Arc<Geo>, node: &Arc<Here>, from: Option<ClusterId>, met: Met) -> io::Result<()> {
    let Met { mut stream, mut decoder, mut input } = met;
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
                Frame::Ping(nonce) => {
                    if from.is_some() {
                        geo.list_answer().put(&Encoder::default(), &mut out);
                    }
                    Encoder::default().pong(&mut out, nonce);
                }
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
            say(&mut stream, &out).await?;
        }
        let timeout = world.sleep_until(world.now() + SILENCE_MAX);
        if within(timeout, stream.read_buf(&mut input)).await? == 0 {
            return Ok(());
        }
    }
}

/// Connections of other clusters that one gateway keeps.
const CONNECTIONS_MAX: usize = 4096;
/// Silence after which a connection is closed: who opened it asks every second.
const SILENCE_MAX: Duration = Duration::from_secs(15);
