//! The way to the instances of a state in other clusters. Whoever links clusters carries [`Letter`]s between them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use greenroom_protocols::gsi::ClusterId;
use greenroom_world::Timestamp;
use serde::{Deserialize, Serialize};

use super::instance::Instance;
use super::protocol::Event;

/// The links to other clusters, as versioned states use them.
pub trait Elsewhere: Send + Sync + 'static {
    /// Who may have instances of the states of the actor `key` of `kind`. It is asked when the actor activates.
    fn around(&self, kind: &str, key: &str) -> Around;

    /// All other clusters: each may have an instance of an actor too that should have one only, for a while.
    fn apart(&self) -> Vec<ClusterId> {
        Vec::new()
    }

    /// Whether it is to be counted what is asked of the states of `kind`.
    fn counts(&self, _kind: &str) -> bool {
        false
    }

    /// Hears that a duplicate has ended with so many updates of the state `state` that it had told confirmed, and the instance that stays
    /// has not.
    fn lost(&self, state: &str, updates: usize) {
        let _ = (state, updates);
    }

    /// Brings `letter` to the cluster `to`, by its [`delivery`](Letter::delivery).
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
    /// The one nearest the store, if that is known; it may be this one.
    pub near: Option<ClusterId>,
}

/// What becomes of a letter to a cluster where the actor is not active.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Delivery {
    /// It is lost.
    IfActive,
    /// It is lost, and the sender hears of it: [`Post::undelivered`].
    Asks,
    /// The actor is activated for it: the letter is brought again once that has happened.
    Wakes,
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
    /// What becomes of it where the actor is not active.
    pub delivery: Delivery,
    /// What the protocol has written.
    #[serde(with = "serde_bytes")]
    pub message: Vec<u8>,
}

/// Where the letters of a node go out and come in.
#[derive(Default)]
pub struct Post {
    elsewhere: OnceLock<Arc<dyn Elsewhere>>,
    here: Mutex<BTreeMap<Name, Weak<Instance>>>,
    /// Letters for actors that are being activated, and until when they are kept.
    held: Mutex<VecDeque<(Timestamp, Name, Event)>>,
}

/// Kind, key and field.
type Name = (String, String, String);

impl Post {
    /// Sends by `elsewhere` from here on; the first one stays.
    pub fn connect(&self, elsewhere: Arc<dyn Elsewhere>) {
        // A second one would be the caller's mistake, and the first one keeps working.
        let _ = self.elsewhere.set(elsewhere);
    }

    /// Gives `letter` to the instance here; false if there is none on this node.
    pub fn deliver(&self, from: ClusterId, letter: &Letter) -> bool {
        self.tell(letter, received(from, letter))
    }

    /// Tells the instance that sent `letter` that the cluster `to` has no instance; false if it is not on this node.
    pub fn undelivered(&self, to: ClusterId, letter: &Letter) -> bool {
        self.tell(letter, Event::Unreached(to))
    }

    /// Tells all instances that a cluster is reached again which was not for a while: what was sent to it is lost.
    pub fn reached(&self, cluster: ClusterId) {
        for instance in self.instances() {
            instance.handle(Event::Reached(cluster));
        }
    }

    /// Asks anew who is around all instances, as the clusters have changed.
    pub fn look_around(&self) {
        for instance in self.instances() {
            instance.look_around();
        }
    }

    /// Asks anew who is around the instances of one actor.
    pub(crate) fn look_around_of(&self, kind: &str, key: &str) {
        for instance in self.instances_of(kind, key) {
            instance.look_around();
        }
    }

    /// Makes the states of one actor here the latest there are, with all that was enqueued before confirmed; `None` if it has
    /// none here.
    pub(crate) fn refresh_of(&self, kind: &str, key: &str) -> Option<impl Future<Output = bool> + Send + use<>> {
        let instances = self.instances_of(kind, key);
        (!instances.is_empty()).then_some(async move {
            let mut all = true;
            for instance in instances {
                all &= instance.refresh(None).await.is_ok();
            }
            all
        })
    }

    fn instances_of(&self, kind: &str, key: &str) -> Vec<Arc<Instance>> {
        let first = (kind.to_owned(), key.to_owned(), String::new());
        let here = lock(&self.here);
        let own = here.range(first..).take_while(|((of, at, _), _)| of == kind && at == key);
        own.filter_map(|(_, instance)| instance.upgrade()).collect()
    }

    /// Keeps `letter` for an instance that is about to be here.
    pub(crate) fn hold(&self, now: Timestamp, from: ClusterId, letter: &Letter) {
        let mut held = lock(&self.held);
        while held.len() >= HELD_MAX || held.front().is_some_and(|(until, ..)| *until <= now) {
            held.pop_front();
        }
        held.push_back((now + HELD_FOR, name(letter), received(from, letter)));
        drop(held);
        // It may have come in between.
        let instance = lock(&self.here).get(&name(letter)).and_then(Weak::upgrade);
        if let Some(instance) = instance {
            self.hand_over(&instance);
        }
    }

    fn tell(&self, letter: &Letter, event: Event) -> bool {
        let instance = lock(&self.here).get(&name(letter)).and_then(Weak::upgrade);
        match instance {
            Some(instance) => instance.handle(event),
            None => return false,
        }
        true
    }

    pub(super) fn instances(&self) -> Vec<Arc<Instance>> {
        lock(&self.here).values().filter_map(Weak::upgrade).collect()
    }

    fn hand_over(&self, instance: &Arc<Instance>) {
        let own = instance.name();
        let (now, mut events) = (instance.now(), Vec::new());
        lock(&self.held).retain(|(until, name, event)| {
            let is_own = *name == own;
            if is_own && *until > now {
                events.push(event.clone());
            }
            !is_own && *until > now
        });
        for event in events {
            instance.handle(event);
        }
    }

    pub(super) fn elsewhere(&self) -> Option<&Arc<dyn Elsewhere>> {
        self.elsewhere.get()
    }

    /// Notes an instance, which can be sent to from now on.
    pub(super) fn enter(&self, instance: &Arc<Instance>) {
        if self.elsewhere.get().is_some() {
            lock(&self.here).insert(instance.name(), Arc::downgrade(instance));
            self.hand_over(instance);
        }
    }

    /// Forgets an instance, unless its successor has been noted.
    pub(super) fn leave(&self, instance: &Instance) {
        if self.elsewhere.get().is_some() {
            let mut here = lock(&self.here);
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

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name(letter: &Letter) -> Name {
    (letter.kind.clone(), letter.key.clone(), letter.field.clone())
}

fn received(from: ClusterId, letter: &Letter) -> Event {
    Event::Received { from, message: Bytes::copy_from_slice(&letter.message) }
}

/// Letters that are kept for instances to come.
const HELD_MAX: usize = 1024;
/// So long are they kept.
const HELD_FOR: Duration = Duration::from_secs(10);
