//! References: the names of actors, with what is known of where they are.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_protocols::node::NodeId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::call::Call;
use super::cx::{Cx, Scope};
use super::interface::{Interface, Method};
use super::key::{ActorId, Key, Kind, stable_hash};
use crate::here::port::Port;
use crate::pids::key::{is_reserved, reserved};
use crate::shard::{ShardId, Slot};

/// A reference to an actor of interface `I`. Clones share what they learn of the actor's place.
///
/// It is plain data: it travels in messages as its key. A reference that came in a message works inside of actors as it
/// is; elsewhere, [`bind`](Ref::bind) it to a node.
pub struct Ref<I: Interface> {
    inner: Arc<Inner>,
    of: PhantomData<fn(I)>,
}

/// What references to one actor share.
pub(crate) struct Inner {
    pub(crate) id: ActorId,
    pub(crate) hash: u64,
    pub(crate) port: Option<Arc<Port>>,
    /// Whether somebody made up a key that only spawned actors have.
    pub(crate) forged: bool,
    route: AtomicU64,
}

/// Where an actor was when a message last went there. Possibly stale: who gets the message checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    Unresolved,
    Here(ShardId, Slot),
    There(NodeId),
}

impl<I: Interface> Ref<I> {
    /// The actor called `key`, as seen from `scope`: a node, or an actor's `cx`.
    pub fn of(scope: &impl Scope, key: impl Into<Key>) -> Self {
        let key = key.into();
        let forged = is_reserved(&key);
        Self::new(key, Some(scope.port().clone()), forged)
    }

    /// The actor that has this key, which the runtime has made.
    pub(crate) fn made(key: Key, port: Option<Arc<Port>>) -> Self {
        Self::new(key, port, false)
    }

    /// What references to the actor share.
    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// The actor whose `cx` it is.
    pub fn me(cx: &Cx) -> Self {
        // Also a spawned actor's: its key is the runtime's own.
        Self::made(cx.key().clone(), Some(cx.port().clone()))
    }

    /// The same actor, seen from `scope`.
    #[must_use]
    pub fn bind(&self, scope: &impl Scope) -> Self {
        Self::new(self.inner.id.key.clone(), Some(scope.port().clone()), self.inner.forged)
    }

    fn new(key: Key, port: Option<Arc<Port>>, forged: bool) -> Self {
        let hash = stable_hash(I::KIND, &key);
        let id = ActorId::unchecked(Kind::intern(I::KIND), key);
        Self { inner: Arc::new(Inner { id, hash, port, forged, route: AtomicU64::new(0) }), of: PhantomData }
    }

    /// The actor's key.
    pub fn key(&self) -> &Key {
        &self.inner.id.key
    }

    /// The actor's full name.
    pub fn id(&self) -> &ActorId {
        &self.inner.id
    }

    /// A call of `method`: nothing happens until it is used.
    pub fn call<M: Method<Interface = I>>(&self, method: M) -> Call<M> {
        Call::new(self.inner.clone(), method)
    }
}

impl Inner {
    /// A reference's inside for an actor whose interface is not known here.
    pub(crate) fn untyped(id: ActorId) -> Arc<Inner> {
        let hash = id.stable_hash();
        Arc::new(Inner { id, hash, port: None, forged: false, route: AtomicU64::new(0) })
    }

    pub(crate) fn route(&self) -> Route {
        let word = self.route.load(Ordering::Relaxed);
        match word >> 62 {
            HERE => {
                let (shard, slot) = ShardId::unpacked(word);
                Route::Here(shard, slot)
            }
            THERE => Route::There(NodeId(word & NODE_MASK)),
            _ => Route::Unresolved,
        }
    }

    pub(crate) fn set_route(&self, route: Route) {
        let word = match route {
            Route::Unresolved => 0,
            Route::Here(shard, slot) => (HERE << 62) | shard.packed(slot),
            Route::There(node) if node.0 <= NODE_MASK => (THERE << 62) | node.0,
            Route::There(_) => 0,
        };
        self.route.store(word, Ordering::Relaxed);
    }
}

const HERE: u64 = 0b10;
const THERE: u64 = 0b01;
const NODE_MASK: u64 = (1 << 62) - 1;

impl<I: Interface> AsRef<Ref<I>> for Ref<I> {
    fn as_ref(&self) -> &Ref<I> {
        self
    }
}

impl<I: Interface> Clone for Ref<I> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), of: PhantomData }
    }
}

impl<I: Interface> PartialEq for Ref<I> {
    fn eq(&self, other: &Self) -> bool {
        self.inner.id == other.inner.id
    }
}

impl<I: Interface> Eq for Ref<I> {}

impl<I: Interface> fmt::Debug for Ref<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner.id, f)
    }
}

impl<I: Interface> Serialize for Ref<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.inner.forged {
            return Err(serde::ser::Error::custom(reserved(&self.inner.id.key)));
        }
        self.inner.id.key.serialize(serializer)
    }
}

impl<'de, I: Interface> Deserialize<'de> for Ref<I> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::made(Key::deserialize(deserializer)?, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_survives_being_packed() {
        let inner = Inner::untyped(ActorId::unchecked(Kind::intern("route_test"), "k"));
        let here = Route::Here(ShardId::from_raw(4095), Slot { index: u32::MAX - 1, generation: Slot::GENERATION_MAX });
        for route in [Route::Unresolved, here, Route::There(NodeId(7)), Route::There(NodeId(NODE_MASK))] {
            inner.set_route(route);
            assert_eq!(inner.route(), route);
        }
    }
}
