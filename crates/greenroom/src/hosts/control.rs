//! A host's control lane: who it is, what it offers, and how long it may act.
//!
//! It runs on the node's door stage, never behind user traffic. What comes on it is told the machine of the control plane, which says
//! what is answered, and when the host may act no more.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Buf, BytesMut};
use greenroom_describe::Description;
use greenroom_protocols::host::{Close, ControlAction, ControlEvent, NotAllowed, Offer, Shard, Verdict};
use greenroom_wire::host::{
    Closing, FRAME_LEN_MAX, FromHost, FromNode, Hello, OfferMap, OfferStatus, Secret, Welcome, WelcomeMap,
};
use tokio::sync::mpsc;

use super::Hosts;
use super::greeting::{Ended, Line, Peer};
use super::plane::{Host, SESSIONS_MAX};
use super::reads::Reads;
use super::session::{FromShard, Session, Told};
use super::settings::HostsConfig;
use crate::here::Here;
use crate::observe::events::Happened;

/// A session, from its Hello to its end.
///
/// # Errors
/// Why there is none.
pub(super) async fn reside(here: &Arc<Here>, line: &mut Line, hello: Hello, peer: Peer) -> Result<(), Ended> {
    let version = hello.version().ok_or_else(|| {
        let versions = &greenroom_wire::host::VERSIONS;
        (
            Closing::NotLetIn,
            format!("this node speaks versions {} to {} of the host protocol", versions.min, versions.max),
        )
    })?;
    let reads = Reads::of(&hello.map.codecs).ok_or_else(|| {
        let reason = format!(
            "the Hello names the codecs {:?}; name those that the host reads: 1 is MessagePack, 2 is JSON",
            hello.map.codecs
        );
        (Closing::NotLetIn, reason)
    })?;
    let hosts = here.part::<Hosts>();
    let ended = hello.map.ended.as_ref().and_then(|ended| hosts.known(ended.session, ended.secret));
    let ended = ended.map(|ended| ended.id());
    if !here.fence_open() || here.is_draining() {
        if let Some(session) = ended {
            hosts.tell(here, ControlEvent::Goodbye { session });
        }
        return Err((Closing::Stopping, "the node is not in the cluster, or about to leave it".to_owned()));
    }
    let (secret, shards) = (Secret(secret(here)), here.shards().len().min(hello.map.lanes.max(1) as usize) as u16);
    let (told, mut tells) = mpsc::unbounded_channel();
    let begun = hosts.begin(|number| {
        let session = Session::new(number, &hello.map, (reads, shards), peer.visa.clone(), told);
        Host { session, secret, from: peer.from.clone(), since: here.wall() }
    });
    let session = begun
        .ok_or_else(|| (Closing::NotLetIn, format!("there are {SESSIONS_MAX} sessions here, which is the most")))?;
    // What it may not offer, it need not describe: nothing is kept of that.
    let allowed = hello.map.offers.iter().filter(|offer| may_offer(&here.config().hosts, &peer, &offer.kind));
    let mut unknown: BTreeSet<String> = allowed.map(|offer| offer.digest.clone()).collect();
    unknown.retain(|digest| hosts.offers(|offers| offers.shown(digest).is_none()));
    let (id, bounds) = (session.id(), session.bounds());
    hosts.tell(here, ControlEvent::Connected { session: id });
    hosts.tell(here, ControlEvent::Hello { session: id, ended, bounds });
    let here = here.clone();
    let mut control = Control {
        here,
        version,
        secret,
        hello,
        session,
        unknown,
        misdescribed: BTreeMap::new(),
        answers: None,
        refused: BTreeMap::new(),
        has_come: false,
    };
    let (code, reason) = control.live(line, &mut tells, &peer).await;
    tracing::info!(host = control.session.name, from = peer.from, reason, "a host's session is over");
    control.tell_of_end(code, &reason, &peer);
    let _ = line.say(&FromNode::Goodbye { code, reason: &reason }).await;
    tokio::join!(line.close(), control.outlive(tells, peer));
    Ok(())
}

struct Control {
    here: Arc<Here>,
    version: u16,
    secret: Secret,
    hello: Hello,
    session: Arc<Session>,
    /// Digests whose descriptions have not been shown yet.
    unknown: BTreeSet<String>,
    /// What is wrong with those that are no descriptions, by the digests of their offers.
    misdescribed: BTreeMap<String, String>,
    /// What it is to be told of its offers, once the cluster knows what was taken of them.
    answers: Option<Answers>,
    /// Why offers are refused, by their indices: what stands in their way may go.
    refused: BTreeMap<u32, String>,
    /// Whether something of it was taken.
    has_come: bool,
}

/// What a host is told of its offers.
struct Answers {
    /// Offers that are not judged yet.
    left: usize,
    /// What was taken.
    taken: Vec<(String, u16)>,
    frames: BytesMut,
}

impl Answers {
    fn to(left: usize) -> Self {
        Self { left, taken: Vec::new(), frames: BytesMut::new() }
    }
}

impl Control {
    fn tell(&self, event: ControlEvent) {
        self.here.part::<Hosts>().tell(&self.here, event);
    }

    async fn live(&mut self, line: &mut Line, tells: &mut mpsc::UnboundedReceiver<Told>, peer: &Peer) -> Ended {
        let here = self.here.clone();
        let mut viewed = here.part::<Hosts>().viewed.subscribe();
        let mut withdrawn: Pin<Box<dyn Future<Output = String> + Send + '_>> = match &peer.visa {
            Some(visa) => visa.withdrawn(),
            None => Box::pin(std::future::pending()),
        };
        let broken = loop {
            if let Err(reason) = self.frames(line, peer) {
                break reason;
            }
            if let Err(error) = self.answer(line, peer).await {
                break error.to_string();
            }
            tokio::select! {
                read = line.read() => if let Err(error) = read {
                    break error.to_string();
                },
                told = tells.recv() => match told {
                    Some(told) => match self.hear(line, told, peer).await {
                        Ok(None) => {}
                        Ok(Some(ended)) => return ended,
                        Err(error) => break error.to_string(),
                    },
                    None => break "its session is over".to_owned(),
                },
                why = &mut withdrawn => {
                    self.tell(ControlEvent::Broken { session: self.session.id() });
                    // If it comes again, the door says what it is let in for.
                    return (Closing::Fenced, why);
                }
                _ = viewed.changed(), if self.answers.is_some() => self.look_again(peer),
                _ = here.halted() => {
                    // What the host has is dropped when its lane ends.
                    self.tell(ControlEvent::Goodbye { session: self.session.id() });
                    return (Closing::Stopping, "the node has stopped".to_owned());
                }
            }
        };
        self.tell(ControlEvent::Broken { session: self.session.id() });
        (Closing::BadFrame, broken)
    }

    /// Waits until the host may act no more.
    async fn outlive(&self, mut tells: mpsc::UnboundedReceiver<Told>, peer: Peer) {
        let is_watched = peer.process.is_some();
        let mut process = peer.process;
        loop {
            let gone = async {
                match &process {
                    Some(process) => process.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                told = tells.recv() => if let None | Some(Told::Over) = told {
                    // Of a process that is not watched, a lost connection is all that tells. An error means that it is known.
                    let _ = self.session.died.set(!is_watched);
                    return;
                },
                () = gone => {
                    process = None;
                    // Nothing else has said so before.
                    let _ = self.session.died.set(true);
                    self.tell(ControlEvent::ProcessGone { session: self.session.id() });
                }
                _ = self.here.halted() => return,
            }
        }
    }

    /// Handles the whole frames that have come.
    fn frames(&mut self, line: &mut Line, peer: &Peer) -> Result<(), String> {
        loop {
            let input = std::mem::take(&mut line.input);
            let mut rest = &input[..];
            let frame = line.decoder.next::<FromHost<'_>>(&mut rest).map_err(|error| error.to_string())?;
            let consumed = input.len() - rest.len();
            let Some(frame) = frame else {
                line.input = input;
                return Ok(());
            };
            let taken = self.take(frame, peer);
            line.input = input;
            line.input.advance(consumed);
            taken?;
        }
    }

    fn take(&mut self, frame: FromHost<'_>, peer: &Peer) -> Result<(), String> {
        let session = self.session.id();
        match frame {
            FromHost::Alive { number } => self.tell(ControlEvent::Alive { session, number }),
            FromHost::Describe { kind, version, json } => self.show(kind, version, json, peer)?,
            FromHost::Drain => self.tell(ControlEvent::Drain { session }),
            FromHost::LaneDropped { shard } => self.tell(ControlEvent::LaneDropped { session, shard: Shard(shard) }),
            FromHost::Goodbye { .. } => self.tell(ControlEvent::Goodbye { session }),
            FromHost::Unknown { .. } => {}
            _ => return Err("a frame of user lanes came on a control lane".to_owned()),
        }
        Ok(())
    }

    /// Takes in a description that was asked for.
    fn show(&mut self, kind: &str, version: u16, json: &[u8], peer: &Peer) -> Result<(), String> {
        let description = match Description::read(json) {
            Ok(description) => description,
            Err(error) => {
                // Its other offers stand.
                let mut offers = self.hello.map.offers.iter();
                let offer = offers.find(|offer| offer.kind == kind && offer.version == version);
                let digest = offer.map(|offer| offer.digest.clone()).filter(|digest| self.unknown.remove(digest));
                let digest = digest.ok_or_else(|| format!("the description of {kind:?}: {error}"))?;
                self.misdescribed.insert(digest, error.to_string());
                self.describe(peer);
                return Ok(());
            }
        };
        let digest = description.digest().to_string();
        if !self.unknown.remove(&digest) {
            return Err(format!(
                "the description of {kind:?} version {version} has the digest {digest}, which no offer of this session has"
            ));
        }
        self.here.part::<Hosts>().offers(|offers| offers.show(description));
        self.describe(peer);
        Ok(())
    }

    /// Has the offers judged, once all of them are described.
    fn describe(&mut self, peer: &Peer) {
        if !self.unknown.is_empty() || self.answers.is_some() {
            return;
        }
        self.answers = Some(Answers::to(self.hello.map.offers.len()));
        for (at, offered) in self.hello.map.offers.iter().enumerate() {
            self.offer(at, offered, peer);
        }
    }

    /// Has refused offers judged again, as the cluster has changed.
    fn look_again(&mut self, peer: &Peer) {
        let is_leaving = self.session.draining.load(Ordering::Acquire);
        let Some(answers) = self.answers.as_mut().filter(|answers| answers.left == 0 && !is_leaving) else { return };
        answers.left = self.refused.len();
        for at in self.refused.keys() {
            let at = *at as usize;
            self.offer(at, &self.hello.map.offers[at], peer);
        }
    }

    fn offer(&self, at: usize, offered: &OfferMap, peer: &Peer) {
        let hosts = self.here.part::<Hosts>();
        let kind: Arc<str> = offered.kind.as_str().into();
        let mut offer = Offer {
            kind: kind.clone(),
            versions: greenroom_protocols::versions::Offer { version: offered.version, compatible: offered.compatible },
            digest: offered.digest.as_str().into(),
        };
        let taken = match (may_offer(&self.here.config().hosts, peer, &kind), self.misdescribed.get(&offered.digest)) {
            (true, Some(why)) => Err(NotAllowed::Description { kind, why: why.as_str().into() }),
            (true, None) => hosts
                .offers(|offers| offers.take(&self.here, (self.session.number, self.session.shards), offered))
                .map_err(|why| NotAllowed::Description { kind, why: why.into() }),
            (false, _) => Err(NotAllowed::NotYours(kind)),
        };
        let allowed = taken.map(|(taken, digest)| {
            // Descriptions without a difference stand for each other.
            offer.digest = digest.into();
            let _ = self.session.offers[at].set(taken);
        });
        let (session, index) = (self.session.id(), at as u32);
        self.tell(ControlEvent::Offer { session, index, offer, allowed, claimed: None });
    }

    /// Answers the offers, if this node's view of the cluster has what was taken of them: who hears the answer may call at once.
    async fn answer(&mut self, line: &mut Line, peer: &Peer) -> io::Result<()> {
        let Some(answers) = self.answers.as_ref().filter(|answers| answers.left == 0 && !answers.frames.is_empty())
        else {
            return Ok(());
        };
        let view = self.here.view();
        let here = view.member(self.here.me()).map(|member| &member.kinds[..]).unwrap_or_default();
        let knows =
            |(name, version): &(String, u16)| here.iter().any(|kind| kind.name == *name && kind.version >= *version);
        if !answers.taken.iter().all(knows) {
            return Ok(());
        }
        line.write(&answers.frames).await?;
        if !answers.taken.is_empty() {
            let kinds = answers.taken.iter().map(|(kind, version)| format!("{kind} {version}")).collect();
            self.has_come = true;
            let (host, from) = (self.session.name.clone(), peer.from.clone());
            self.here.happened(Happened::HostCame { host, from, kinds });
        }
        self.answers = Some(Answers::to(0));
        Ok(())
    }

    fn tell_of_end(&self, code: Closing, why: &str, peer: &Peer) {
        if self.has_come {
            let (host, from, why) = (self.session.name.clone(), peer.from.clone(), why.to_owned());
            let by_itself = matches!(code, Closing::Done | Closing::Stopping);
            self.here.happened(Happened::HostGone { host, from, why, by_itself });
        }
    }

    /// Hears what the machine or a shard says; how the session has ended, if so.
    async fn hear(&mut self, line: &mut Line, told: Told, peer: &Peer) -> io::Result<Option<Ended>> {
        let session = self.session.id();
        match told {
            Told::Shard(FromShard::LaneLost(shard)) => {
                self.tell(ControlEvent::LaneBroken { session, shard: Shard(shard.into()) });
            }
            Told::Shard(FromShard::Drained(shard)) => {
                self.tell(ControlEvent::Drained { session, shard: Shard(shard.into()) });
            }
            Told::Over => return Ok(Some((Closing::Done, "its session is over".to_owned()))),
            Told::Plane(ControlAction::Welcome { lease, .. }) => {
                let (cluster, node, ms) = (&*self.here.config().cluster, self.here.me().0, lease.as_millis() as u64);
                let mut map = WelcomeMap::new(cluster, node, self.session.number, self.secret, ms);
                map.shards = (0..u32::from(self.session.shards)).collect();
                map.rerun = self.here.config().reliable.rerun;
                map.unknown = self.unknown.iter().cloned().collect();
                line.say(&FromNode::Welcome(Welcome { version: self.version, map })).await?;
                self.describe(peer);
            }
            Told::Plane(ControlAction::Lease { number, lease, .. }) => {
                line.say(&FromNode::Lease { number, ms: lease.as_millis() as u64 }).await?;
            }
            Told::Plane(ControlAction::LaneLost { shard, .. }) => {
                line.say(&FromNode::LaneLost { shard: shard.0 }).await?;
            }
            Told::Plane(ControlAction::Offered { index, verdict, .. }) => self.judged(index, &verdict)?,
            Told::Plane(ControlAction::Close { why, .. }) => return Ok(Some(goodbye(why))),
            Told::Plane(ControlAction::Tell(_) | ControlAction::Row { .. }) => {}
        }
        Ok(None)
    }

    fn judged(&mut self, index: u32, verdict: &Verdict) -> io::Result<()> {
        let offered = self.hello.map.offers.get(index as usize);
        let (Some(answers), Some(offered)) = (&mut self.answers, offered) else { return Ok(()) };
        let (host, kind) = (&self.session.name, &offered.kind);
        let (status, reason) = match verdict {
            Verdict::Taken => (OfferStatus::Taken, String::new()),
            Verdict::TakenInPlace => (OfferStatus::TakenInPlace, String::new()),
            Verdict::Refused(refusal) => (OfferStatus::Refused, refusal.to_string()),
        };
        match status {
            OfferStatus::Refused => {
                self.here.part::<Hosts>().offers(|offers| offers.refuse(self.session.number, kind));
                answers.left -= 1;
                if self.refused.insert(index, reason.clone()).is_some_and(|before| before == reason) {
                    return Ok(());
                }
                tracing::warn!(host, kind, reason, "a host's offer is refused");
                let (host, kind, why) = (host.clone(), kind.clone(), reason.clone());
                self.here.happened(Happened::HostRefused { host, kind, why });
            }
            _ => {
                answers.left -= 1;
                self.refused.remove(&index);
                tracing::info!(host, kind, version = offered.version, "a host offers a kind");
                answers.taken.push((kind.clone(), offered.version));
            }
        }
        let frame = FromNode::Offered { offer: index, kind, status, reason: &reason };
        frame.write(&mut answers.frames, FRAME_LEN_MAX).map_err(io::Error::other)
    }
}

fn may_offer(config: &HostsConfig, peer: &Peer, kind: &str) -> bool {
    peer.is_local || config.allows(peer.principal(), kind)
}

/// What a host is told at the end.
fn goodbye(why: Close) -> Ended {
    let (code, reason) = match why {
        Close::Done => (Closing::Done, "it is done, or all its seats are left"),
        Close::Silent => (Closing::NotLetIn, "it said no Hello in time"),
        Close::LeaseOver => (Closing::LeaseOver, "its lease is over"),
        Close::Broken => {
            (Closing::BadFrame, "its control lane is broken, its process is gone, or it has begun another session")
        }
        Close::Fenced => (Closing::Fenced, "the node's own lease is over"),
    };
    (code, reason.to_owned())
}

fn secret(here: &Here) -> [u8; 16] {
    let (one, other) = (here.world().random(), here.world().random());
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&one.to_le_bytes());
    secret[8..].copy_from_slice(&other.to_le_bytes());
    secret
}
