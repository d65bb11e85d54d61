//! The runtime that a client's connections belong to, while calls come from any.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::{Result, StoreError};

/// A client of an engine, at home in the runtime in which it was opened; clones share it.
#[derive(Debug)]
pub struct Home<C> {
    client: Arc<C>,
    runtime: Handle,
}

impl<C> Clone for Home<C> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), runtime: self.runtime.clone() }
    }
}

impl<C> Deref for Home<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.client
    }
}

/// Whether an operation leaves a trace in the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// When its fate is not known, nothing has changed.
    Read,
    /// When its fate is not known, it may have been applied.
    Write,
}

impl<C> Home<C> {
    /// Makes the current runtime the home of `client`.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(client: C) -> Self {
        Self { client: Arc::new(client), runtime: Handle::current() }
    }

    /// Carries out `operation` on `key` at home, for at most `timeout`.
    ///
    /// # Errors
    /// What the operation says; [`StoreError::Unknown`] for a write, and [`StoreError::NotApplied`] for a read or when there is no
    /// time at all, if it has not ended in time or the home runtime has ended.
    ///
    /// # Cancel safety
    /// Dropping it ends the operation; a write may have been applied.
    pub async fn run<T, F>(
        &self,
        key: &str,
        timeout: Duration,
        kind: Operation,
        operation: impl FnOnce(Arc<C>) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let failed = |reason: &str, remedy: &str| match kind {
            Operation::Write => StoreError::Unknown { key: key.to_owned(), reason: reason.to_owned() },
            Operation::Read => StoreError::NotApplied { key: key.to_owned(), reason: format!("{reason}; {remedy}") },
        };
        if timeout.is_zero() {
            let reason = "its timeout is zero; allow some time".to_owned();
            return Err(StoreError::NotApplied { key: key.to_owned(), reason });
        }
        let operation = operation(self.client.clone());
        let mut task = Task(self.runtime.spawn(async move { tokio::time::timeout(timeout, operation).await }));
        match (&mut task.0).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(failed("no answer came in time", "allow more time")),
            Err(_) => Err(failed("the runtime in which the store was opened has ended", "open it again")),
        }
    }
}

/// A task that ends with its caller's interest in it.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
