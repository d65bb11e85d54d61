//! Greenroom's store in an S3-compatible object store: for values that are large, rarely written, or to be kept cheaply.
//!
//! Every write is one conditional PUT (`If-None-Match: *`, `If-Match: ETag`), and the ETag is the [`Version`]. Each
//! object begins with a random salt, so that equal values have different ETags and none is ever given twice. A deletion
//! puts a tombstone, because not every server heeds conditions on DELETE. S3 and MinIO answer reads and listings as
//! strongly as [`Store`] asks; a server that ignores the conditions is recognised and refused when the store is opened.
//!
//! # Limits
//!
//! - A write of a hot key costs a round trip to the object store for each writer that tries: tens of milliseconds.
//! - A tombstone stays: [`ObjectStore::remove_tombstones`] says when they may go.
//! - There is no [`Journal`](greenroom_store::Journal): an object store cannot write two objects at once.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use greenroom_store_object::ObjectStore;
//!
//! let store = ObjectStore::open("s3://my-bucket/prod?region=eu-central-1").await?;
//! # Ok(())
//! # }
//! ```

mod body;
mod fault;
mod names;
mod object;
mod scan;
mod settings;

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::network::{Home, Operation};
use greenroom_store::url::{Remote, StoreUrl};
use greenroom_store::{Page, Result, Store, StoreError, Version, Versioned, key};

use body::Content;
use object::Bucket;

/// A store in a bucket. Clones share the connections.
///
/// The connections belong to the tokio runtime in which the store was opened, and are of no use after it; calls may come
/// from any runtime.
#[derive(Clone, Debug)]
pub struct ObjectStore {
    bucket: Home<Bucket>,
}

impl ObjectStore {
    /// Opens the store that `url` names, as [`open_remote`](Self::open_remote) does.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] if it is no URL of a bucket; otherwise as [`open_remote`](Self::open_remote).
    pub async fn open(url: &str) -> Result<Self> {
        let configuration =
            |reason: String| StoreError::Configuration { store: greenroom_store::url::redact(url), reason };
        match url.parse::<StoreUrl>() {
            Ok(StoreUrl::S3(remote)) => Self::open_remote(&remote).await,
            Ok(_) => Err(configuration("it is no bucket; write \"s3://bucket/prefix\"".to_owned())),
            Err(error) => Err(configuration(error.to_string())),
        }
    }

    /// Opens the store in `remote`'s bucket and makes sure that the server keeps conditions and that what is there is of
    /// a known format. Answers within 20 s. Must be called in a tokio runtime.
    ///
    /// Its path is a prefix for all objects, `greenroom` by default. Its user and password are the access key and the
    /// secret key; without them the environment says (`AWS_ACCESS_KEY_ID` and so on, or the machine's role). Its
    /// parameters: `endpoint` for servers other than AWS, `region`, `ca` (a PEM file), and `virtual_hosts=on` for
    /// servers that want the bucket in the host's name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] if the URL is at fault, there is no such bucket, or the server ignores conditions,
    /// [`StoreError::Unavailable`] if it does not answer, [`StoreError::Denied`] for a wrong key or a missing right,
    /// [`StoreError::Format`] if a newer Greenroom has written there.
    pub async fn open_remote(remote: &Remote) -> Result<Self> {
        // Fails if the process has chosen a provider already, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let store = Self { bucket: Home::new(Bucket::new(remote)?) };
        let checked = store
            .bucket
            .run("format", OPEN_TIMEOUT, Operation::Read, |bucket| async move { bucket.check().await })
            .await;
        checked.map_err(|error| match error {
            StoreError::NotApplied { reason, .. } => {
                StoreError::Unavailable { store: store.bucket.name().to_owned(), reason }
            }
            other => other,
        })?;
        Ok(store)
    }

    /// Removes what is left of deleted keys that begin with `prefix`, and answers how many there were.
    ///
    /// **Only while nobody writes**: a key that is created at the same moment may be removed with its tombstone, as not
    /// every server can delete on a condition. Tombstones cost 24 bytes and a place in listings; they may stay.
    ///
    /// # Errors
    ///
    /// As for a write; some may be gone after any error.
    pub async fn remove_tombstones(&self, prefix: &str, timeout: Duration) -> Result<u64> {
        key::check_prefix(prefix)?;
        let owned = prefix.to_owned();
        self.bucket
            .run(prefix, timeout, Operation::Write, |bucket| async move { bucket.remove_tombstones(&owned).await })
            .await
    }

    async fn put(&self, key: &str, expected: Option<Version>, content: Content, timeout: Duration) -> Result<Version> {
        let owned = key.to_owned();
        self.bucket
            .run(key, timeout, Operation::Write, |bucket| async move { bucket.write(&owned, expected, content).await })
            .await
    }
}

impl Store for ObjectStore {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        async move {
            key::check(key)?;
            let owned = key.to_owned();
            self.bucket.run(key, timeout, Operation::Read, |bucket| async move { bucket.read(&owned).await }).await
        }
        .boxed()
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        async move {
            check(self.bucket.name(), key, &value)?;
            self.put(key, None, Content::Live { key: key.to_owned(), value }, timeout).await
        }
        .boxed()
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        async move {
            check(self.bucket.name(), key, &value)?;
            self.put(key, Some(expected.clone()), Content::Live { key: key.to_owned(), value }, timeout).await
        }
        .boxed()
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        async move {
            key::check(key)?;
            self.put(key, Some(expected.clone()), Content::Tombstone, timeout).await.map(drop)
        }
        .boxed()
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        async move {
            key::check_prefix(prefix)?;
            let (start, after) = (prefix.to_owned(), after.filter(|after| *after >= prefix).map(str::to_owned));
            self.bucket
                .run(prefix, timeout, Operation::Read, |bucket| async move {
                    bucket.scan(&start, after.as_deref(), limit).await
                })
                .await
        }
        .boxed()
    }
}

fn check(store: &str, key: &str, value: &Bytes) -> Result<()> {
    key::check(key)?;
    if value.len() <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let (key, store) = (key.to_owned(), store.to_owned());
    Err(StoreError::TooLarge { key, store, bytes: value.len(), bytes_max: VALUE_BYTES_MAX })
}

/// Largest value: 64 MiB, as the embedded store's. It is sent and read whole, in one request.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

/// Within which a bucket that is being opened must answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests;
