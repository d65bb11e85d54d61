//! The control plane of a node's hosts: its machine, and what that has to say to sessions, shards and the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use greenroom_protocols::host::{ControlAction, ControlEvent, Offer, SessionId, Sessions, Settings, Word};
use greenroom_protocols::reminders::Wall;
use greenroom_wire::host::Secret;
use greenroom_world::Timestamp;

use super::Hosts;
use super::on_shard::OnShard;
use super::session::{Session, Told};
use crate::here::Here;
use crate::shard::Item;

/// Who is there, and until when.
pub(super) struct Plane {
    machine: Sessions,
    /// Numbers are never used again.
    last: u64,
    /// Sessions whose hosts may still act.
    hosts: BTreeMap<u64, Host>,
    /// What the cluster is to be told.
    row: Vec<Offer>,
}

/// A host that has come.
pub(super) struct Host {
    pub(super) session: Arc<Session>,
    pub(super) secret: Secret,
    pub(super) from: String,
    pub(super) since: Wall,
}

impl Plane {
    pub(super) fn new(settings: Settings) -> Self {
        Self { machine: Sessions::new(settings), last: 0, hosts: BTreeMap::new(), row: Vec::new() }
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.values().filter(|host| !host.session.is_lost())
    }

    /// When the machine wants to be told the time.
    pub(super) fn deadline(&self) -> Timestamp {
        self.machine.deadline().unwrap_or(Timestamp::NEVER)
    }

    pub(super) fn row(&self) -> &[Offer] {
        &self.row
    }
}

impl Hosts {
    /// A new session, made with its number; `None` if there are as many as may be.
    pub(super) fn begin(&self, host: impl FnOnce(u64) -> Host) -> Option<Arc<Session>> {
        let mut plane = self.plane();
        if plane.hosts.len() >= SESSIONS_MAX {
            return None;
        }
        plane.last += 1;
        let host = host(plane.last);
        let session = host.session.clone();
        plane.hosts.insert(session.number, host);
        Some(session)
    }

    /// The session of this number, for who knows its secret.
    pub(super) fn known(&self, number: u64, secret: Secret) -> Option<Arc<Session>> {
        let plane = self.plane();
        plane.hosts.get(&number).filter(|host| host.secret.0 == secret.0).map(|host| host.session.clone())
    }

    /// The session that a host joins by this secret, unless it is lost.
    pub(super) fn session(&self, number: u64, secret: Secret) -> Option<Arc<Session>> {
        self.known(number, secret).filter(|session| !session.is_lost())
    }

    /// Tells the machine what has happened, and does what it says.
    pub(super) fn tell(&self, here: &Here, event: ControlEvent) {
        let mut plane = self.plane();
        let (now, mut out) = (here.world().now(), Vec::new());
        // No host may act for longer than its node.
        let until = now + here.fence_left();
        plane.machine.handle(now, ControlEvent::NodeLease { until }, &mut out);
        plane.machine.handle(now, event, &mut out);
        for action in out {
            match action {
                ControlAction::Tell(word) => self.pass_on(here, &mut plane, word),
                ControlAction::Row { kinds } => {
                    plane.row = kinds;
                    self.changed.notify_one();
                }
                ControlAction::Welcome { session, .. }
                | ControlAction::Offered { session, .. }
                | ControlAction::Lease { session, .. }
                | ControlAction::LaneLost { session, .. }
                | ControlAction::Close { session, .. } => {
                    if let Some(host) = plane.hosts.get(&session.0) {
                        host.session.tell(Told::Plane(action));
                    }
                }
            }
        }
        drop(plane);
        self.moved.notify_one();
    }

    /// Tells the shards that it is about. They hear all words in one order, as the plane is not let go in between.
    fn pass_on(&self, here: &Here, plane: &mut Plane, word: Word) {
        let (Word::Open { session: SessionId(number), .. }
        | Word::Offers { session: SessionId(number), .. }
        | Word::Draining { session: SessionId(number) }
        | Word::Lost { session: SessionId(number) }
        | Word::Over { session: SessionId(number) }
        | Word::Dropped { session: SessionId(number), .. }) = word;
        let Some(session) = plane.hosts.get(&number).map(|host| host.session.clone()) else { return };
        match word {
            Word::Draining { .. } => {
                let seats = session.seats.load(Ordering::Relaxed);
                tracing::info!(host = session.name, seats, "a host drains");
                session.draining.store(true, Ordering::Release);
                self.offers(|offers| offers.forget(here, number));
            }
            Word::Lost { .. } => {
                session.lost.store(true, Ordering::Release);
                self.offers(|offers| offers.forget(here, number));
            }
            Word::Over { .. } => {
                tracing::info!(host = session.name, session = number, "a host is gone");
                plane.hosts.remove(&number);
                session.tell(Told::Over);
            }
            Word::Open { .. } | Word::Offers { .. } | Word::Dropped { .. } => {}
        }
        for (index, port) in here.shards().iter().enumerate() {
            if let Word::Dropped { shard, .. } = word
                && shard.0 as usize != index
            {
                continue;
            }
            let (session, word) = (session.clone(), word.clone());
            let _ = port.push(Item::Run(Box::new(move |shard| OnShard::of(shard).hear(shard, &session, word))));
        }
    }
}

/// Sessions of one node.
pub(super) const SESSIONS_MAX: usize = 1024;
