//! State that outlives activations: loaded when an actor activates, saved by conditional writes.
//!
//! A state is one record of a store. Each save expects the version that the activation last saw, so of two activations
//! that think they are the only one, the one that loses hears of it; the record names the activation that wrote it.

mod error;
mod held;
mod record;
mod slot;
mod stored;

use std::time::Duration;

use greenroom_wire::codec;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::error::StateError;
pub(crate) use self::held::{Held, Holder};
pub(crate) use self::slot::{Site, Slot};
pub(crate) use self::stored::Loading;
pub use self::stored::{AnyStored, Stored};

/// A value that can be kept in a store. `#[actor(persistent)]` implements it for the actor; for the `S` of a
/// [`Stored<S>`] write `impl State for S {}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no state that can be kept in a store",
    note = "write `#[actor(persistent)]` above an `impl {Self}` block if it is the actor, or else `impl State for {Self} {{}}`"
)]
pub trait State: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The version of this type's fields. Raise it when [`migrate`](State::migrate) must tell records apart; a field that
    /// comes with `#[serde(default)]`, or one that goes, needs no new version.
    const VERSION: u8 = 1;

    /// Reads a record that was written under another [`VERSION`](State::VERSION), never a higher one than this.
    ///
    /// # Errors
    /// What is wrong with it; the actor then does not activate, and the record stays as it is.
    fn migrate(old: Old<'_>) -> Result<Self, String> {
        old.read()
    }
}

/// A record of an earlier version of a type.
#[derive(Clone, Copy, Debug)]
pub struct Old<'a> {
    payload: &'a [u8],
    version: u8,
}

impl<'a> Old<'a> {
    pub(crate) fn new(payload: &'a [u8], version: u8) -> Self {
        Self { payload, version }
    }
    /// The [`State::VERSION`] that it was written under.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// The record as a `T`: the type as it was then.
    ///
    /// # Errors
    /// What does not fit.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        codec::decode(self.payload).map_err(|error| error.to_string())
    }
}

/// The name of a state that is the actor as a whole: no field can be called so.
pub(crate) const WHOLE: &str = "self";

/// When an actor's state is saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Saving {
    /// When the actor says so.
    #[default]
    Explicit,
    /// After each exclusive turn that has changed it, before anybody hears of the turn's end.
    EachTurn,
    /// After a change, but only once in so much time: what was answered meanwhile is lost if the node dies.
    Every(Duration),
}
