//! Big: everybody talks to everybody, which tests contention for mailboxes.
//!
//! Three kinds do the same, so that each can live on a node of its own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::tally::TallyRef;
use super::{Extent, Payload, Style, payload};
use crate::report::Record;

/// What an actor of the workload is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BigOrder {
    /// Its own place among all.
    pub here: u32,
    /// How many there are.
    pub actors: u32,
    /// Kinds that they are of, in turn.
    pub roles: u8,
    /// What their keys begin with; their places follow.
    pub prefix: String,
    /// How they talk.
    pub style: Style,
    /// Bytes that each message carries.
    pub payload: usize,
    /// How long each talks to each other one.
    pub extent: Extent,
    /// The key of the tally that gets the report.
    pub tally: String,
}

/// The key of the actor at `place`.
pub(crate) fn key(prefix: &str, place: u32) -> String {
    format!("{prefix}-{place}")
}

/// The role of the actor at `place`.
pub(crate) fn role(place: u32, roles: u8) -> u8 {
    (place % u32::from(roles.clamp(1, ROLES))) as u8
}

macro_rules! big {
    ($(#[$doc:meta])* $name:ident, $reference:ident) => {
        $(#[$doc])*
        #[derive(Default, Actor)]
        pub struct $name {
            floor: Floor,
        }

        #[actor]
        impl $name {
            /// Learns of all others. All have to, before one starts.
            pub async fn meet(&mut self, cx: &Cx, order: BigOrder) {
                self.floor.meet(cx, order);
            }

            /// Starts talking to all others and returns at once: the tally hears of its end.
            pub async fn start(&mut self, cx: &Cx, until_ns: Option<u64>) {
                match self.floor.begin(until_ns) {
                    Style::Call => {
                        let me = $reference::of(cx, cx.key());
                        self.floor.places().for_each(|place| me.talk(place).send());
                    }
                    Style::Send => self.floor.ping_all(),
                }
            }

            /// Talks to the actor at `place` by request and reply until the end. A turn of its own for each of the others
            /// wakes only itself, which a turn that joins all of these calls would not.
            pub async fn talk(&self, place: u32) {
                self.floor.talk(place).await;
            }

            /// Answers with what the message carries.
            pub async fn echo(&self, payload: Payload) -> Payload {
                payload
            }

            /// A one-way ping by the actor at `from`.
            pub async fn ping(&mut self, from: u32, payload: Payload) {
                self.floor.pinged(from, payload);
            }

            /// A one-way answer by the actor at `from`.
            pub async fn pong(&mut self, from: u32, payload: Payload) {
                self.floor.ponged(from, payload);
            }
        }
    };
}

big!(
    /// Talks to everybody; the first kind.
    BigA,
    BigARef
);
big!(
    /// Talks to everybody; the second kind.
    BigB,
    BigBRef
);
big!(
    /// Talks to everybody; the third kind.
    BigC,
    BigCRef
);

/// One actor's talks with all others.
#[derive(Default)]
struct Floor {
    plan: Option<Plan>,
    progress: Mutex<Progress>,
}

struct Plan {
    order: BigOrder,
    /// By place; nobody at the actor's own.
    peers: Vec<Option<Peer>>,
    tally: TallyRef,
}

#[derive(Default)]
struct Progress {
    record: Option<Record>,
    /// Talks that are not over.
    open: usize,
    /// Pings sent to each peer in one-way style, and when the last timed one left.
    sent: Vec<(u64, Option<Instant>)>,
}

impl Floor {
    fn meet(&mut self, cx: &Cx, order: BigOrder) {
        let peers = (0..order.actors).map(|place| (place != order.here).then(|| Peer::of(cx, &order, place))).collect();
        let tally = TallyRef::of(cx, order.tally.as_str());
        self.plan = Some(Plan { order, peers, tally });
    }

    fn begin(&mut self, until_ns: Option<u64>) -> Style {
        if let Some(plan) = &mut self.plan {
            plan.order.extent.until_ns = until_ns;
        }
        let peers = self.plan.as_ref().map_or(0, |plan| plan.peers.len());
        let open = peers.saturating_sub(1);
        *self.progress() = Progress { record: Some(Record::begin()), open, sent: vec![(0, None); peers] };
        if open == 0 {
            self.close();
        }
        self.plan.as_ref().map_or(Style::Call, |plan| plan.order.style)
    }

    fn places(&self) -> impl Iterator<Item = u32> + '_ {
        let here = self.plan.as_ref().map_or(0, |plan| plan.order.here);
        let actors = self.plan.as_ref().map_or(0, |plan| plan.order.actors);
        (0..actors).filter(move |place| *place != here)
    }

    fn peer(&self, place: u32) -> Option<(&Plan, &Peer)> {
        let plan = self.plan.as_ref()?;
        Some((plan, plan.peers.get(place as usize)?.as_ref()?))
    }

    async fn talk(&self, place: u32) {
        let Some((plan, peer)) = self.peer(place) else { return };
        let extent = plan.order.extent;
        let mut message = payload(plan.order.payload);
        let mut round = 0;
        while !extent.is_over(round) {
            let sent = extent.times(round).then(Instant::now);
            round += 1;
            match peer.echo(message).await {
                Ok(back) => {
                    message = back;
                    if let Some(sent) = sent {
                        self.record(|record| record.time(sent.elapsed()));
                    }
                }
                Err(error) => {
                    round -= 1;
                    self.record(|record| record.fail(&error));
                    break;
                }
            }
        }
        self.record(|record| record.count(2 * round));
        self.finish_talk();
    }

    fn record(&self, note: impl FnOnce(&mut Record)) {
        if let Some(record) = &mut self.progress().record {
            note(record);
        }
    }

    fn ping_all(&self) {
        let len = self.plan.as_ref().map_or(0, |plan| plan.order.payload);
        self.places().for_each(|place| self.ping_or_finish(place, payload(len)));
    }

    fn pinged(&self, from: u32, payload: Payload) {
        if let Some((plan, peer)) = self.peer(from) {
            peer.pong(plan.order.here, payload);
        }
    }

    fn ponged(&self, from: u32, payload: Payload) {
        let mut progress = self.progress();
        let timed = progress.sent.get_mut(from as usize).and_then(|(_, sent)| sent.take());
        if let Some(record) = &mut progress.record {
            record.count(2);
            if let Some(sent) = timed {
                record.time(sent.elapsed());
            }
        }
        drop(progress);
        self.ping_or_finish(from, payload);
    }

    fn ping_or_finish(&self, place: u32, payload: Payload) {
        let Some((plan, peer)) = self.peer(place) else { return };
        let extent = plan.order.extent;
        let mut progress = self.progress();
        let Some((round, sent)) = progress.sent.get_mut(place as usize) else { return };
        if extent.is_over(*round) {
            drop(progress);
            return self.finish_talk();
        }
        *sent = extent.times(*round).then(Instant::now);
        *round += 1;
        drop(progress);
        peer.ping(plan.order.here, payload);
    }

    fn finish_talk(&self) {
        let mut progress = self.progress();
        progress.open = progress.open.saturating_sub(1);
        let last = progress.open == 0;
        drop(progress);
        if last {
            self.close();
        }
    }

    fn close(&self) {
        let record = self.progress().record.take();
        if let (Some(plan), Some(record)) = (&self.plan, record) {
            plan.tally.report(record.end()).send();
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Another actor, of any of the three kinds.
enum Peer {
    A(BigARef),
    B(BigBRef),
    C(BigCRef),
}

impl Peer {
    fn of(cx: &Cx, order: &BigOrder, place: u32) -> Self {
        let key = key(&order.prefix, place);
        match role(place, order.roles) {
            0 => Peer::A(BigARef::of(cx, key)),
            1 => Peer::B(BigBRef::of(cx, key)),
            _ => Peer::C(BigCRef::of(cx, key)),
        }
    }

    async fn echo(&self, payload: Payload) -> Result<Payload, CallError> {
        match self {
            Peer::A(peer) => peer.echo(payload).await,
            Peer::B(peer) => peer.echo(payload).await,
            Peer::C(peer) => peer.echo(payload).await,
        }
    }

    fn ping(&self, from: u32, payload: Payload) {
        match self {
            Peer::A(peer) => peer.ping(from, payload).send(),
            Peer::B(peer) => peer.ping(from, payload).send(),
            Peer::C(peer) => peer.ping(from, payload).send(),
        }
    }

    fn pong(&self, from: u32, payload: Payload) {
        match self {
            Peer::A(peer) => peer.pong(from, payload).send(),
            Peer::B(peer) => peer.pong(from, payload).send(),
            Peer::C(peer) => peer.pong(from, payload).send(),
        }
    }
}

/// Kinds that talk.
pub(crate) const ROLES: u8 = 3;
