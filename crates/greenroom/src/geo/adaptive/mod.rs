//! Adaptive actors (`instances = "adaptive"`): what their instances count goes to the cluster that decides for each of them,
//! and what that decides to all nodes of all clusters.
//!
//! The rules are the pure machine `greenroom_protocols::adaptive`; `geo/range/adaptive.rs` drives it behind the lock of the
//! actor's range, and `switching.rs` is how one cluster goes from one mode to the other.

mod check;
pub(crate) mod config;
mod modes;
pub(crate) mod report;
pub(super) mod switching;
mod told;
mod word;

use std::sync::{Arc, PoisonError};

use greenroom_protocols::adaptive::{Action, Event, Known, Mode};
use greenroom_protocols::gsi::{ClusterId, Standing};
use greenroom_world::Stage;

pub(super) use self::check::check_kinds;
pub use self::config::GeoAdaptive;
pub(crate) use self::modes::Modes;
pub use self::report::Adaptive;
use self::word::Word;
use super::Geo;
use super::border::Tenant;
use super::mesh::Peer;
use super::range::Deed;
use super::states::{StateLetter, claim};
use crate::actor::key::{ActorId, Kind};
use crate::cluster::directory::{Entry, Whereabouts};

use crate::here::Here;
use crate::observe::events::Happened;

impl Geo {
    /// Whether the number of instances of actors of `kind` changes with how they are used.
    pub(crate) fn is_adaptive(&self, kind: Kind) -> bool {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        view.hosts(kind).is_some_and(|hosts| hosts.adaptive)
    }

    pub(crate) fn modes(&self) -> &Modes {
        &self.modes
    }

    /// How many instances an actor has now, if it is adaptive.
    pub(crate) fn mode(&self, key: &Entry) -> Mode {
        self.modes.mode(key)
    }

    /// The cluster that decides for an actor.
    pub(super) fn decider(&self, key: &Entry) -> ClusterId {
        let list = self.clusters().configuration();
        let full = list.clusters.iter().filter(|(_, standing)| **standing == Standing::Full).map(|(id, _)| *id);
        let (kind, key) = (key.kind().name(), key.key().as_str());
        full.max_by_key(|id| (claim(kind, key, *id), *id)).unwrap_or(self.me)
    }

    fn tell(self: &Arc<Self>, node: &Arc<Here>, to: ClusterId, key: &Entry, word: &Word) {
        let Ok(bytes) = word.encode() else {
            return tracing::error!("a word of an adaptive actor cannot be written");
        };
        let letter = StateLetter::of_word(self.me, &key.id(), bytes.into());
        match to == self.me {
            true => self.receive_word(node, letter),
            false => self.post_state(Peer::Cluster(to), &letter),
        }
    }

    /// Takes in a word of a cluster, which may be this one.
    pub(super) fn receive_word(self: &Arc<Self>, node: &Arc<Here>, letter: StateLetter) {
        let word = match Word::decode(&letter.message) {
            Ok(word) if is_bounded(&word) => word,
            _ => return tracing::debug!(kind = letter.kind, "a word of an adaptive actor could not be read"),
        };
        let kind = Kind::known(&letter.kind).filter(|kind| letter.is_sound() && self.is_adaptive(*kind));
        let (Some(kind), Some(directory)) = (kind, node.directory()) else {
            // No node of this cluster hosts it: there is no instance.
            if let Word::Refresh(request) = word {
                self.answer(&letter, &Word::Refreshed(request));
            }
            return;
        };
        let Ok(id) = ActorId::new(kind, letter.key.as_str()) else { return };
        let (key, now, from) = (Entry::new(id), self.world.now(), letter.from);
        match word {
            Word::Mode(known) => {
                if letter.hops == 0 {
                    let others =
                        node.view().view.active().map(|(id, _)| id).filter(|id| *id != node.me()).collect::<Vec<_>>();
                    others.into_iter().for_each(|id| self.post_state(Peer::Node(id), &letter.passed_on()));
                }
                self.learn(node, &key, &known);
            }
            Word::Refresh(request) => self.refresh(node, &key, letter, request),
            Word::Counted { .. } | Word::Ready(_) | Word::Refreshed(_) => match directory.tenant(&key) {
                Tenant::There(owner) if letter.hops < HOPS_MAX => {
                    self.post_state(Peer::Node(owner), &letter.passed_on())
                }
                Tenant::There(_) | Tenant::Unknown => {}
                Tenant::Here => match word {
                    Word::Counted { known, by } => {
                        if known.epoch > self.modes.known(&key).epoch {
                            // This node has it from an owner before it.
                            self.learn(node, &key, &known);
                        }
                        self.decide(node, &key, Event::Counted { at: from, known, by });
                    }
                    Word::Ready(epoch) => self.decide(node, &key, Event::Ready { at: from, epoch }),
                    Word::Refreshed(request) => directory.refreshed(self, now, &key, from, request),
                    Word::Mode(_) | Word::Refresh(_) => {}
                },
            },
        }
    }

    /// Goes by a mode on this node.
    fn learn(self: &Arc<Self>, node: &Arc<Here>, key: &Entry, known: &Known) {
        let Some(directory) = node.directory() else { return };
        let (fresh, ready) = directory.adapt(self, self.world.now(), key, known);
        if fresh {
            tracing::info!(actor = %key.id(), mode = ?known.mode, epoch = known.epoch.number, "an actor's instances adapt");
            let (actor, mode) = (key.id().to_string(), format!("{:?}", known.mode));
            node.happened(Happened::Switched { actor, mode });
            node.versioned().post().look_around_of(key.kind().name(), key.key().as_str());
            self.look.notify_one();
        }
        if let Some(epoch) = ready {
            self.tell(node, self.decider(key), key, &Word::Ready(epoch));
        }
    }

    fn decide(self: &Arc<Self>, node: &Arc<Here>, key: &Entry, event: Event) {
        let Some(directory) = node.directory() else { return };
        let options = node.kinds().find(key.kind()).map(|kind| kind.options());
        let store = super::states::shown(options.map_or("", |options| options.store));
        let near = self.config.stores.get(store).map(|cluster| super::clusters::id_of(cluster));
        for deed in directory.tell_decider(self, self.world.now(), (key, near), event) {
            self.perform(node, key, deed);
        }
    }

    /// Lets what is under way go on.
    pub(super) fn tick_adaptive(self: &Arc<Self>, node: &Arc<Here>) {
        let Some(directory) = node.directory() else { return };
        for (key, deed) in directory.tick_adaptive(self, self.world.now()) {
            self.perform(node, &key, deed);
        }
    }

    fn perform(self: &Arc<Self>, node: &Arc<Here>, key: &Entry, deed: Deed) {
        match deed {
            Deed::Decided(Action::Announce(to, known)) => self.tell(node, to, key, &Word::Mode(known)),
            Deed::Decided(Action::Switched(_)) => self.counts.switched(),
            Deed::Refresh(clusters, request) => {
                clusters.into_iter().for_each(|to| self.tell(node, to, key, &Word::Refresh(request)));
            }
            Deed::Go(waiting) => waiting.into_iter().for_each(|parcel| self.deliver(parcel)),
        }
    }

    /// Refreshes the instance of this cluster for another one, and tells it.
    fn refresh(self: &Arc<Self>, node: &Arc<Here>, key: &Entry, letter: StateLetter, request: u64) {
        let (kind, name) = (key.kind().name(), key.key().as_str());
        if let Some(refreshing) = node.versioned().post().refresh_of(kind, name) {
            let geo = self.clone();
            let refresh = async move {
                // If it cannot be, who asks asks again.
                if refreshing.await {
                    geo.answer(&letter, &Word::Refreshed(request));
                }
            };
            return self.world.spawn(Stage::Control, Box::pin(refresh));
        }
        let Some(directory) = node.directory() else { return };
        match directory.whereabouts(self.world.now(), key) {
            Whereabouts::There(to) if letter.hops < HOPS_MAX => self.post_state(Peer::Node(to), &letter.passed_on()),
            // It reads the latest version when it is activated.
            Whereabouts::NotActive => self.answer(&letter, &Word::Refreshed(request)),
            // It is being activated, perhaps since before the question: who asks asks again.
            Whereabouts::Here { .. } | Whereabouts::There(_) | Whereabouts::Unknown => {}
        }
    }

    fn answer(&self, letter: &StateLetter, word: &Word) {
        if let Ok(bytes) = word.encode() {
            self.post_state(Peer::Cluster(letter.from), &letter.answered(self.me, bytes.into()));
        }
    }
}

/// Tells who decides what the instances of this node's adaptive actors have counted.
pub(super) async fn report(geo: Arc<Geo>, node: Arc<Here>) {
    let adapts =
        |(name, options): (&str, crate::actor::interface::Options)| geo.config.is_adaptive(name, options.adaptive);
    if !node.kinds().options().any(adapts) {
        return;
    }
    while !node.is_stopped() {
        node.world().sleep_until(node.world().now() + geo.config.adaptive.report_every).await;
        for ((kind, key), by) in node.versioned().post().take_tallies() {
            let Some(kind) = Kind::known(&kind) else { continue };
            let key = Entry::new(ActorId::unchecked(kind, key));
            let known = geo.modes.known(&key);
            geo.tell(&node, geo.decider(&key), &key, &Word::Counted { known, by });
        }
    }
}

/// Whether a word names no more clusters than there can be.
fn is_bounded(word: &Word) -> bool {
    let why_of = |known: &Known| known.why.as_ref().map_or(0, |why| why.counted.len());
    match word {
        Word::Counted { known, by } => by.len().max(why_of(known)) <= CLUSTERS_MAX,
        Word::Mode(known) => why_of(known) <= CLUSTERS_MAX,
        Word::Ready(_) | Word::Refresh(_) | Word::Refreshed(_) => true,
    }
}

/// Clusters that a word may name.
const CLUSTERS_MAX: usize = 256;
/// Nodes of one cluster that may pass a word on.
const HOPS_MAX: u8 = 4;
