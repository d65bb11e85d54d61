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
mod kind;
mod lane;
mod listener;
mod offers;
mod on_shard;
mod reminders;
mod seats;
mod session;
pub(crate) mod settings;
mod socket;
mod state;
mod streams;
mod topics;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_protocols::host::Settings;
use greenroom_protocols::reminders::Wall;
use greenroom_wire::host::Secret;
use greenroom_world::{Stage, Timestamp};
use tokio::sync::{Notify, watch};

use self::offers::Offers;
use self::on_shard::OnShard;
use self::session::Session;
use self::socket::Bound;
use crate::actor::key::Kind;
use crate::cluster::Order;
use crate::cluster::view::ClusterView;
use crate::here::Here;
use crate::here::parts::Part;
use crate::node::config::Config;
use crate::node::error::Error;
use crate::shard::parts::ShardPart;

#[cfg(feature = "http")]
pub(crate) use self::greeting::{Peer, attend};

/// The hosts of a node.
pub(crate) struct Hosts {
    bound: Mutex<Option<Bound>>,
    state: Mutex<State>,
    offers: Mutex<Offers>,
    /// Whether what is offered has changed.
    changed: Notify,
    /// Foreign kinds that the cluster has had, as far as this node has seen.
    met: Mutex<BTreeSet<&'static str>>,
    /// The version of the cluster's view that this node goes by.
    viewed: watch::Sender<u64>,
    /// The last session whose offers were judged, or that came to its end before.
    opened: watch::Sender<u64>,
    /// The last session whose host has said that it dropped its seats.
    dropped: watch::Sender<u64>,
    settings: Settings,
}

#[derive(Default)]
struct State {
    /// Numbers are never used again.
    last: u64,
    /// Sessions that have begun, and whose seats may not be given away yet.
    open: BTreeMap<u64, Secret>,
    hosts: BTreeMap<u64, Host>,
}

/// A host that has come.
pub(crate) struct Host {
    session: Arc<Session>,
    from: String,
    since: Wall,
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
        let bound = listener::bind(&config.hosts.listen, name)?;
        Ok(Self {
            bound: Mutex::new(bound),
            state: Mutex::default(),
            offers: Mutex::default(),
            changed: Notify::new(),
            met: Mutex::default(),
            viewed: watch::Sender::new(0),
            opened: watch::Sender::new(0),
            dropped: watch::Sender::new(0),
            settings: Settings { lease: config.hosts.lease(), grace: config.hosts.grace, ..Settings::default() },
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offers<R>(&self, act: impl FnOnce(&mut Offers) -> R) -> R {
        act(&mut self.offers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of a new session; `None` if there are as many as may be.
    fn begin(&self, secret: Secret) -> Option<u64> {
        let mut state = self.state();
        if state.open.len() >= SESSIONS_MAX {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.open.insert(number, secret);
        Some(number)
    }

    /// How long a host may act that asks now: no longer than the node itself.
    fn lease(&self, here: &Here) -> Duration {
        here.config().hosts.lease().min(here.fence_left())
    }

    fn open(&self, host: Host) {
        let mut state = self.state();
        let number = host.session.number;
        state.hosts.insert(number, host);
        drop(state);
        self.opened.send_replace(number);
        self.changed.notify_one();
    }

    /// The session that a host joins by this secret, once its offers are judged; `None` if there is none, or it is lost.
    async fn session(&self, number: u64, secret: Secret) -> Option<Arc<Session>> {
        let mut opened = self.opened.subscribe();
        loop {
            let found = {
                let state = self.state();
                if state.open.get(&number).is_none_or(|known| known.0 != secret.0) {
                    return None;
                }
                state.hosts.get(&number).map(|host| host.session.clone())
            };
            match found {
                Some(session) => return Some(session).filter(|session| !session.is_lost()),
                None => opened.changed().await.ok()?,
            }
        }
    }

    /// What a session offered is offered no more.
    fn withdraw(&self, here: &Here, number: u64) {
        let now = here.world().now();
        self.offers(|offers| offers.forget(here, number, now));
        self.changed.notify_one();
    }

    fn close(&self, number: u64) {
        let mut state = self.state();
        state.open.remove(&number);
        state.hosts.remove(&number);
        drop(state);
        self.opened.send_replace(number);
    }

    /// A host says that it has dropped the seats of a session of before.
    fn dropped(&self, number: u64, secret: Secret) {
        let known = self.state().open.get(&number).copied();
        if known.is_some_and(|known| known.0 == secret.0) {
            self.dropped.send_replace(number);
        }
    }

    /// Resolves when the host of a session says that it has dropped its seats.
    async fn dropping(&self, number: u64) {
        let mut dropped = self.dropped.subscribe();
        if dropped.wait_for(|last| *last == number).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The hosts, for people.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let state = self.state();
        let shown = state.hosts.values().map(|Host { session, from, since }| Shown {
            name: session.name.clone(),
            sdk: session.sdk.clone(),
            from: from.clone(),
            since: *since,
            session: session.number,
            seats: session.seats.load(std::sync::atomic::Ordering::Relaxed),
            draining: session.draining.load(std::sync::atomic::Ordering::Relaxed),
            kinds: session.offers.iter().flatten().map(|taken| (taken.kind.name(), taken.offer.version)).collect(),
        });
        shown.collect()
    }
}

impl Part for Hosts {
    fn start(&self, here: &Arc<Here>) {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(bound) = bound {
            listener::open(here, bound);
        }
        let this = here.clone();
        here.world().spawn(Stage::Control, Box::pin(async move { tell(&this).await }));
    }

    fn viewed(&self, view: &Arc<ClusterView>) {
        let kinds = view.view.active().flat_map(|(_, member)| &member.kinds).filter(|kind| kind.is_foreign());
        let met = kinds.filter_map(|kind| Kind::offered(&kind.name)).map(Kind::name);
        self.met.lock().unwrap_or_else(PoisonError::into_inner).extend(met);
        self.viewed.send_replace(view.view.version);
    }

    fn has_had(&self, kind: &str) -> bool {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).contains(kind)
    }

    fn on_shard(&self) -> Option<Box<dyn ShardPart>> {
        Some(Box::new(OnShard::new(self.settings)))
    }
}

/// Tells the cluster what hosts offer here, as it changes: at most once a second.
async fn tell(here: &Arc<Here>) {
    let (hosts, world) = (here.part::<Hosts>(), here.world());
    let linked = here.kinds().infos(here.config().geo.as_ref(), &here.config().kinds);
    let mut told = Vec::new();
    while !here.is_stopped() {
        let now = world.now();
        let (offered, next) = hosts.offers(|offers| {
            offers.drop_gone(now, hosts.settings.grace);
            offers.infos(now, hosts.settings.grace)
        });
        if offered != told {
            told = offered;
            here.order(Order::Kinds(linked.iter().chain(&told).cloned().collect()));
            world.sleep_until(now + TELL_EVERY).await;
            continue;
        }
        let next = next.unwrap_or(Timestamp::NEVER);
        tokio::select! {
            () = hosts.changed.notified() => {}
            () = world.sleep_until(next) => {}
            _ = here.halted() => return,
        }
    }
}

/// Time between two changes of the membership table.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Sessions of one node.
const SESSIONS_MAX: usize = 1024;
