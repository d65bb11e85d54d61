//! The way to the instances of a state in other clusters. Whoever links clusters carries [`Letter`]s between them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use greenroom_protocols::gsi::ClusterId;
use serde::{Deserialize, Serialize};

use super::instance::Instance;
use super::protocol::Event;

/// The links to other clusters, as versioned states use them.
pub trait Elsewhere: Send + Sync + 'static {
    /// Who may have instances of the states of the actor `key` of `kind`. It is asked when the actor activates.
    fn around(&self, kind: &str, key: &str) -> Around;

    /// Brings `letter` to the cluster `to`. If that has no instance, and is not to make one, say
    /// [`undelivered`](Post::undelivered).
    fn send(&self, to: ClusterId, letter: Letter);
}

/// Who has instances of a state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Around {
    /// This cluster.
    pub here: ClusterId,
    /// The others that may have one.
    pub others: Vec<ClusterId>,
    /// The one whose instance leads, where the protocol has a leader.
    pub leader: ClusterId,
    /// The one nearest the store, if this one is far from it.
    pub near: Option<ClusterId>,
}

/// A message from an instance in one cluster to the one in another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Letter {
    /// The actor's kind.
    pub kind: String,
    /// The actor's key.
    pub key: String,
    /// The actor's field that the state is in.
    pub field: String,
    /// Whether the actor is to be activated for it: then it is brought again once that has happened.
    pub wakes: bool,
    /// What the protocol has written.
    #[serde(with = "serde_bytes")]
    pub message: Vec<u8>,
}

/// Where the letters of a node go out and come in.
#[derive(Default)]
pub struct Post {
    elsewhere: OnceLock<Arc<dyn Elsewhere>>,
    here: Mutex<BTreeMap<(String, String, String), Weak<Instance>>>,
}

impl Post {
    /// Sends by `elsewhere` from here on; the first one stays.
    pub fn connect(&self, elsewhere: Arc<dyn Elsewhere>) {
        // A second one would be the caller's mistake, and the first one keeps working.
        let _ = self.elsewhere.set(elsewhere);
    }

    /// Gives `letter` to the instance here; false if there is none on this node.
    pub fn deliver(&self, from: ClusterId, letter: &Letter) -> bool {
        let event = Event::Received { from, message: Bytes::copy_from_slice(&letter.message) };
        self.tell(letter, event)
    }

    /// Tells the instance that sent `letter` that the cluster `to` has no instance.
    pub fn undelivered(&self, to: ClusterId, letter: &Letter) {
        self.tell(letter, Event::Unreached(to));
    }

    fn tell(&self, letter: &Letter, event: Event) -> bool {
        let name = (letter.kind.clone(), letter.key.clone(), letter.field.clone());
        let instance = self.here.lock().unwrap_or_else(PoisonError::into_inner).get(&name).and_then(Weak::upgrade);
        match instance {
            Some(instance) => instance.handle(event),
            None => return false,
        }
        true
    }

    pub(super) fn elsewhere(&self) -> Option<&Arc<dyn Elsewhere>> {
        self.elsewhere.get()
    }

    /// Notes an instance, which can be sent to from now on.
    pub(super) fn enter(&self, instance: &Arc<Instance>) {
        if self.elsewhere.get().is_some() {
            let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
            here.insert(instance.name(), Arc::downgrade(instance));
        }
    }

    /// Forgets an instance, unless its successor has been noted.
    pub(super) fn leave(&self, instance: &Instance) {
        if self.elsewhere.get().is_some() {
            let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
            let name = instance.name();
            if here.get(&name).is_some_and(|known| std::ptr::eq(known.as_ptr(), instance)) {
                here.remove(&name);
            }
        }
    }
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post").field("linked", &self.elsewhere.get().is_some()).finish_non_exhaustive()
    }
}
