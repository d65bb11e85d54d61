//! Where outputs of reliable actors go: out of Greenroom, to a queue or a hook.

use std::fmt::Debug;

use bytes::Bytes;
use futures_util::future::BoxFuture;

/// Takes outputs, each at least once.
pub trait Outlet: Debug + Send + Sync + 'static {
    /// Hands `output` over; done when the receiver has it for good. After an error it is handed over again, and also when
    /// its node has died before it could write down that it was: with the same [`Output::key`]. What is refused again and
    /// again is at last parked, and waits for an operator.
    ///
    /// # Errors
    ///
    /// Why not.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped leaves it open whether the receiver has it.
    fn deliver(&self, output: Output) -> BoxFuture<'_, Result<(), Undelivered>>;
}

/// Why a receiver does not have an output, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Undelivered {
    /// It cannot take anything now: it is away, has no room, or nobody knows. The output is handed over until it can.
    #[error("{0}")]
    Unavailable(String),
    /// It does not want this output, for what it is. After some tries it is parked.
    #[error("{0}")]
    Refused(String),
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
