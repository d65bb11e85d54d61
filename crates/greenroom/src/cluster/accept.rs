//! The node's port: reads each connection's hello, and hands it to whom it is for.

use std::sync::Arc;

use greenroom_protocols::node::{NodeId, Status};
use greenroom_security::link::{NotAccepted, Peer};
use greenroom_wire::{Hello, HelloBody, Lane, negotiate};
use greenroom_world::{BoxFuture, Listener, Stream};
use tokio::sync::mpsc;

use super::mesh::{self, Inbound};
use crate::here::Here;
use crate::here::parts::Met;
use crate::net::{Answer, OPEN_TIMEOUT, Place, greet, let_in, too_late, turn_away, within};
use crate::shard::Item;
use crate::shard::lanes::{Flow, Greeted};

/// Accepts connections until the node stops.
pub(super) async fn accept(node: Arc<Here>, listener: Box<dyn Listener>, inbound: mpsc::Sender<Inbound>) {
    let meeting = node.clone();
    let meet = move |stream, from: String, place| -> BoxFuture<()> {
        Box::pin(meet(meeting.clone(), stream, from, place, inbound.clone()))
    };
    let_in(node, listener, GREETING_MAX, meet).await;
}

/// Greets who has come, and serves it. It has a place while it is greeted.
async fn meet(node: Arc<Here>, stream: Box<dyn Stream>, from: String, place: Place, inbound: mpsc::Sender<Inbound>) {
    let world = node.world();
    let timeout = world.sleep_until(world.now() + OPEN_TIMEOUT);
    let judge = |theirs: &Hello, shown: &Peer| answer(&node, theirs, shown);
    let greeted = within(timeout, async { Ok(greet(node.links(), stream, judge).await) }).await;
    let refused = match greeted {
        Ok(Ok((hello, met))) => {
            drop(place);
            return hand_over(&node, hello, met, inbound).await;
        }
        Ok(Err(refused)) => refused,
        Err(_) => NotAccepted { why: too_late(), plain: false, stream: None },
    };
    node.strangers().refuse(world.now(), &from, &refused.why);
    turn_away(&**world, refused).await;
    drop(place);
}

fn answer(node: &Here, theirs: &Hello, shown: &Peer) -> Answer {
    let body = HelloBody::new(&node.config().cluster, node.me().0, node.name(), theirs.body.lane);
    let ours = Hello::new(body.giving(Flow::hello(node.world().now())));
    let misfit = negotiate(&ours, theirs).err().map(|error| error.to_string());
    Answer { refusal: misfit.or_else(|| stranger(node, theirs, shown)), hello: Some(ours) }
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
