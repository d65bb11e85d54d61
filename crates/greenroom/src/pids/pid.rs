//! The address of a spawned actor.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ended::Ended;
use super::keeper::KeeperRef;
use super::key::Address;
use super::watch;
use crate::actor::call::Call;
use crate::actor::cx::Scope;
use crate::actor::error::{Never, Refusal};
use crate::actor::interface::{Behaviour, Interface, Method, Why};
use crate::actor::key::ActorId;
use crate::actor::reference::Ref;
use crate::here::port::Port;

/// The reference with the methods of an `A`.
type RefOf<A> = <<A as Behaviour>::Interface as Interface>::Ref;

/// The address of one spawned actor. Its methods are those of the actor's reference: `pid.work(7).await`.
///
/// It is plain data: it travels in messages, also in those of other actors and other nodes, and works from anywhere in the
/// cluster. One that came in a message works inside of actors as it is; elsewhere, [`bind`](Pid::bind) it to a node. When
/// the actor has ended, calls of it are refused with [`Refusal::DeadLetter`](crate::Refusal::DeadLetter); the address is
/// never another's.
pub struct Pid<A: Behaviour> {
    reference: RefOf<A>,
    address: Address,
}

impl<A: Behaviour> Pid<A> {
    /// The actor at `address`, as seen from the node of `port`.
    pub(super) fn at(address: Address, port: Option<Arc<Port>>) -> Self {
        Self { reference: Ref::made(address.key(), port).into(), address }
    }

    fn untyped(&self) -> &Ref<A::Interface> {
        self.reference.as_ref()
    }

    /// The same actor, seen from `scope`.
    #[must_use]
    pub fn bind(&self, scope: &impl Scope) -> Self {
        Self { reference: self.untyped().bind(scope).into(), address: self.address }
    }

    /// The actor's full name: its kind, and a key by which it can be called from outside.
    pub fn id(&self) -> &ActorId {
        self.untyped().id()
    }

    /// The reference that has the actor's methods, for those that have the name of one of the pid's own, and for who
    /// does not care how the actor came to be.
    pub fn reference(&self) -> &RefOf<A> {
        &self.reference
    }

    /// Ends the actor after its current turn: what waits for it is refused, its `deactivating` hook runs, its children
    /// end. The call's reply comes when it has ended; `.send()` does not wait. An actor that stops itself, or one
    /// that waits for it, is not waited for.
    pub fn stop(&self) -> Call<impl Method<Reply = (), Error = Never>> {
        self.keeper().stop(self.address.number, Why::Stopped)
    }

    /// Ends the actor now: what its turn had begun is dropped, and who waits for that is told that it may have run. No
    /// hook runs.
    pub fn kill(&self) -> Call<impl Method<Reply = (), Error = Never>> {
        self.keeper().stop(self.address.number, Why::Killed)
    }

    /// Waits for the actor's end, however it comes: also that of its node.
    ///
    /// # Errors
    /// [`Refusal::Unbound`] outside of actors without [`bind`](Pid::bind); [`Refusal::Stopping`] when the node that waits
    /// stops.
    ///
    /// # Cancel safety
    /// Dropping the future ends the watch.
    pub fn ended(&self) -> impl Future<Output = Result<Ended, Refusal>> + Send + use<A> {
        watch::ended(self.id().clone(), self.address, self.untyped().inner().port.clone())
    }

    pub(super) fn address(&self) -> Address {
        self.address
    }

    fn keeper(&self) -> KeeperRef {
        Ref::made(self.address.keeper().key(), self.untyped().inner().port.clone()).into()
    }
}

impl<A: Behaviour> Deref for Pid<A> {
    type Target = RefOf<A>;

    fn deref(&self) -> &RefOf<A> {
        &self.reference
    }
}

impl<A: Behaviour> Clone for Pid<A> {
    fn clone(&self) -> Self {
        Self { reference: self.reference.clone(), address: self.address }
    }
}

impl<A: Behaviour> PartialEq for Pid<A> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl<A: Behaviour> Eq for Pid<A> {}

impl<A: Behaviour> Hash for Pid<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl<A: Behaviour> fmt::Debug for Pid<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.id(), f)
    }
}

impl<A: Behaviour> fmt::Display for Pid<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.id(), f)
    }
}

impl<A: Behaviour> Serialize for Pid<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.untyped().serialize(serializer)
    }
}

impl<'de, A: Behaviour> Deserialize<'de> for Pid<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let reference = Ref::<A::Interface>::deserialize(deserializer)?;
        match Address::parse(reference.key()) {
            Some(address) => Ok(Self { reference: reference.into(), address }),
            None => Err(serde::de::Error::custom("this is not the key of a spawned actor")),
        }
    }
}
