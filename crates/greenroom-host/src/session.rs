//! One session: its control lane, and the lanes that it joins.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use greenroom_protocols::host::Pulse;
use greenroom_wire::FrameError;
use greenroom_wire::host::{
    Closing, Decoder, Ended, FRAME_LEN_MAX, FromHost, FromNode, Hello, HelloMap, OfferMap, OfferStatus, Welcome,
};
use greenroom_world::{Stage, World};
use thiserror::Error;
use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::watch;

use crate::cx::Cx;
use crate::lane::{self, Lane};
use crate::outbox::Outbox;
use crate::{Connection, Dial, Host, Kind};

/// Why a session did not come about, or broke off.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The node cannot be reached. Nothing has run; try again.
    #[error("the node cannot be reached: {0}; start one, or name its socket")]
    Connect(#[from] io::Error),
    /// The connection broke, or the node said what is none of the protocol. All was dropped; dial again.
    #[error("the control lane has broken: {0}")]
    Broken(String),
    /// The node does not let the host in. Dialing again would not change that.
    #[error("the node does not let this host in: {0}")]
    NotLetIn(String),
    /// The node refuses a kind. Dialing again would not change that.
    #[error("kind \"{kind}\" is refused: {reason}")]
    Refused {
        /// The kind.
        kind: String,
        /// Why.
        reason: String,
    },
}

pub(crate) async fn run(
    host: &Host,
    world: Arc<dyn World>,
    dial: &Dial,
    ended: &mut Option<Ended>,
    welcomed: impl FnOnce(Cx) + Send,
) -> Result<Closing, Error> {
    let (mut read, write) = tokio::io::split(dial().await?);
    let outbox = Arc::new(Outbox::new(FRAME_LEN_MAX, 0));
    let hello_sent = world.now();
    let hello = FromHost::Hello(Hello::new(hello(host, ended.take())));
    outbox.send(&hello).map_err(|error| Error::NotLetIn(error.to_string()))?;
    let drained = outbox.clone();
    world.spawn(Stage::Control, Box::pin(async move { drained.drain(write).await }));
    let mut incoming = Incoming { decoder: Decoder::new(FRAME_LEN_MAX), buffer: BytesMut::new() };
    let welcome = greeted(&mut incoming, &mut read).await?;
    incoming.decoder.set_frame_len_max(welcome.map.frame_len_max);
    let pulse = Pulse::new(hello_sent, Duration::from_millis(welcome.map.lease_ms));
    let mut session = Session {
        world,
        dial: dial.clone(),
        kinds: host.kinds.clone(),
        pulse: Arc::new(Mutex::new(pulse)),
        outbox,
        lanes: BTreeMap::new(),
        welcome,
        drain: host.drain.clone(),
    };
    let result = session.serve(&mut incoming, &mut read, welcomed).await;
    // Before another Hello all of this session is dropped (L5).
    for (_, lane) in std::mem::take(&mut session.lanes) {
        lane.drop_all().await;
    }
    session.outbox.close();
    *ended = Some(Ended { session: session.welcome.map.session, secret: session.welcome.map.secret });
    result
}

struct Session {
    world: Arc<dyn World>,
    dial: Dial,
    kinds: Vec<Kind>,
    pulse: Arc<Mutex<Pulse>>,
    outbox: Arc<Outbox>,
    lanes: BTreeMap<u32, Lane>,
    welcome: Welcome,
    drain: watch::Receiver<bool>,
}

impl Session {
    async fn serve(
        &mut self,
        incoming: &mut Incoming,
        read: &mut ReadHalf<Box<dyn Connection>>,
        welcomed: impl FnOnce(Cx) + Send,
    ) -> Result<Closing, Error> {
        let unknown: Vec<_> = self.welcome.map.unknown.clone();
        for kind in &self.kinds {
            let description = &kind.description;
            if unknown.contains(&description.digest().to_string()) {
                let json = description.document().to_string();
                let (kind, version) = (&*description.kind, description.version);
                self.send(&FromHost::Describe { kind, version, json: json.as_bytes() })?;
            }
        }
        for shard in self.welcome.map.shards.clone() {
            self.join(shard).await?;
        }
        if let Some(lane) = self.lanes.values().next() {
            welcomed(lane.client());
        }
        let (mut drain, mut is_draining) = (self.drain.clone(), false);
        loop {
            let (due, until) = {
                let pulse = self.pulse.lock().expect("no pulse panics");
                (pulse.due(), pulse.until())
            };
            tokio::select! {
                more = incoming.fill(read) => more?,
                () = self.world.sleep_until(due.min(until)) => {}
                Ok(_) = drain.wait_for(|drain| *drain), if !is_draining => {
                    is_draining = true;
                    self.send(&FromHost::Drain)?;
                }
            }
            let now = self.world.now();
            if !self.pulse.lock().expect("no pulse panics").may_act(now) {
                let _ = self.send(&FromHost::Goodbye { code: Closing::LeaseOver, reason: "the lease is over" });
                return Ok(Closing::LeaseOver);
            }
            if due <= now {
                let number = self.pulse.lock().expect("no pulse panics").send(now);
                self.send(&FromHost::Alive { number })?;
            }
            let bytes = incoming.buffer.split().freeze();
            let mut rest = &bytes[..];
            while let Some(frame) = incoming.decoder.next::<FromNode<'_>>(&mut rest).map_err(broken)? {
                if let Some(closing) = self.take(frame).await? {
                    return Ok(closing);
                }
            }
            incoming.buffer.extend_from_slice(rest);
        }
    }

    /// Takes a frame of the control lane; `Some` if the session ends.
    async fn take(&mut self, frame: FromNode<'_>) -> Result<Option<Closing>, Error> {
        match frame {
            FromNode::Lease { number, ms } => {
                self.pulse.lock().expect("no pulse panics").answered(number, Duration::from_millis(ms));
            }
            FromNode::Offered { kind, status: OfferStatus::Refused, reason, .. } => {
                return Err(Error::Refused { kind: kind.to_owned(), reason: reason.to_owned() });
            }
            FromNode::LaneLost { shard } => {
                if let Some(lane) = self.lanes.remove(&shard) {
                    lane.drop_all().await;
                }
                self.send(&FromHost::LaneDropped { shard })?;
                self.join(shard).await?;
            }
            FromNode::Goodbye { code: Closing::NotLetIn, reason } => return Err(Error::NotLetIn(reason.to_owned())),
            FromNode::Goodbye { code, .. } => return Ok(Some(code)),
            _ => {}
        }
        Ok(None)
    }

    async fn join(&mut self, shard: u32) -> Result<(), Error> {
        let lane = lane::join(lane::Joining {
            world: self.world.clone(),
            dial: self.dial.clone(),
            kinds: self.kinds.clone(),
            pulse: self.pulse.clone(),
            welcome: self.welcome.clone(),
            shard,
        });
        self.lanes.insert(shard, lane.await?);
        Ok(())
    }

    fn send(&self, frame: &FromHost<'_>) -> Result<(), Error> {
        self.outbox.send(frame).map_err(|error| Error::Broken(error.to_string()))
    }
}

/// What has come on a lane.
pub(crate) struct Incoming {
    pub(crate) decoder: Decoder,
    pub(crate) buffer: BytesMut,
}

impl Incoming {
    /// Waits for more bytes. Cancel-safe: what has come stays.
    pub(crate) async fn fill(&mut self, read: &mut ReadHalf<Box<dyn Connection>>) -> Result<(), Error> {
        match read.read_buf(&mut self.buffer).await {
            Ok(0) => Err(Error::Broken("the node has closed it".to_owned())),
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Broken(error.to_string())),
        }
    }
}

async fn greeted(incoming: &mut Incoming, read: &mut ReadHalf<Box<dyn Connection>>) -> Result<Welcome, Error> {
    loop {
        incoming.fill(read).await?;
        let bytes = incoming.buffer.split().freeze();
        let mut rest = &bytes[..];
        let first = incoming.decoder.next::<FromNode<'_>>(&mut rest).map_err(broken)?;
        incoming.buffer.extend_from_slice(rest);
        match first {
            Some(FromNode::Welcome(welcome)) => return Ok(welcome),
            Some(FromNode::Goodbye { code: Closing::Stopping | Closing::Fenced, reason }) => {
                return Err(Error::Broken(reason.to_owned()));
            }
            Some(FromNode::Goodbye { reason, .. }) => return Err(Error::NotLetIn(reason.to_owned())),
            _ => {}
        }
    }
}

fn hello(host: &Host, ended: Option<Ended>) -> HelloMap {
    let mut map = HelloMap::new(&host.name);
    map.sdk = concat!("rust ", env!("CARGO_PKG_VERSION")).to_owned();
    map.ended = ended;
    map.codecs = host.codecs.iter().map(|codec| codec.tag()).collect();
    if host.kinds.iter().any(|kind| kind.description.options.reliable) {
        // Reliable actors are on all shards.
        map.lanes = u32::MAX;
    }
    map.offers = host.kinds.iter().map(|kind| &kind.description).map(offer).collect();
    map
}

fn offer(description: &greenroom_describe::Description) -> OfferMap {
    OfferMap {
        kind: description.kind.clone(),
        version: description.version,
        compatible: description.compatible,
        digest: description.digest().to_string(),
    }
}

pub(crate) fn broken(error: FrameError) -> Error {
    Error::Broken(error.to_string())
}
