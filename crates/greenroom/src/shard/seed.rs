//! What activations begin with.

use std::any::Any;

use bytes::Bytes;

/// What an activation begins with, beside its key and what it loads from stores.
pub(crate) enum Seed {
    /// Nothing.
    Fresh,
    /// What its last activation, elsewhere, has packed.
    Carried(Bytes),
    /// What its maker knows of its fields: its [`memory`](crate::actor::cx::CxState::memory).
    Kept(Box<dyn Any + Send + Sync>),
}
