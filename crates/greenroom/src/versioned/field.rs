//! Versioned states as fields of actors.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use greenroom_protocols::bcas::{Change, Version};
use greenroom_protocols::state_versions::StateVersions;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::enqueued::{limit, not_active};
use super::instance::{Instance, Taken};
use super::protocol::{Types, UpdateValue};
use super::tally::Asked;
use super::{Enqueued, Recorded, VersionedStateWithOutput, Versions, values};
use crate::actor::cx::Cx;
use crate::state::{AnyStored, Loading, StateError, StoredVersions};

/// A versioned state of its own in a field of an actor, kept by the kind's [protocol](super::protocol), under the field's name. It
/// is there when the actor activates; all its methods take `&self`, so that turns wait for the store side by side.
///
/// ```
/// use greenroom::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Clone, Serialize, Deserialize)]
/// # struct Count { count: i64 }
/// # impl VersionedState for Count {
/// #     type Update = i64;
/// #     fn apply(&mut self, update: &i64) { self.count += update }
/// # }
/// #[derive(Default, Actor)]
/// pub struct Counter { state: Versioned<Count> }
///
/// #[actor]
/// impl Counter {
///     /// Answers at once; the update is confirmed in the background.
///     #[update]
///     pub async fn add(&self, n: i64) {
///         self.state.enqueue(n);
///     }
///
///     /// Linearizable.
///     #[update]
///     pub async fn add_now(&self, n: i64) -> Result<(), StateError> {
///         self.state.enqueue(n);
///         self.state.confirm_updates().await
///     }
///
///     pub async fn get(&self) -> i64 {
///         self.state.tentative().count
///     }
/// }
/// ```
pub struct Versioned<S: VersionedStateWithOutput> {
    instance: Option<Arc<Instance>>,
    state: PhantomData<fn() -> S>,
}

impl<S: VersionedStateWithOutput> Default for Versioned<S> {
    fn default() -> Self {
        Self { instance: None, state: PhantomData }
    }
}

impl<S: VersionedStateWithOutput> Versioned<S> {
    /// Applies `update` to the tentative state at once, and sees to it that it is confirmed: applied exactly once, in the one
    /// order, in the store, whatever fails, unless the node dies before.
    ///
    /// At most 65,536 updates wait: what is over that is refused, and whoever awaits it or confirms hears of it.
    pub fn enqueue(&self, update: S::Update) -> Enqueued<S> {
        let taken = self.instance.as_ref().map(|instance| {
            instance.note(Asked::Update);
            let written = instance.types().written().updates;
            let taken = instance.enqueue(Change::Update(UpdateValue::new::<S>(update, written)));
            (instance.clone(), taken)
        });
        Enqueued::new(taken)
    }

    /// Enqueues `update`, and waits until it is confirmed, for what its `apply` gave.
    ///
    /// # Errors
    /// [`UpdateError`](super::UpdateError).
    ///
    /// # Cancel safety
    /// Dropping the future gives up the outcome, not the update.
    pub async fn confirm(&self, update: S::Update) -> Result<S::Output, super::UpdateError> {
        self.enqueue(update).await
    }

    /// Enqueues a return to the default state, with a new [incarnation](Version::incarnation) where that is stored.
    pub fn clear(&self) {
        if let Some(instance) = &self.instance {
            // What finds no room is told to who confirms.
            let (Taken::Waits(_) | Taken::Full | Taken::Rejected(_)) = instance.enqueue(Change::Clear);
        }
    }

    /// The confirmed state with this instance's own updates on top.
    pub fn tentative(&self) -> Arc<S> {
        self.instance.as_ref().map_or_else(Arc::default, |instance| {
            instance.note(Asked::Read);
            instance.tentative().typed()
        })
    }

    /// The last state that is known to be in the one sequence, and its version.
    pub fn confirmed(&self) -> (Arc<S>, Version) {
        self.instance.as_ref().map_or_else(Default::default, |instance| {
            instance.note(Asked::Read);
            let (state, version) = instance.confirmed();
            (state.typed(), version)
        })
    }

    /// The confirmed states from now on, as a stream: first the one that is there, then each later one. It can be a method's
    /// stream of replies.
    pub fn versions(&self) -> Versions<S> {
        Versions::new(self.instance.as_ref().map(|instance| instance.subscribe()))
    }

    /// The confirmed updates at these positions (from 1), oldest first, at most 1000 of them: ask again behind the last one.
    ///
    /// # Errors
    /// [`StateError::Unconfirmed`] if the kind's protocol keeps no history, [`StateError::NotLoaded`] if it cannot be read.
    pub async fn history(&self, positions: impl RangeBounds<u64>) -> Result<Vec<Recorded<S::Update>>, StateError> {
        self.instance()?.history::<S>(positions).await
    }

    /// The state as it was after the update at `position`, made of the last snapshot before it and the updates behind that.
    ///
    /// # Errors
    /// As for [`history`](Self::history); also if there is no such update yet.
    pub async fn state_at(&self, position: u64) -> Result<(Arc<S>, Version), StateError> {
        self.instance()?.state_at::<S>(position).await
    }

    /// How many updates are not confirmed yet.
    pub fn unconfirmed(&self) -> usize {
        self.instance.as_ref().map_or(0, |instance| instance.pending())
    }

    /// Waits until all that was enqueued before is confirmed.
    ///
    /// # Errors
    /// [`StateError::Unconfirmed`] if that takes longer than the node's `store_timeout` or the turn's own time: the
    /// updates still wait, do not enqueue them again. [`StateError::Overflow`] if updates were refused before.
    ///
    /// # Cancel safety
    /// Dropping the future gives up waiting, nothing else.
    pub async fn confirm_updates(&self) -> Result<(), StateError> {
        let instance = self.instance()?;
        instance.note(Asked::Confirm);
        instance.confirm(limit()).await
    }

    /// Waits until the confirmed state is one that was the latest at some moment after this call, and all that was
    /// enqueued before is confirmed.
    ///
    /// # Errors
    /// As for [`confirm_updates`](Self::confirm_updates).
    ///
    /// # Cancel safety
    /// Dropping the future gives up waiting, nothing else.
    pub async fn refresh_now(&self) -> Result<(), StateError> {
        let instance = self.instance()?;
        instance.note(Asked::Refresh);
        instance.refresh(limit()).await
    }

    /// The confirmed state, of `version` or a later one: what a client has seen elsewhere it does not see undone here.
    ///
    /// # Errors
    /// As for [`confirm_updates`](Self::confirm_updates); also if there is no such version yet.
    pub async fn read_at_least(&self, version: Version) -> Result<(Arc<S>, Version), StateError> {
        let seen = self.confirmed();
        if seen.1 >= version {
            return Ok(seen);
        }
        let instance = self.instance()?;
        instance.note(Asked::Refresh);
        instance.refresh(limit()).await?;
        let seen = self.confirmed();
        if seen.1 < version {
            return Err(instance.unconfirmed("there is no such version yet"));
        }
        Ok(seen)
    }

    fn instance(&self) -> Result<&Arc<Instance>, StateError> {
        self.instance.as_ref().ok_or_else(not_active)
    }
}

impl<S: VersionedStateWithOutput> AnyStored for Versioned<S> {
    fn load<'a>(&'a mut self, cx: &'a Cx, name: &'static str) -> Loading<'a> {
        Box::pin(async move {
            cx.enter_namespace().await.map_err(|why| StateError::not_loaded(name, why))?;
            let instance =
                Instance::new(cx, name, Types::of::<S>()).map_err(|why| StateError::not_loaded(name, why))?;
            if let Some(before) = self.instance.replace(instance.clone()) {
                before.end();
            }
            instance.load(cx.time_left()).await
        })
    }

    fn save_changed<'a>(&'a mut self, _: &'a Cx) -> Loading<'a> {
        // Its updates save themselves.
        Box::pin(std::future::ready(Ok(())))
    }

    fn is_settled(&self) -> bool {
        self.unconfirmed() == 0
    }

    fn yields<'a>(&'a mut self) -> Loading<'a> {
        Box::pin(async move { self.instance()?.yields().await })
    }

    fn settle<'a>(&'a mut self, _: &'a Cx) -> Loading<'a> {
        Box::pin(async move { self.instance()?.confirm(None).await })
    }
}

impl<S: VersionedStateWithOutput> StoredVersions for Versioned<S> {
    const VERSIONS: StateVersions = values::state_versions::<S>();
    const UPDATES: Option<StateVersions> = Some(values::update_versions::<S>());
}

impl<S: VersionedStateWithOutput> Drop for Versioned<S> {
    fn drop(&mut self) {
        if let Some(instance) = &self.instance {
            instance.end();
        }
    }
}

impl<S: VersionedStateWithOutput + fmt::Debug> fmt::Debug for Versioned<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tentative().fmt(f)
    }
}

// In an actor that is persistent as a whole, the field is a record of its own: nothing of it is in the actor's.
impl<S: VersionedStateWithOutput> Serialize for Versioned<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.serialize_unit()
    }
}

impl<'de, S: VersionedStateWithOutput> Deserialize<'de> for Versioned<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self::default())
    }
}
