//! The claims that every store and journal keeps: run them from a provider's own tests.
//!
//! - [`store::all`] takes a [`Harness`]: everything that [`Store`] promises, single keys linearizable under load included.
//! - [`journal::all`] takes the openings of a journal: everything that [`Journal`](greenroom_store::Journal) promises.
//! - [`network::store`] and [`network::journal`] take an engine behind a [`Relay`] that delays, holds and cuts.
//! - [`crash`] gives the work of a process (or of a server) that is killed in the middle of it, and its examination.
//! - [`restarts`] stops and restarts an engine with servers while writes go on.
//!
//! Each claim is a function that panics, naming what it saw, when the claim does not hold. A claim uses keys under a
//! prefix of its own, so that claims may also run one by one or side by side on one store, which must be empty at first.
//!
//! ```
//! use std::sync::Arc;
//! use greenroom_store::memory::MemoryStore;
//! use greenroom_store_conformance::{Harness, journal, store};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let memory = MemoryStore::new();
//! store::all(&Harness::new(Arc::new(memory.clone()))).await;
//! journal::all(&[Arc::new(memory)]).await;
//! # });
//! ```

pub mod crash;
mod dice;
mod elsewhere;
pub mod history;
pub mod journal;
pub mod network;
mod plain;
pub mod relay;
pub mod restarts;
pub mod store;

use std::sync::Arc;
use std::time::Duration;

use greenroom_store::Store;

pub use relay::Relay;

/// A store to examine: one opening of it, or several, as several nodes have.
#[derive(Clone, Debug)]
pub struct Harness {
    openings: Vec<Arc<dyn Store>>,
    value_bytes_max: usize,
}

impl Harness {
    /// The store as one node has opened it; values up to 1 MiB, which every store takes.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { openings: vec![store], value_bytes_max: VALUE_BYTES_EVERYWHERE }
    }

    /// The same store as one more node has opened it: what one writes the others must read at once.
    pub fn also(mut self, store: Arc<dyn Store>) -> Self {
        self.openings.push(store);
        self
    }

    /// The largest value that the provider says it takes: one of this size must come back whole, and one that is a byte
    /// larger must be refused as too large.
    pub fn value_bytes_max(mut self, bytes: usize) -> Self {
        self.value_bytes_max = bytes;
        self
    }

    fn first(&self) -> &dyn Store {
        &*self.openings[0]
    }
}

/// What every store takes as a value: 1 MiB. (An engine's limit is for key, value and what goes with them.)
pub const VALUE_BYTES_EVERYWHERE: usize = 1 << 20;

/// Generous, for slow disks: these are claims about outcomes, not about speed.
const BY: Duration = Duration::from_secs(30);
