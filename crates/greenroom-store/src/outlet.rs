//! Where outputs of reliable actors go: out of Greenroom, to a queue or a hook.

use std::fmt::Debug;

use bytes::Bytes;
use futures_util::future::BoxFuture;

/// Takes outputs, each at least once.
pub trait Outlet: Debug + Send + Sync + 'static {
    /// Hands `output` over; done when the receiver has it for good. After an error it is handed over again, and also when
    /// its node has died before it could write down that it was: with the same [`Output::key`].
    ///
    /// # Errors
    ///
    /// Why not, in words.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped leaves it open whether the receiver has it.
    fn deliver(&self, output: Output) -> BoxFuture<'_, Result<(), String>>;
}

/// What a turn of a reliable actor sends to the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// Tells repeats: each output has its own, the same for all times that it is handed over.
    pub key: String,
    /// Who sends it, as `kind/key`.
    pub from: String,
    /// What it says, in JSON.
    pub body: Bytes,
}

impl Output {
    /// One output.
    pub fn new(key: String, from: String, body: Bytes) -> Self {
        Self { key, from, body }
    }
}
