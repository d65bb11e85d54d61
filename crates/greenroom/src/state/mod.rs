//! State that outlives activations: loaded when an actor activates, saved by conditional writes.
//!
//! A state is one record of a store. Each save expects the version that the activation last saw, so of two activations
//! that think they are the only one, the one that loses hears of it; the record names the activation that wrote it.

pub(crate) mod early;
pub(crate) mod error;
mod held;
pub(crate) mod namespace;
mod payload;
mod record;
pub(crate) mod shown;
mod slot;
mod stored;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::state_versions::StateVersions;
use greenroom_wire::codec::{self, Codec};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::error::StateError;
pub(crate) use self::held::{Held, Holder};
#[doc(hidden)]
pub use self::namespace::{NamespaceEntry, NamespaceList, read_namespaces, rename_namespace};
#[doc(hidden)]
pub use self::shown::written;
pub(crate) use self::slot::{Lost, Site, Slot};
pub use self::stored::{AnyStored, Stored, StoredVersions};
pub(crate) use self::stored::{Loading, updates_of};

/// A value that can be kept in a store. `#[actor(persistent)]` implements it for the actor; for the `S` of a
/// [`Stored<S>`] write `impl State for S {}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no state that can be kept in a store",
    note = "write `#[actor(persistent)]` above an `impl {Self}` block if it is the actor, or else `impl State for {Self} {{}}`"
)]
pub trait State: Data {
    /// The version of this type's fields. Raise it when [`migrate`](State::migrate) must tell records apart; a field that
    /// comes with `#[serde(default)]`, or one that goes, needs no new version.
    const VERSION: u8 = 1;

    /// The earliest version that [`write_older`](State::write_older) writes: that of the program before, if nodes of both are to
    /// host the actors side by side. While nodes that read no later one than an earlier version can host the kind, that is
    /// what is written; without it, such nodes keep the kind's actors until the last of them is gone.
    const WRITES: u8 = Self::VERSION;

    /// Reads a record that was written under another [`VERSION`](State::VERSION), never a higher one than this.
    ///
    /// # Errors
    /// What is wrong with it; the actor then does not activate, and the record stays as it is.
    fn migrate(old: Old<'_>) -> Result<Self, String> {
        old.read()
    }

    /// Writes this as an earlier version of the type was, from [`WRITES`](State::WRITES) on:
    /// `older.write(&TillV1 { .. })`. What that version has no place for is not kept.
    ///
    /// # Errors
    /// What keeps it from being written; nothing is then saved.
    fn write_older(&self, older: Older) -> Result<Written, String> {
        Err(format!("its type does not say how version {} is written: implement `State::write_older`", older.version()))
    }
}

/// What a [`State`] is made of: plain serde data.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept in a store",
    label = "a state is plain serde data",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it, with `#[serde(skip)]` above what is not to be kept"
)]
pub trait Data: Serialize + DeserializeOwned + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<S: Serialize + DeserializeOwned + Send + Sync + 'static> Data for S {}

/// Asserts that a persistent actor is such data, where the actor is named.
#[doc(hidden)]
pub const fn state_of<A: Data>() {}

/// The versions of `S`, as other nodes are told of them.
#[doc(hidden)]
pub const fn versions<S: State>() -> StateVersions {
    StateVersions { reads: S::VERSION, writes: if S::WRITES < S::VERSION { S::WRITES } else { S::VERSION } }
}

/// An earlier version of a type, which nodes of an older program read.
#[derive(Debug)]
pub struct Older {
    version: u8,
}

/// A state as an earlier version of its type writes it.
#[derive(Debug)]
pub struct Written(BytesMut);

impl Older {
    pub(crate) fn new(version: u8) -> Self {
        Self { version }
    }

    /// The [`State::VERSION`] to write.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// The record of `value`: of the type as it was then.
    ///
    /// # Errors
    /// What the serializer says.
    pub fn write<T: Serialize>(self, value: &T) -> Result<Written, String> {
        let mut payload = BytesMut::new();
        codec::encode(Codec::MessagePack, self.version, value, &mut payload).map_err(|error| error.to_string())?;
        Ok(Written(payload))
    }
}

impl Written {
    pub(crate) fn into_bytes(self) -> Bytes {
        self.0.freeze()
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
