//! Hosts: processes in any language that run turns of kinds which are not linked into the node.
//!
//! A host dials the node: a *control lane* to its door stage says what it offers and keeps its lease, and a *user lane* to each
//! shard carries turns and calls. The activation stays here, with its mailbox, deadlines, epochs and states; the host
//! holds the instance, in a *seat*, and runs turns.

mod ask;
mod calls;
mod control;
mod frames;
mod greeting;
mod joining;
mod kind;
mod lane;
mod listener;
mod machine;
mod offers;
mod on_shard;
mod packing;
mod plane;
mod reads;
mod refusals;
mod reminders;
mod seats;
mod session;
pub(crate) mod settings;
mod socket;
mod state;
mod streams;
mod topics;
mod turn;
mod visa;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_protocols::host::{ControlEvent, Settings};
use greenroom_protocols::reminders::Wall;
use greenroom_world::Stage;
use tokio::sync::{Notify, watch};

use self::offers::{Offers, Taken};
use self::on_shard::OnShard;
use self::plane::{Host, Plane};
use self::session::Session;
use self::socket::Bound;
use crate::actor::key::Kind;
use crate::cluster::Order;
use crate::cluster::view::ClusterView;
use crate::here::Here;
use crate::here::parts::Part;
use crate::node::config::Config;
use crate::node::error::Error;
use crate::observe::failure_counts::FailureCounts;
use crate::shard::parts::ShardPart;

pub(crate) use self::greeting::{Peer, attend};
#[cfg(feature = "http")]
pub(crate) use self::visa::Visa;

/// The hosts of a node.
pub(crate) struct Hosts {
    bound: Mutex<Option<Bound>>,
    plane: Mutex<Plane>,
    offers: Mutex<Offers>,
    /// Whether the plane's machine wants to be told the time at another time than before.
    moved: Notify,
    /// Whether the row of the membership table is to be written.
    changed: Notify,
    /// Foreign kinds that the cluster has had, as far as this node has seen, and how often they were called when it had them no more.
    met: Mutex<BTreeMap<&'static str, u64>>,
    /// The version of the cluster's view that this node goes by.
    viewed: watch::Sender<u64>,
    refused_operations: FailureCounts,
    settings: Settings,
}

/// A host, for people.
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) sdk: String,
    pub(crate) from: String,
    pub(crate) since: Wall,
    pub(crate) session: u64,
    pub(crate) seats: u32,
    pub(crate) draining: bool,
    /// Its kinds, with their versions.
    pub(crate) kinds: Vec<(&'static str, u16)>,
}

impl Hosts {
    /// Takes the socket that `config` asks for, for the node called `name`.
    ///
    /// # Errors
    /// [`Error::Listen`]: it cannot be had.
    pub(crate) fn bind(config: &Config, name: &str) -> Result<Self, Error> {
        let bound = listener::bind(&config.hosts, name)?;
        let settings = Settings {
            lease: config.hosts.lease(),
            grace: config.hosts.grace,
            shards: config.shard_count(),
            ..Settings::default()
        };
        Ok(Self {
            bound: Mutex::new(bound),
            plane: Mutex::new(Plane::new(settings)),
            offers: Mutex::default(),
            moved: Notify::new(),
            changed: Notify::new(),
            met: Mutex::default(),
            viewed: watch::Sender::new(0),
            refused_operations: FailureCounts::default(),
            settings,
        })
    }

    fn plane(&self) -> MutexGuard<'_, Plane> {
        self.plane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn met(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offers<R>(&self, act: impl FnOnce(&mut Offers) -> R) -> R {
        act(&mut self.offers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts that `kind` was called and no host has it; whether one has had it.
    fn count_missed(&self, kind: &str) -> bool {
        self.met().get_mut(kind).map(|missed| *missed += 1).is_some()
    }

    /// The hosts, for people.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let plane = self.plane();
        let shown = plane.hosts().map(|Host { session, from, since, .. }| Shown {
            name: session.name.clone(),
            sdk: session.sdk.clone(),
            from: from.clone(),
            since: *since,
            session: session.number,
            seats: session.seats.load(Ordering::Relaxed),
            draining: session.draining.load(Ordering::Relaxed),
            kinds: taken(session).map(|taken| (taken.kind.name(), taken.offer.version)).collect(),
        });
        shown.collect()
    }
}

fn taken(session: &Session) -> impl Iterator<Item = &Taken> {
    session.offers.iter().filter_map(|offer| offer.get())
}

impl Part for Hosts {
    fn start(&self, here: &Arc<Here>) {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(bound) = bound {
            listener::open(here, bound);
        }
        let this = here.clone();
        here.world().spawn(Stage::Control, Box::pin(async move { look_after(&this).await }));
    }

    fn viewed(&self, view: &Arc<ClusterView>) {
        let kinds = view.view.active().flat_map(|(_, member)| &member.kinds).filter(|kind| kind.is_foreign());
        let mut met = self.met();
        for kind in kinds.filter_map(|kind| Kind::offered(&kind.name)) {
            met.entry(kind.name()).or_default();
        }
        drop(met);
        self.viewed.send_replace(view.view.version);
    }

    fn has_had(&self, kind: &str) -> bool {
        self.met().contains_key(kind)
    }

    fn miss(&self, kind: &str) -> bool {
        self.count_missed(kind)
    }

    fn missed(&self) -> Vec<(&'static str, u64)> {
        self.met().iter().filter(|(_, missed)| **missed > 0).map(|(kind, missed)| (*kind, *missed)).collect()
    }

    fn refused_operations(&self) -> Vec<(&'static str, u64, String)> {
        self.refused_operations.counted()
    }

    fn is_offered(&self, kind: &str) -> bool {
        self.offers(|offers| offers.shards(kind).is_some())
    }

    fn shard_beside(&self, here: &Here, kind: &str, near: u16) -> Option<u16> {
        if here.kinds().has_linked(kind) {
            return None;
        }
        let shards = self.offers(|offers| offers.shards(kind))?;
        (near >= shards).then(|| near % shards)
    }

    fn on_shard(&self) -> Option<Box<dyn ShardPart>> {
        Some(Box::new(OnShard::new(self.settings)))
    }
}

/// Tells the plane's machine the time when it wants to know, and the cluster what hosts offer here, as it changes.
async fn look_after(here: &Arc<Here>) {
    let (hosts, world) = (here.part::<Hosts>(), here.world());
    let linked = here.kinds().infos(here.config().geo.as_ref(), &here.config().kinds);
    loop {
        if hosts.plane().deadline() <= world.now() {
            hosts.tell(here, ControlEvent::Tick);
        }
        let due = hosts.plane().deadline();
        // One task waits for the node's end: of several, chance would say which hears of it first.
        tokio::select! {
            biased;
            _ = here.halted() => return,
            () = hosts.changed.notified() => {
                // A host offers its kinds one after the other: who calls one of them finds the others, too.
                world.sleep_until(world.now() + GATHERED).await;
                let row = hosts.plane().row().to_vec();
                let told = hosts.offers(|offers| offers.infos(&row));
                here.order(Order::Kinds(linked.iter().cloned().chain(told).collect()));
            }
            () = hosts.moved.notified() => {}
            () = world.sleep_until(due) => {}
        }
    }
}

/// From a host's first offer to the cluster's knowing of it.
const GATHERED: Duration = Duration::from_millis(5);
