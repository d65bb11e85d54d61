//! States that this node reads while other clusters are still asked whether their actors may be activated here.
//!
//! Whether what was read may be used is decided where the question is asked ([`Reading`](super::quiet::Reading)); the word
//! of it names the activation that may.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_protocols::directory::Epoch;
use greenroom_world::Stage;
use tokio::sync::{oneshot, watch};

use super::Geo;
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::state::early::{Claim, Found};
use crate::versioned::protocols::reads_store;

/// What a node reads early, by actor.
#[derive(Default)]
pub(crate) struct EarlyReads {
    all: Mutex<BTreeMap<ActorId, Early>>,
}

struct Early {
    token: u64,
    /// The activation that may use it, once there is one.
    usable: watch::Sender<Option<Epoch>>,
    /// By the keys of the records.
    reads: BTreeMap<String, oneshot::Receiver<Found>>,
}

impl EarlyReads {
    fn all(&self) -> MutexGuard<'_, BTreeMap<ActorId, Early>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the activation of this epoch use what is read under `token`.
    pub(crate) fn allow(&self, id: &ActorId, token: u64, epoch: Epoch) {
        if let Some(early) = self.all().get(id).filter(|early| early.token == token) {
            early.usable.send_replace(Some(epoch));
        }
    }

    /// The record of this key, if it is being read for the actor and nobody has claimed it: for its activation's first look.
    pub(super) fn claim(&self, id: &ActorId, epoch: Epoch, key: &str) -> Option<Claim> {
        let mut all = self.all();
        let early = all.get_mut(id)?;
        let read = early.reads.remove(key)?;
        Some(Claim { epoch, usable: early.usable.subscribe(), read })
    }

    fn forget(&self, id: &ActorId, token: u64) {
        let mut all = self.all();
        if all.get(id).is_some_and(|early| early.token == token) {
            all.remove(id);
        }
    }
}

impl Geo {
    /// What this node reads early.
    pub(crate) fn early(&self) -> &EarlyReads {
        &self.early
    }

    /// Begins to read the states of an actor that may soon be activated here.
    pub(crate) fn read_early(self: &Arc<Self>, node: &Here, id: &ActorId, token: u64) {
        let Some(kind) = node.kinds().find(id.kind) else { return };
        let options = kind.options();
        let protocol = node.protocol_of(id.kind.name(), options.protocol);
        let timeout = node.config().store_timeout;
        let (usable, _) = watch::channel(None);
        let mut early = Early { token, usable, reads: BTreeMap::new() };
        let mut tasks = Vec::new();
        for (name, versioned) in kind.states() {
            if versioned && !reads_store(&protocol) {
                continue;
            }
            let Ok(site) = node.stores().site(options.store, id, name) else { return };
            let (store, key) = site.into_parts();
            let (sender, receiver) = oneshot::channel();
            early.reads.insert(key.clone(), receiver);
            tasks.push(async move {
                // Who would use it may not come.
                let _ = sender.send(store.read(&key, timeout).await);
            });
        }
        {
            let mut all = self.early.all();
            if early.reads.is_empty() || all.len() >= EARLY_MAX {
                return;
            }
            all.insert(id.clone(), early);
        }
        for task in tasks {
            self.world.spawn(Stage::Store, Box::pin(task));
        }
        let (geo, id) = (self.clone(), id.clone());
        let forget = async move {
            geo.world.sleep_until(geo.world.now() + KEPT_FOR).await;
            geo.early.forget(&id, token);
        };
        self.world.spawn(Stage::Store, Box::pin(forget));
    }
}

/// Actors whose states one node reads early at once.
const EARLY_MAX: usize = 4096;
/// Time after which nobody will use what was read.
const KEPT_FOR: Duration = Duration::from_secs(10);
