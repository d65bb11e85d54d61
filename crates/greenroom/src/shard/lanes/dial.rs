//! Opening connections, from both ends.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use greenroom_protocols::credit::Sending;
use greenroom_protocols::node::NodeId;
use greenroom_security::link::Links;
use greenroom_wire::{Decoder, Flow as WireFlow, Hello, HelloBody, Lane as WireLane, RouteEncoder, RouteTable};
use greenroom_world::{BoxFuture, Stream, World};

use super::{Flow, Lane, LaneId, Link};
use crate::actor::error::Refusal;
use crate::here::parts::Met;
use crate::net::{OPEN_TIMEOUT, dial_node, within};
use crate::shard::Shard;

/// A connection whose hellos have been exchanged by the one who dialled.
pub(super) struct Opened {
    met: Met,
    /// The credit that the peer gives.
    window: Option<u64>,
}

/// A connection that another node opened: its hello, and what was read behind it.
pub(crate) struct Greeted {
    pub(crate) peer: NodeId,
    pub(crate) peer_name: String,
    /// The peer's shard that opened it.
    pub(crate) shard: u16,
    pub(crate) decoder: Decoder,
    pub(crate) input: BytesMut,
    pub(crate) flow: Option<WireFlow>,
}

impl Shard {
    /// Starts a connection to `to`.
    pub(super) fn dial(&self, to: NodeId) -> Result<LaneId, Refusal> {
        let node = &self.port().node;
        if to == node.me() {
            let reason = "it is this one, whose actors are called without a connection".to_owned();
            return Err(Refusal::Unreachable { node: to.to_string(), reason });
        }
        let Some(member) = node.member(to) else {
            let reason = "it is not in the cluster".to_owned();
            return Err(Refusal::Unreachable { node: to.to_string(), reason });
        };
        let lane = WireLane::User { shard: self.index(), shards: node.shards().len() as u16 };
        let body = HelloBody::new(&node.config().cluster, node.me().0, node.name(), lane).expecting(to.0);
        let now = self.now();
        let body = body.giving(Flow::hello(now));
        let connecting = open(node.world().clone(), node.links().clone(), member.address.clone(), Hello::new(body));
        let mut lanes = self.lanes.borrow_mut();
        let id = lanes.insert(|flag| Lane {
            peer: to,
            peer_name: member.name.clone(),
            dialled: true,
            caller: None,
            link: Link::Connecting(connecting),
            out: BytesMut::new(),
            flow: Flow::dialled(now),
            input: BytesMut::new(),
            decoder: Decoder::default(),
            routes_out: RouteEncoder::new(),
            routes_in: RouteTable::new(),
            flag,
            unflushed: false,
            flush_len: super::FLUSH_LEN,
            early: Default::default(),
            forwarded: VecDeque::new(),
            heard: now,
            pinged: now,
            farewell: Default::default(),
            streams: false,
        });
        lanes.dialled.insert(to, id);
        lanes.next_look.get_or_insert(now + super::QUIET);
        Ok(id)
    }

    /// Drives an attempt at a connection. On an error, whether it had been open, and why it failed.
    pub(super) fn poll_dial(&self, id: LaneId, context: &mut Context<'_>) -> Poll<Result<(), (bool, String)>> {
        let mut lanes = self.lanes.borrow_mut();
        let Some(lane) = lanes.lane(id) else { return Poll::Pending };
        let opened = match &mut lane.link {
            Link::Open(_) => return Poll::Ready(Ok(())),
            Link::Closed => return Poll::Pending,
            Link::Connecting(connecting) => match connecting.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(opened)) => opened,
                Poll::Ready(Err(error)) => return Poll::Ready(Err((false, error.to_string()))),
            },
        };
        let Met { stream, decoder, input } = opened.met;
        lane.link = Link::Open(stream);
        lane.flow.sending = Sending::new(opened.window);
        lane.let_go();
        (lane.decoder, lane.input) = (decoder, input);
        lane.heard = self.now();
        drop(lanes);
        Poll::Ready(self.receive(id).map_err(|reason| (true, reason)))
    }

    /// Takes over a connection that another node opened.
    pub(in crate::shard) fn adopt(&self, stream: Box<dyn Stream>, greeted: Greeted) {
        let stream = match stream.rebind() {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(peer = %greeted.peer_name, %error, "a connection could not be taken over");
                return;
            }
        };
        let now = self.now();
        let mut lanes = self.lanes.borrow_mut();
        lanes.insert(|flag| Lane {
            peer: greeted.peer,
            peer_name: greeted.peer_name,
            dialled: false,
            caller: Some(greeted.shard),
            link: Link::Open(stream),
            out: BytesMut::new(),
            flow: Flow::accepted(greeted.flow, now),
            input: greeted.input,
            decoder: greeted.decoder,
            routes_out: RouteEncoder::new(),
            routes_in: RouteTable::new(),
            flag,
            unflushed: false,
            flush_len: super::FLUSH_LEN,
            early: Default::default(),
            forwarded: VecDeque::new(),
            heard: now,
            pinged: now,
            farewell: Default::default(),
            streams: false,
        });
        lanes.next_look.get_or_insert(now + super::QUIET);
    }
}

/// Connects, and exchanges hellos within [`OPEN_TIMEOUT`].
fn open(world: Arc<dyn World>, links: Arc<Links>, address: String, hello: Hello) -> BoxFuture<io::Result<Opened>> {
    let timeout = world.sleep_until(world.now() + OPEN_TIMEOUT);
    Box::pin(async move {
        let opening = async {
            let answered = dial_node(&*world, &links, &address, &hello, Decoder::default()).await?;
            let window = answered.hello.body.flow.map(|flow| flow.window);
            Ok(Opened { met: answered.met, window })
        };
        within(timeout, opening).await
    })
}

/// A connection that is not heard of keeps nobody's time.
const _: () = assert!(OPEN_TIMEOUT.as_secs() < super::SILENCE_MAX.as_secs());
