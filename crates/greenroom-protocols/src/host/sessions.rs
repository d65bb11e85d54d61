//! The sessions of a node: who is greeted, whose lease lasts, and what they offer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::time::Timestamp;

use super::offers::Offers;
use super::{Bounds, Close, ControlAction, ControlEvent, Offer, SessionId, Settings, Shard, Verdict, Word};

/// The control plane's machine: all sessions of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sessions {
    settings: Settings,
    sessions: BTreeMap<SessionId, Session>,
    offers: Offers,
    /// Until when the node itself may act.
    node_until: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Session {
    stage: Stage,
    /// When its Hello must have come, or its lease is over.
    until: Timestamp,
    /// The broken lanes whose seats the host has not dropped yet: since when it knows.
    broken: BTreeMap<Shard, Timestamp>,
    /// The shards where it has drained.
    drained: BTreeSet<Shard>,
    /// The offers that were judged.
    offered: BTreeSet<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Greeting,
    Open,
    Draining,
    /// Nothing that it says counts; its seats are held until its lease is over.
    Lost,
}

impl Session {
    fn new(until: Timestamp) -> Self {
        let (broken, drained, offered) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { stage: Stage::Greeting, until, broken, drained, offered }
    }
}

impl Sessions {
    /// A node without hosts, which may not act yet: see [`ControlEvent::NodeLease`].
    pub fn new(settings: Settings) -> Self {
        let node_until = Timestamp::default();
        Self { settings, sessions: BTreeMap::new(), offers: Offers::default(), node_until }
    }

    /// Applies `event` at `now`, appending what must happen to `out`, in order.
    ///
    /// # Panics
    /// If a session's number is connected twice: the driver gives them.
    pub fn handle(&mut self, now: Timestamp, event: ControlEvent, out: &mut Vec<ControlAction>) {
        self.expire(now, out);
        match event {
            ControlEvent::Connected { session } => {
                let until = now + self.settings.greeting;
                let known = self.sessions.insert(session, Session::new(until));
                assert!(known.is_none(), "a session's number is given twice: {session:?}");
            }
            ControlEvent::Hello { session, ended, bounds } => {
                if let Some(ended) = ended.filter(|ended| *ended != session) {
                    self.end(ended, Close::Broken, now, out);
                }
                self.open(session, bounds, now, out);
            }
            ControlEvent::Offer { session, index, offer, allowed, claimed } => {
                // What was refused may be offered again.
                let is_new = self.live(session).is_some_and(|live| !live.offered.contains(&index));
                if is_new {
                    let verdict = self.offers.offer(session, &offer, allowed, claimed, &self.settings);
                    let is_taken = !matches!(verdict, Verdict::Refused(_));
                    out.push(ControlAction::Offered { session, index, verdict });
                    if is_taken {
                        self.live(session).map(|live| live.offered.insert(index));
                        out.push(ControlAction::Tell(Word::Offers { session, index, offer }));
                    }
                }
            }
            ControlEvent::Alive { session, number } => self.alive(session, number, now, out),
            ControlEvent::Drain { session } => {
                if let Some(live) = self.live(session).filter(|live| live.stage == Stage::Open) {
                    live.stage = Stage::Draining;
                    self.offers.withdraw(session, now);
                    out.push(ControlAction::Tell(Word::Draining { session }));
                }
            }
            ControlEvent::Goodbye { session } => self.end(session, Close::Done, now, out),
            ControlEvent::ProcessGone { session } => self.end(session, Close::Broken, now, out),
            ControlEvent::Broken { session } => self.lose(session, Close::Broken, now, out),
            ControlEvent::LaneBroken { session, shard } => {
                if let Some(live) = self.live(session) {
                    live.broken.insert(shard, now);
                    out.push(ControlAction::LaneLost { session, shard });
                }
            }
            ControlEvent::LaneDropped { session, shard } => {
                // One that answers no LaneLost says nothing: which lane it means nobody could tell.
                if self.live(session).is_some_and(|live| live.broken.remove(&shard).is_some()) {
                    out.push(ControlAction::Tell(Word::Dropped { session, shard }));
                }
            }
            ControlEvent::Drained { session, shard } => {
                let shards = self.settings.shards;
                let is_over = self.live(session).filter(|live| live.stage == Stage::Draining).is_some_and(|live| {
                    live.drained.insert(shard);
                    live.drained.len() >= shards
                });
                if is_over {
                    self.end(session, Close::Done, now, out);
                }
            }
            ControlEvent::NodeLease { until } => self.node_until = self.node_until.max(until),
            ControlEvent::Tick => {}
        }
        if let Some(kinds) = self.offers.tick(now, &self.settings) {
            out.push(ControlAction::Row { kinds });
        }
    }

    /// When `handle` next wants a `Tick`; `None` while nothing waits for time.
    pub fn deadline(&self) -> Option<Timestamp> {
        let sessions = self.sessions.values().map(|session| session.until);
        sessions.chain(self.offers.deadline(&self.settings)).min()
    }

    /// What the node offers: of each kind the newest version.
    pub fn row(&self) -> Vec<Offer> {
        self.offers.newest()
    }

    /// Whether a session is open or draining.
    pub fn is_live(&self, session: SessionId) -> bool {
        let stage = self.sessions.get(&session).map(|session| session.stage);
        matches!(stage, Some(Stage::Open | Stage::Draining))
    }

    /// When the session's lease is over by the node's clock, or its Hello is late.
    pub fn until(&self, session: SessionId) -> Option<Timestamp> {
        self.sessions.get(&session).map(|session| session.until)
    }

    fn live(&mut self, session: SessionId) -> Option<&mut Session> {
        let live = |session: &&mut Session| matches!(session.stage, Stage::Open | Stage::Draining);
        self.sessions.get_mut(&session).filter(live)
    }

    /// What a host may be told at `now`.
    fn lease(&self, now: Timestamp) -> Duration {
        let node = if self.settings.checks.node_lease { self.node_until.since(now) } else { Duration::MAX };
        self.settings.lease.min(node)
    }

    fn open(&mut self, session: SessionId, bounds: Bounds, now: Timestamp, out: &mut Vec<ControlAction>) {
        let lease = self.lease(now);
        let Some(greeting) = self.sessions.get_mut(&session).filter(|known| known.stage == Stage::Greeting) else {
            return;
        };
        greeting.stage = Stage::Open;
        greeting.until = now + lease;
        out.push(ControlAction::Welcome { session, lease });
        let bounds = Bounds { weight: bounds.weight.max(1), turns_max: bounds.turns_max.max(1), ..bounds };
        out.push(ControlAction::Tell(Word::Open { session, bounds }));
    }

    fn alive(&mut self, session: SessionId, number: u64, now: Timestamp, out: &mut Vec<ControlAction>) {
        let (lease, patience, checks) = (self.lease(now), self.settings.lease, self.settings.checks);
        let Some(live) = self.live(session) else { return };
        let is_overdue = live.broken.values().any(|since| *since + patience <= now);
        if is_overdue && checks.overdue {
            return;
        }
        live.until = live.until.max(now + lease);
        out.push(ControlAction::Lease { session, number, lease });
    }

    /// Nothing that the session says counts any more.
    fn lose(&mut self, session: SessionId, why: Close, now: Timestamp, out: &mut Vec<ControlAction>) {
        let Some(known) = self.sessions.get_mut(&session) else { return };
        match known.stage {
            Stage::Greeting => {
                self.sessions.remove(&session);
                out.push(ControlAction::Close { session, why });
            }
            Stage::Open | Stage::Draining => {
                known.stage = Stage::Lost;
                self.offers.withdraw(session, now);
                out.push(ControlAction::Close { session, why });
                out.push(ControlAction::Tell(Word::Lost { session }));
            }
            Stage::Lost => {}
        }
    }

    /// The session's host can act no more.
    fn end(&mut self, session: SessionId, why: Close, now: Timestamp, out: &mut Vec<ControlAction>) {
        self.lose(session, why, now, out);
        if self.sessions.remove(&session).is_some() {
            out.push(ControlAction::Tell(Word::Over { session }));
        }
    }

    fn expire(&mut self, now: Timestamp, out: &mut Vec<ControlAction>) {
        let is_fenced = self.node_until <= now && self.settings.checks.node_lease;
        let over = self.sessions.iter().filter(|(_, session)| session.until <= now);
        let over: Vec<_> = over.map(|(session, known)| (*session, known.stage)).collect();
        for (session, stage) in over {
            let why = match stage {
                Stage::Greeting => Close::Silent,
                _ if is_fenced => Close::Fenced,
                _ => Close::LeaseOver,
            };
            self.end(session, why, now, out);
        }
    }
}
