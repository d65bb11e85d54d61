//! Greenroom's store in the API server of a Kubernetes cluster: for the membership of clusters that run in one and
//! would rather not run an engine besides.
//!
//! Each record is an object of the custom resource `greenroomrecords.greenroom.dev`. A custom resource rather than
//! ConfigMaps or Leases: its rights can be given without those over everybody's configuration, its values may be
//! larger, and nothing else watches it. An update compares the object's own id and resource version, which are the
//! [`Version`]; a deletion has both as preconditions. Reads and lists ask for what is there now, not for the API
//! server's cache. Apply [`CRD`] once, and [`ROLE`] to the namespace.
//!
//! # Limits
//!
//! - It is for small tables: every scan lists the whole store, of which a thousand records are one MiB or more.
//! - A value has at most 1 MiB ([`VALUE_BYTES_MAX`]), as etcd behind the API server takes 1.5 MiB and base64 takes a third.
//! - Some thousand writes a minute are much for the API server of a cluster that others use too.
//! - There is no [`Journal`](greenroom_store::Journal): Kubernetes cannot write two objects at once.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use greenroom_store_kube::KubeStore;
//!
//! let store = KubeStore::open("kube:my-namespace?store=prod").await?;
//! # Ok(())
//! # }
//! ```

mod cluster;
mod fault;
mod record;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::network::{Home, Operation};
use greenroom_store::scan::PageBuilder;
use greenroom_store::url::{Parameters, StoreUrl};
use greenroom_store::{Item, Page, Result, Store, StoreError, Version, Versioned, key};

use cluster::Cluster;

/// A store in a namespace of a cluster. Clones share the connections.
///
/// The connections belong to the tokio runtime in which the store was opened, and are of no use after it; calls may come
/// from any runtime.
#[derive(Clone, Debug)]
pub struct KubeStore {
    cluster: Home<Cluster>,
}

impl KubeStore {
    /// Opens the store that `url` names, as [`open_in`](Self::open_in) does.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] if it is no URL of a cluster; otherwise as [`open_in`](Self::open_in).
    pub async fn open(url: &str) -> Result<Self> {
        let configuration =
            |reason: String| StoreError::Configuration { store: greenroom_store::url::redact(url), reason };
        match url.parse::<StoreUrl>() {
            Ok(StoreUrl::Kube { namespace, parameters }) => Self::open_in(&namespace, &parameters).await,
            Ok(_) => Err(configuration("it is no Kubernetes cluster; write \"kube:namespace\"".to_owned())),
            Err(error) => Err(configuration(error.to_string())),
        }
    }

    /// Opens a store in `namespace` and makes sure that its kind is known and may be listed. Answers within 20 s. Must
    /// be called in a tokio runtime.
    ///
    /// The parameters: `store` tells several stores of one namespace apart (`greenroom` by default), `kubeconfig` names
    /// a file and `context` one of its contexts. Without a file, `KUBECONFIG` or `~/.kube/config` says where the API
    /// server is, and in a pod its service account.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] if the URL or the kubeconfig is at fault or the resource is unknown to the cluster,
    /// [`StoreError::Unavailable`] if the API server does not answer, [`StoreError::Denied`] for a missing right.
    pub async fn open_in(namespace: &str, parameters: &Parameters) -> Result<Self> {
        // Fails if the process has chosen a provider already, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let store = Self { cluster: Home::new(Cluster::new(namespace, parameters).await?) };
        let listed = store
            .cluster
            .run("", OPEN_TIMEOUT, Operation::Read, |cluster| async move { cluster.list(|_| false).await })
            .await;
        listed.map_err(|error| match error {
            StoreError::NotApplied { reason, .. } => {
                StoreError::Unavailable { store: store.cluster.name.clone(), reason }
            }
            other => other,
        })?;
        Ok(store)
    }

    async fn put(&self, key: &str, expected: Option<Version>, value: Bytes, timeout: Duration) -> Result<Version> {
        key::check(key)?;
        if value.len() > VALUE_BYTES_MAX {
            let (key, store, bytes) = (key.to_owned(), self.cluster.name.clone(), value.len());
            return Err(StoreError::TooLarge { key, store, bytes, bytes_max: VALUE_BYTES_MAX });
        }
        let owned = key.to_owned();
        self.cluster
            .run(key, timeout, Operation::Write, |cluster| async move { cluster.put(&owned, expected, &value).await })
            .await
    }
}

impl Store for KubeStore {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        async move {
            key::check(key)?;
            let owned = key.to_owned();
            self.cluster.run(key, timeout, Operation::Read, |cluster| async move { cluster.read(&owned).await }).await
        }
        .boxed()
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        self.put(key, None, value, timeout).boxed()
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        self.put(key, Some(expected.clone()), value, timeout).boxed()
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        async move {
            key::check(key)?;
            let (owned, expected) = (key.to_owned(), expected.clone());
            self.cluster
                .run(key, timeout, Operation::Write, |cluster| async move { cluster.delete(&owned, expected).await })
                .await
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
            let (begin, after) = (prefix.to_owned(), after.map(str::to_owned));
            let page = |cluster: Arc<Cluster>| async move {
                let wanted = |key: &str| key.starts_with(&begin) && after.as_deref().is_none_or(|after| key > after);
                let mut page = PageBuilder::new(limit);
                for record in cluster.list(wanted).await? {
                    if page.is_full() {
                        return Ok(page.finish(true));
                    }
                    let versioned =
                        Versioned { value: cluster.value(&record, &record.key)?, version: record.version() };
                    page.push(Item { key: record.key, versioned });
                }
                Ok(page.finish(false))
            };
            self.cluster.run(prefix, timeout, Operation::Read, page).await
        }
        .boxed()
    }
}

/// The resource that records are objects of, as YAML for `kubectl apply`.
pub const CRD: &str = include_str!("../manifests/crd.yaml");

/// The rights that nodes need, as YAML for `kubectl apply`.
pub const ROLE: &str = include_str!("../manifests/role.yaml");

/// Largest value: 1 MiB.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// Within which an API server must answer that is asked for the first time.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests;
