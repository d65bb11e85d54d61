//! States as fields.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;

use greenroom_protocols::state_versions::StateVersions;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Lost, Site, Slot, State, StateError, Written};
use crate::actor::cx::Cx;

/// A state of its own in a field of an actor, kept in the store under the field's name. It is loaded when the actor
/// activates, its `Default` if there is none yet.
///
/// ```
/// use greenroom::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize)]
/// struct Profile { name: String }
/// impl State for Profile {}
///
/// #[derive(Default, Actor)]
/// pub struct User { profile: Stored<Profile>, seen: u64 }
///
/// #[actor]
/// impl User {
///     pub async fn rename(&mut self, cx: &Cx, name: String) -> Result<(), StateError> {
///         self.profile.name = name;
///         self.profile.save(cx).await
///     }
/// }
/// ```
pub struct Stored<S> {
    value: S,
    name: &'static str,
    slot: Slot,
}

impl<S: Default> Default for Stored<S> {
    fn default() -> Self {
        Self { value: S::default(), name: "", slot: Slot::default() }
    }
}

impl<S: State + Default> Stored<S> {
    /// Writes the state, if it is still as this activation last saw it.
    ///
    /// # Errors
    /// [`StateError`]. On [`StateError::Conflict`] the field holds what is there now.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the outcome unknown: end the activation then, or reload.
    pub async fn save(&mut self, cx: &Cx) -> Result<(), StateError> {
        self.write(cx).await.map_err(|error| cx.note(error))
    }

    async fn write(&mut self, cx: &Cx) -> Result<(), StateError> {
        let site = self.site(cx)?;
        let saved = self.slot.save(cx, &site, &self.value).await;
        self.saved(saved)
    }

    /// Goes on with what is in the store, where the value was not saved for that.
    fn saved(&mut self, saved: Result<(), Lost<S>>) -> Result<(), StateError> {
        saved.map_err(|lost| {
            if let Some(found) = lost.found {
                self.value = found.unwrap_or_default();
            }
            lost.error
        })
    }

    /// Reads the state again; its `Default` if there is none.
    ///
    /// # Errors
    /// [`StateError::NotLoaded`]; the field is as it was.
    pub async fn reload(&mut self, cx: &Cx) -> Result<(), StateError> {
        let site = self.site(cx)?;
        self.value = self.slot.load(cx, &site).await?.unwrap_or_default();
        Ok(())
    }

    /// Removes the state from the store and makes the field its `Default`.
    ///
    /// # Errors
    /// As for [`save`](Self::save); the field is as it was.
    pub async fn clear(&mut self, cx: &Cx) -> Result<(), StateError> {
        let site = self.site(cx)?;
        self.slot.clear(cx, &site).await.map_err(|error| cx.note(error))?;
        self.value = S::default();
        Ok(())
    }

    fn site(&self, cx: &Cx) -> Result<Site, StateError> {
        if self.name.is_empty() {
            return Err(StateError::not_saved(&format!("{} of {}", std::any::type_name::<S>(), cx.kind()), NAMELESS));
        }
        cx.site(self.name).map_err(|why| StateError::not_saved(self.name, why))
    }
}

/// A field that is a state of its own, and the versions of its type: for the code that the macros write.
#[doc(hidden)]
pub trait StoredVersions {
    /// As other nodes are told of them.
    const VERSIONS: StateVersions;
    /// Those of its updates' type, if it is changed by updates.
    const UPDATES: Option<StateVersions> = None;

    /// What somebody has written as JSON, as a record of it, while version `in_force` of its type is what all nodes read; `None` if it is
    /// changed by updates alone.
    fn written(json: &[u8], in_force: u8) -> Option<Result<Written, String>> {
        let _ = (json, in_force);
        None
    }
}

/// What the updates of the versioned state called `field` are called among a kind's states: no field can be called so.
pub(crate) fn updates_of(field: &str) -> String {
    format!("{field}.updates")
}

impl<S: State> StoredVersions for Stored<S> {
    const VERSIONS: StateVersions = super::versions::<S>();

    fn written(json: &[u8], in_force: u8) -> Option<Result<Written, String>> {
        Some(super::written::<S>(json, in_force))
    }
}

/// What a state in a field takes its time for.
pub(crate) type Loading<'a> = Pin<Box<dyn Future<Output = Result<(), StateError>> + Send + 'a>>;

/// A [`Stored`] field whose type is not known: for the code that the macros write.
pub trait AnyStored: Send {
    /// Gives it its name and loads it.
    #[doc(hidden)]
    fn load<'a>(&'a mut self, cx: &'a Cx, name: &'static str) -> Loading<'a>;

    /// Reads it again if another activation has written it.
    #[doc(hidden)]
    fn refresh<'a>(&'a mut self, _cx: &'a Cx) -> Loading<'a> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Saves it if it has changed. What follows from an error is left to the caller.
    #[doc(hidden)]
    fn save_changed<'a>(&'a mut self, cx: &'a Cx) -> Loading<'a>;

    /// Whether nothing of it would be lost if the activation ended now, beside what waits for an explicit save.
    #[doc(hidden)]
    fn is_settled(&self) -> bool {
        true
    }

    /// Hands to the instance of another cluster, which stays, what only this one has.
    #[doc(hidden)]
    fn yields<'a>(&'a mut self) -> Loading<'a> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Waits until it is settled.
    #[doc(hidden)]
    fn settle<'a>(&'a mut self, _cx: &'a Cx) -> Loading<'a> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl<S: State + Default> AnyStored for Stored<S> {
    fn load<'a>(&'a mut self, cx: &'a Cx, name: &'static str) -> Loading<'a> {
        self.name = name;
        Box::pin(async move {
            cx.enter_namespace().await.map_err(|why| StateError::not_loaded(name, why))?;
            let site = self.site(cx)?;
            self.value = self.slot.load_first(cx, &site).await?.unwrap_or_default();
            Ok(())
        })
    }

    fn refresh<'a>(&'a mut self, cx: &'a Cx) -> Loading<'a> {
        Box::pin(async move {
            let site = self.site(cx)?;
            if let Some(found) = self.slot.refresh(cx, &site).await? {
                self.value = found.unwrap_or_default();
            }
            Ok(())
        })
    }

    fn save_changed<'a>(&'a mut self, cx: &'a Cx) -> Loading<'a> {
        Box::pin(async move {
            let site = self.site(cx)?;
            let saved = self.slot.save_changed(cx, &site, &self.value).await;
            self.saved(saved)
        })
    }
}

impl<S> Deref for Stored<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.value
    }
}

impl<S> DerefMut for Stored<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.value
    }
}

impl<S: fmt::Debug> fmt::Debug for Stored<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// Why a state is not kept that has no name.
const NAMELESS: &str = "it is in no field that `#[derive(Actor)]` has given its name: write the derive above the actor's struct, in place \
                        of an `impl Actor` by hand, and do not replace the field that the actor came with";

// In an actor that is persistent as a whole, the field is a record of its own: nothing of it is in the actor's.
impl<S> Serialize for Stored<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.serialize_unit()
    }
}

impl<'de, S: Default> Deserialize<'de> for Stored<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self::default())
    }
}
