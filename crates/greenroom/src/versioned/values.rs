//! States, updates and outputs as protocols hold them. Only who made them knows their types.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use greenroom_protocols::bcas;
use greenroom_protocols::state_versions::StateVersions;
use greenroom_wire::codec::{self, Codec, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Rejected, VersionedStateWithOutput};
use crate::state::{Old, Older, Written};

/// A value of some state's type, shared until it changes; at first the default.
///
/// Two are equal if they are the same one, as are two updates and two outputs.
#[derive(Clone, Default)]
pub struct StateValue(Option<Here>);

/// An update of some state.
#[derive(Clone)]
pub struct UpdateValue(Arc<dyn AnyUpdate>);

/// What an update gave.
#[derive(Clone)]
pub struct OutputValue(Here);

/// How the values of one state become bytes and come back: payloads with their codec and type version.
#[derive(Clone, Copy)]
pub struct Types {
    /// The versions of the state's type and of its updates'.
    state: StateVersions,
    updates: StateVersions,
    /// Those of them that are written.
    written: Writing,
    encode_state: fn(&StateValue, u8) -> Result<Bytes, String>,
    /// The state that these bytes are.
    pub decode_state: fn(&[u8]) -> Result<StateValue, String>,
    decode_update: fn(&[u8], u8) -> Result<UpdateValue, String>,
    /// An output's bytes.
    pub encode_output: fn(&OutputValue) -> Result<Bytes, String>,
    /// The output that these bytes are.
    pub decode_output: fn(&[u8]) -> Result<OutputValue, String>,
}

/// The versions that a state and its updates are written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Writing {
    pub(super) state: u8,
    pub(super) updates: u8,
}

type Here = Arc<dyn Any + Send + Sync>;

trait AnyUpdate: Send + Sync {
    fn apply(&self, state: &mut StateValue) -> Result<OutputValue, Rejected>;
    fn encode(&self) -> Result<Bytes, String>;
    fn any(&self) -> &dyn Any;
}

struct Typed<S: VersionedStateWithOutput> {
    update: S::Update,
    /// The version of its type that is written.
    version: u8,
    /// Its bytes, once somebody has asked for them.
    encoded: OnceLock<Result<Bytes, String>>,
}

impl<S: VersionedStateWithOutput> AnyUpdate for Typed<S> {
    fn apply(&self, state: &mut StateValue) -> Result<OutputValue, Rejected> {
        let mut own = state.0.take().and_then(|state| state.downcast::<S>().ok()).unwrap_or_default();
        let changed = Arc::make_mut(&mut own);
        let applied = catch_unwind(AssertUnwindSafe(|| changed.apply(&self.update)));
        state.0 = Some(own);
        match applied {
            Ok(result) => result.map(|output| OutputValue(Arc::new(output))),
            Err(panic) => Err(Rejected(format!("it panicked: {}", crate::shard::panic_message(&*panic)))),
        }
    }

    fn encode(&self) -> Result<Bytes, String> {
        let write = || match self.version < S::UPDATE_VERSION {
            true => S::write_older_update(&self.update, Older::new(self.version)).map(Written::into_bytes),
            false => encode(S::UPDATE_VERSION, &self.update),
        };
        self.encoded.get_or_init(write).clone()
    }

    fn any(&self) -> &dyn Any {
        &self.update
    }
}

impl StateValue {
    /// The state as a value of its type.
    pub(super) fn typed<S: VersionedStateWithOutput>(&self) -> Arc<S> {
        self.0.clone().and_then(|state| state.downcast::<S>().ok()).unwrap_or_default()
    }
}

impl UpdateValue {
    /// An update of a state of type `S`, which is written in `version` of its type.
    pub(super) fn new<S: VersionedStateWithOutput>(update: S::Update, version: u8) -> Self {
        Self(Arc::new(Typed::<S> { update, version, encoded: OnceLock::new() }))
    }

    /// Its bytes, which are made once.
    ///
    /// # Errors
    /// Why it has none.
    pub fn encode(&self) -> Result<Bytes, String> {
        self.0.encode()
    }

    /// The update as a value of its type.
    pub(super) fn typed<S: VersionedStateWithOutput>(&self) -> Option<&S::Update> {
        self.0.any().downcast_ref()
    }
}

impl OutputValue {
    /// The output as a value of its type, if nobody else holds it.
    pub(super) fn typed<S: VersionedStateWithOutput>(self) -> Option<S::Output> {
        self.0.downcast::<S::Output>().ok().and_then(Arc::into_inner)
    }
}

impl Types {
    /// Those of a state of type `S`.
    pub(super) fn of<S: VersionedStateWithOutput>() -> Self {
        Self {
            state: state_versions::<S>(),
            updates: update_versions::<S>(),
            written: Writing { state: S::VERSION, updates: S::UPDATE_VERSION },
            encode_state: |state, version| match version < S::VERSION {
                true => state.typed::<S>().write_older(Older::new(version)).map(Written::into_bytes),
                false => encode(S::VERSION, &*state.typed::<S>()),
            },
            decode_state: |payload| {
                let state = decode::<S>(payload, S::VERSION, S::migrate)?;
                Ok(StateValue(Some(Arc::new(state))))
            },
            decode_update: |payload, version| {
                let update = decode(payload, S::UPDATE_VERSION, S::migrate_update)?;
                Ok(UpdateValue::new::<S>(update, version))
            },
            encode_output: |output| match output.0.downcast_ref::<S::Output>() {
                Some(output) => encode(1, output),
                None => Err("it is the output of another state".to_owned()),
            },
            decode_output: |payload| {
                let output: S::Output = codec::decode(payload).map_err(|error| error.to_string())?;
                Ok(OutputValue(Arc::new(output)))
            },
        }
    }
}

impl Types {
    /// The same, while these versions are in force: [`StateVersions::written`] is what is written.
    pub(super) fn under(self, in_force: Writing) -> Self {
        let (state, updates) = (self.state.written(in_force.state), self.updates.written(in_force.updates));
        Self { written: Writing { state, updates }, ..self }
    }

    /// The versions that are written.
    pub(super) fn written(&self) -> Writing {
        self.written
    }

    /// A state's bytes, in the version that all who may read it read.
    ///
    /// # Errors
    /// Why it has none.
    pub fn encode_state(&self, state: &StateValue) -> Result<Bytes, String> {
        (self.encode_state)(state, self.written.state)
    }

    /// The update that these bytes are.
    ///
    /// # Errors
    /// What does not fit.
    pub fn decode_update(&self, bytes: &[u8]) -> Result<UpdateValue, String> {
        (self.decode_update)(bytes, self.written.updates)
    }
}

/// The versions of a state's type, as other nodes are told of them.
pub(super) const fn state_versions<S: VersionedStateWithOutput>() -> StateVersions {
    StateVersions { reads: S::VERSION, writes: if S::WRITES < S::VERSION { S::WRITES } else { S::VERSION } }
}

/// Those of its updates' type.
pub(super) const fn update_versions<S: VersionedStateWithOutput>() -> StateVersions {
    let (reads, writes) = (S::UPDATE_VERSION, S::UPDATE_WRITES);
    StateVersions { reads, writes: if writes < reads { writes } else { reads } }
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Types")
    }
}

fn encode<T: Serialize>(version: u8, value: &T) -> Result<Bytes, String> {
    let mut out = BytesMut::new();
    codec::encode(Codec::MessagePack, version, value, &mut out).map_err(|error| error.to_string())?;
    Ok(out.freeze())
}

/// The value that was written by this or an earlier version of its type.
fn decode<T: DeserializeOwned>(
    payload: &[u8],
    version: u8,
    migrate: fn(Old<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let Payload { type_version, .. } = codec::parse(payload).map_err(|error| error.to_string())?;
    if type_version == version {
        return codec::decode(payload).map_err(|error| error.to_string());
    }
    if type_version > version {
        return Err(format!(
            "it was written by version {type_version} of its type, this program knows up to {version}; run the newer program"
        ));
    }
    migrate(Old::new(payload, type_version))
}

impl bcas::Versioned for StateValue {
    type Update = UpdateValue;
    type Output = OutputValue;
    type Error = Rejected;

    fn apply(&mut self, update: &UpdateValue) -> Result<OutputValue, Rejected> {
        update.0.apply(self)
    }

    fn weight(update: &UpdateValue) -> usize {
        update.encode().map_or(0, |bytes| bytes.len())
    }
}

fn address(value: Option<*const ()>) -> usize {
    value.map_or(0, |value| value.addr())
}

macro_rules! same_by_address {
    ($($name:ident: $address:expr;)*) => {$(
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                $address(self) == $address(other)
            }
        }

        impl Eq for $name {}

        impl Hash for $name {
            fn hash<H: Hasher>(&self, hasher: &mut H) {
                $address(self).hash(hasher);
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("..")
            }
        }
    )*};
}

same_by_address! {
    StateValue: |state: &Self| address(state.0.as_ref().map(|state| Arc::as_ptr(state).cast()));
    UpdateValue: |update: &Self| address(Some(Arc::as_ptr(&update.0).cast()));
    OutputValue: |output: &Self| address(Some(Arc::as_ptr(&output.0).cast()));
}
