//! What Greenroom asks of an engine: storage with strongly consistent reads and conditional writes.
//!
//! [`Store`] is the one trait, and [`Journal`] one more for engines that commit several writes at once. [`memory`] is
//! the provider that needs nothing, and each other provider is a crate of its own. [`url`] parses what a configuration
//! says; the crate `greenroom-store-conformance` is what a provider's tests run.
//!
//! ```
//! use std::time::Duration;
//! use greenroom_store::{Store, memory::MemoryStore};
//!
//! # async fn example() -> greenroom_store::Result<()> {
//! let store = MemoryStore::new();
//! let by = Duration::from_secs(1);
//! let first = store.create("node/a", "joining".into(), by).await?;
//! let second = store.replace("node/a", "active".into(), &first, by).await?;
//! assert!(store.replace("node/a", "dead".into(), &first, by).await.is_err(), "the version is stale");
//! assert_eq!(store.read("node/a", by).await?.map(|found| found.version), Some(second));
//! # Ok(())
//! # }
//! ```

mod disk;
mod error;
pub mod journal;
pub mod key;
pub mod memory;
#[cfg(feature = "network")]
pub mod network;
mod outlet;
pub mod scan;
pub mod url;
mod version;

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

pub use disk::DiskUsage;
pub use error::{Applied, Found, Result, StoreError};
pub use journal::{Commit, Committed, Entry, Journal};
pub use outlet::{Outlet, Output, Undelivered};
pub use scan::{Item, Page};
pub use version::{Version, Versioned};

/// Storage of values under keys, with strongly consistent reads and conditional writes.
///
/// **Every single key is linearizable**: an operation takes effect at one moment between its call and its answer, and
/// a read sees every write that was acknowledged before the read began, whichever node or process made it.
///
/// **Versions are never reused.** Each applied write of a key gives it a version that the key never had before, also
/// after the key was deleted and created again. So an expected version can only match the very value it came with.
///
/// **A write answers for its effect.** [`StoreError::applied`] says of every error whether the write may have been
/// applied; a provider that cannot tell must answer [`StoreError::Unknown`]. A provider does not repeat a conditional
/// write by itself: it would be refused by its own success.
///
/// Keys are checked by [`key::check`]. Each call takes a `timeout`: it answers within about that time, whatever the
/// engine does, and an operation that has not begun by then is never begun.
///
/// # Cancel safety
///
/// A future that is dropped before it answers leaves the outcome unknown: the write may be applied, also later.
pub trait Store: Debug + Send + Sync + 'static {
    /// The value and version under `key`; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Whatever the error, nothing has changed, and the read may be repeated if the error is of a passing kind.
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>>;

    /// Puts `value` under `key` if nothing is there, and answers its version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the key exists; otherwise as [`StoreError::applied`] says.
    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>>;

    /// Puts `value` under `key` if the version there is `expected`, and answers the new version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if another version or nothing is there; otherwise as [`StoreError::applied`] says.
    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>>;

    /// Removes `key` if the version there is `expected`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if another version or nothing is there; otherwise as [`StoreError::applied`] says.
    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>>;

    /// A page of the items whose keys start with `prefix` (which may be empty) and come after `after`, in the byte
    /// order of their keys; pass [`Page::next`] as `after` to go on.
    ///
    /// A page holds at most `limit` items, clamped to 1..=[`scan::LIMIT_MAX`], and may hold fewer although more
    /// follow. Every item is as strongly consistent as a read. The pages together are not one snapshot: a key
    /// that exists from the first page to the last is met once; one that comes or goes meanwhile may or may not be.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>>;

    /// Returns the room that the store takes on a disk of this machine; `None` for one that is elsewhere, or in memory. It asks the file
    /// system, and blocks for that long.
    fn disk_usage(&self) -> Option<DiskUsage> {
        None
    }
}
