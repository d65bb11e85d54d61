//! A host's control lane: who it is, what it offers, and how long it may act.
//!
//! It runs on the node's door stage, never behind user traffic. When it breaks, the session is lost and never comes back; its seats
//! are held until the host has said that it dropped them, its process is known to be gone, or its lease is over by this
//! node's clock.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Buf, BytesMut};
use greenroom_describe::Description;
use greenroom_protocols::host::{SessionId, Shard, Word};
use greenroom_wire::host::{
    Closing, FRAME_LEN_MAX, FromHost, FromNode, Hello, OfferStatus, Secret, Welcome, WelcomeMap,
};
use greenroom_world::Timestamp;
use tokio::sync::mpsc;

use super::greeting::{Ended, Line, Peer};
use super::offers::Taken;
use super::on_shard::OnShard;
use super::session::{FromShard, Session};
use super::{Host, Hosts};
use crate::here::Here;
use crate::shard::Item;

/// A session, from its Hello to its end.
pub(super) async fn reside(here: &Arc<Here>, line: &mut Line, hello: Hello, peer: Peer) -> Result<(), Ended> {
    let version = hello.version().ok_or_else(|| {
        let versions = &greenroom_wire::host::VERSIONS;
        (
            Closing::NotLetIn,
            format!("this node speaks versions {} to {} of the host protocol", versions.min, versions.max),
        )
    })?;
    let hosts = here.part::<Hosts>();
    if let Some(ended) = hello.map.ended {
        hosts.dropped(ended.session, ended.secret);
    }
    if !here.fence_open() || here.is_draining() {
        return Err((Closing::Stopping, "the node is not in the cluster, or about to leave it".to_owned()));
    }
    let secret = Secret(secret(here));
    let number = hosts.begin(secret).ok_or_else(|| {
        (Closing::NotLetIn, format!("there are {} sessions here, which is the most", super::SESSIONS_MAX))
    })?;
    let shards = here.shards().len().min(hello.map.lanes.max(1) as usize) as u16;
    let mut unknown: BTreeSet<String> = hello.map.offers.iter().map(|offer| offer.digest.clone()).collect();
    unknown.retain(|digest| !hosts.offers(|offers| offers.shown(digest).is_some()));
    let lease = hosts.lease(here);
    let mut map = WelcomeMap::new(&*here.config().cluster, here.me().0, number, secret, lease.as_millis() as u64);
    map.shards = (0..u32::from(shards)).collect();
    map.unknown = unknown.iter().cloned().collect();
    let (told, tells) = mpsc::unbounded_channel();
    let heard = here.world().now();
    if let Err(error) = line.say(&FromNode::Welcome(Welcome { version, map })).await {
        hosts.close(number);
        return Err((Closing::BadFrame, error.to_string()));
    }
    let mut control = Control {
        here: here.clone(),
        number,
        hello,
        shards,
        unknown,
        told,
        session: None,
        answers: None,
        until: heard + lease,
        lost: BTreeSet::new(),
        drained: BTreeSet::new(),
        leaving: false,
    };
    let ended = control.live(line, tells, &peer).await;
    control.end(ended, peer).await
}

struct Control {
    here: Arc<Here>,
    number: u64,
    hello: Hello,
    shards: u16,
    /// Digests whose descriptions have not been shown yet.
    unknown: BTreeSet<String>,
    told: mpsc::UnboundedSender<FromShard>,
    /// Once its offers are judged.
    session: Option<Arc<Session>>,
    /// What it is to be told of its offers, once the cluster knows what was taken of them.
    answers: Option<Answers>,
    /// Until when the host may act, by this node's clock.
    until: Timestamp,
    /// Lanes whose seats the host has not yet dropped, with the time by which it must.
    lost: BTreeSet<u16>,
    drained: BTreeSet<u16>,
    leaving: bool,
}

/// What a host is told of its offers.
struct Answers {
    taken: Vec<Taken>,
    frames: BytesMut,
}

/// How a session ended.
enum End {
    /// The host has said so, or has nothing left here: its seats are free.
    Over(Ended),
    /// The lane broke: the host may still act.
    Lost(String),
}

impl Control {
    async fn live(&mut self, line: &mut Line, mut tells: mpsc::UnboundedReceiver<FromShard>, peer: &Peer) -> End {
        if let Err(error) = self.describe(peer) {
            return End::Lost(error.to_string());
        }
        let world = self.here.world().clone();
        let here = self.here.clone();
        let mut viewed = here.part::<Hosts>().viewed.subscribe();
        loop {
            match self.frames(line, peer).await {
                Ok(None) => {}
                Ok(Some(ended)) => return ended,
                Err(error) => return End::Lost(error.to_string()),
            }
            if let Err(error) = self.answer(line).await {
                return End::Lost(error.to_string());
            }
            if world.now() >= self.until {
                return End::Lost("its lease is over".to_owned());
            }
            let stopping = async {
                // What the host has is dropped when its lane ends.
                here.halted().await;
            };
            tokio::select! {
                read = line.read() => if let Err(error) = read {
                    return End::Lost(error.to_string());
                },
                told = tells.recv() => if let Some(told) = told
                    && let Some(ended) = self.hear(line, told).await
                {
                    return ended;
                },
                _ = viewed.changed(), if self.answers.is_some() => {}
                () = world.sleep_until(self.until) => {}
                () = stopping => return End::Over((Closing::Stopping, "the node has stopped".to_owned())),
            }
        }
    }

    /// Handles the whole frames that have come.
    async fn frames(&mut self, line: &mut Line, peer: &Peer) -> io::Result<Option<End>> {
        loop {
            let input = std::mem::take(&mut line.input);
            let mut rest = &input[..];
            let frame = line.decoder.next::<FromHost<'_>>(&mut rest).map_err(io::Error::other)?;
            let consumed = input.len() - rest.len();
            let Some(frame) = frame else {
                line.input = input;
                return Ok(None);
            };
            let mut out = BytesMut::new();
            let judged = self.take(frame, &mut out);
            line.input = input;
            line.input.advance(consumed);
            if !out.is_empty() {
                line.write(&out).await?;
            }
            match judged {
                Ok(Step::On) => {}
                Ok(Step::Described) => self.describe(peer)?,
                Ok(Step::Ended(end)) => return Ok(Some(end)),
                Err(reason) => {
                    let _ = line.say(&FromNode::Goodbye { code: Closing::BadFrame, reason: &reason }).await;
                    return Ok(Some(End::Lost(reason)));
                }
            }
        }
    }

    fn take(&mut self, frame: FromHost<'_>, out: &mut BytesMut) -> Result<Step, String> {
        match frame {
            FromHost::Alive { number } => {
                let lease = self.here.part::<Hosts>().lease(&self.here);
                // A host that does not drop what it has lost is let act no longer.
                if !lease.is_zero() && self.lost.is_empty() {
                    self.until = self.here.world().now() + lease;
                    let ms = lease.as_millis() as u64;
                    FromNode::Lease { number, ms }.write(out, FRAME_LEN_MAX).map_err(|error| error.to_string())?;
                }
                Ok(Step::On)
            }
            FromHost::Describe { kind, version, json } => self.show(kind, version, json),
            FromHost::Drain => {
                self.drain();
                Ok(Step::On)
            }
            FromHost::LaneDropped { shard } => {
                let shard = u16::try_from(shard).unwrap_or(u16::MAX);
                if self.lost.remove(&shard) {
                    if let Some(session) = &self.session {
                        let word = Word::Dropped { session: SessionId(self.number), shard: Shard(shard.into()) };
                        self.tell(session, &word);
                    }
                    return Ok(Step::On);
                }
                Err(format!("LaneDropped names shard {shard}, whose lane is not lost"))
            }
            FromHost::Goodbye { code, reason } => {
                let reason = if reason.is_empty() { format!("the host is done ({code:?})") } else { reason.to_owned() };
                Ok(Step::Ended(End::Over((Closing::Done, reason))))
            }
            FromHost::Unknown { .. } => Ok(Step::On),
            _ => Err("a frame of user lanes came on a control lane".to_owned()),
        }
    }

    /// Takes in a description that was asked for.
    fn show(&mut self, kind: &str, version: u16, json: &[u8]) -> Result<Step, String> {
        let description = Description::read(json).map_err(|error| format!("the description of {kind:?}: {error}"))?;
        let digest = description.digest().to_string();
        if !self.unknown.remove(&digest) {
            return Err(format!(
                "the description of {kind:?} version {version} has the digest {digest}, which no offer of this session has"
            ));
        }
        self.here.part::<Hosts>().offers(|offers| offers.show(description));
        Ok(if self.unknown.is_empty() { Step::Described } else { Step::On })
    }

    /// Judges the offers, once all of them are described.
    fn describe(&mut self, peer: &Peer) -> io::Result<()> {
        if !self.unknown.is_empty() || self.session.is_some() {
            return Ok(());
        }
        let hosts = self.here.part::<Hosts>();
        let roles: Vec<&str> = peer.roles.iter().map(String::as_str).collect();
        let mut judged: Vec<(Option<Taken>, OfferStatus, String)> = Vec::new();
        for offer in &self.hello.map.offers {
            let allowed = peer.is_local || self.here.config().hosts.allows(&roles, &offer.kind);
            let taken = match allowed {
                true => hosts.offers(|offers| offers.take(&self.here, self.number, offer)),
                false => Err(format!("no rule of `hosts.allow` lets {roles:?} offer {:?}", offer.kind)),
            };
            judged.push(match taken {
                Ok((taken, status)) => (Some(taken), status, String::new()),
                Err(reason) => (None, OfferStatus::Refused, reason),
            });
        }
        let offers = judged.iter().map(|(taken, ..)| taken.clone()).collect();
        let session = Session::new(self.number, &self.hello.map, self.shards, offers, self.told.clone());
        self.session = Some(session.clone());
        let host = Host { session: session.clone(), from: peer.from.clone(), since: self.here.wall() };
        hosts.open(host);
        let mut out = BytesMut::new();
        for (at, (offer, (_, status, reason))) in self.hello.map.offers.iter().zip(&judged).enumerate() {
            let (name, kind) = (&session.name, &offer.kind);
            match status {
                OfferStatus::Refused => tracing::warn!(host = name, kind, reason, "a host's offer is refused"),
                _ => tracing::info!(host = name, kind, version = offer.version, "a host offers a kind"),
            }
            let offered = FromNode::Offered { offer: at as u32, kind, status: *status, reason };
            offered.write(&mut out, FRAME_LEN_MAX).map_err(io::Error::other)?;
        }
        session.words().into_iter().for_each(|word| self.tell(&session, &word));
        let taken = judged.into_iter().filter_map(|(taken, ..)| taken).collect();
        self.answers = Some(Answers { taken, frames: out });
        Ok(())
    }

    /// Answers the offers, if this node's view of the cluster has what was taken of them: who hears the answer may call at once.
    async fn answer(&mut self, line: &mut Line) -> io::Result<()> {
        let Some(answers) = &self.answers else { return Ok(()) };
        let view = self.here.view();
        let knows = |taken: &Taken| {
            let here = view.member(self.here.me()).map(|member| &member.kinds[..]).unwrap_or_default();
            here.iter().any(|kind| kind.name == taken.kind.name() && kind.version >= taken.offer.version)
        };
        if answers.taken.iter().all(knows) {
            line.write(&answers.frames).await?;
            self.answers = None;
        }
        Ok(())
    }

    /// Hears what a shard says.
    async fn hear(&mut self, line: &mut Line, told: FromShard) -> Option<End> {
        match told {
            FromShard::LaneLost(shard) => {
                if self.session.as_ref().is_none_or(|session| session.is_lost()) {
                    return None;
                }
                self.lost.insert(shard);
                let said = line.say(&FromNode::LaneLost { shard: shard.into() }).await;
                said.err().map(|error| End::Lost(error.to_string()))
            }
            FromShard::Drained(shard) => {
                self.drained.insert(shard);
                let all = self.leaving && self.drained.len() >= self.here.shards().len();
                all.then(|| End::Over((Closing::Done, "all its seats are left".to_owned())))
            }
        }
    }

    fn drain(&mut self) {
        self.leaving = true;
        let Some(session) = self.session.clone() else { return };
        tracing::info!(host = session.name, seats = session.seats.load(Ordering::Relaxed), "a host drains");
        session.draining.store(true, Ordering::Release);
        self.here.part::<Hosts>().withdraw(&self.here, session.number);
        self.tell(&session, &Word::Draining { session: SessionId(self.number) });
    }

    /// Tells the shards that it is about.
    fn tell(&self, session: &Arc<Session>, word: &Word) {
        for (index, port) in self.here.shards().iter().enumerate() {
            if let Word::Dropped { shard, .. } = word
                && shard.0 as usize != index
            {
                continue;
            }
            let (session, word) = (session.clone(), word.clone());
            let _ = port.push(Item::Run(Box::new(move |shard| OnShard::of(shard).hear(shard, &session, word))));
        }
    }

    /// What follows a session's end: its seats are free once the host may not act any more.
    async fn end(self, end: End, peer: Peer) -> Result<(), Ended> {
        let hosts = self.here.part::<Hosts>();
        if let Some(session) = &self.session {
            session.lost.store(true, Ordering::Release);
        }
        hosts.withdraw(&self.here, self.number);
        let (ended, over) = match end {
            End::Over(ended) => (ended, true),
            End::Lost(reason) => ((Closing::BadFrame, reason), false),
        };
        if let Some(session) = self.session.clone() {
            self.tell(&session, &Word::Lost { session: SessionId(self.number) });
            if !over {
                let world = self.here.world().clone();
                let late = world.sleep_until(self.until + self.until.since(world.now()) / DRIFT);
                let gone = async {
                    match &peer.process {
                        Some(process) => process.ended().await,
                        None => std::future::pending().await,
                    }
                };
                let dropped = hosts.dropping(self.number);
                tokio::select! {
                    () = late => {}
                    () = gone => {}
                    () = dropped => {}
                }
            }
            self.tell(&session, &Word::Over { session: SessionId(self.number) });
            tracing::info!(host = session.name, session = self.number, reason = ended.1, "a host is gone");
        }
        hosts.close(self.number);
        if over { Err(ended) } else { Ok(()) }
    }
}

enum Step {
    On,
    /// All descriptions have been shown.
    Described,
    Ended(End),
}

fn secret(here: &Here) -> [u8; 16] {
    let (one, other) = (here.world().random(), here.world().random());
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&one.to_le_bytes());
    secret[8..].copy_from_slice(&other.to_le_bytes());
    secret
}

/// A lease is taken for over so much of its length later than the host is to take it for over.
const DRIFT: u32 = 100;
