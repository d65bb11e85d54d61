//! Opens any store by its URL: the one place that knows every provider.
//!
//! Each provider is a feature of this crate (`sqlite` is on by default); the URL of one that is not built in is refused
//! with the feature's name.
//!
//! ```
//! # async fn example() -> greenroom_store::Result<()> {
//! use std::time::Duration;
//!
//! let opened = greenroom_stores::open("memory:").await?;
//! let version = opened.store.create("key", "value".into(), Duration::from_secs(1)).await?;
//! println!("{version} at {}: {}", opened.name, opened.survives);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "floor")]
pub mod floor;
mod opened;
mod providers;

use greenroom_store::url::{StoreUrl, redact};
use greenroom_store::{Result, StoreError};

pub use opened::{DeviceSyncs, Opened};

/// Opens the store that `url` names.
///
/// An engine behind a network keeps its connections on the tokio runtime in which it is opened, so that one must outlive
/// the store; the store's methods may be called from any.
///
/// # Errors
///
/// [`StoreError::Configuration`] if `url` cannot be understood, its provider is not built in, or an engine behind a
/// network is to be opened outside a tokio runtime; otherwise what the provider says. No error shows a password.
pub async fn open(url: &str) -> Result<Opened> {
    let parsed = url.parse::<StoreUrl>();
    let parsed = parsed.map_err(|error| StoreError::Configuration { store: redact(url), reason: error.to_string() })?;
    open_url(&parsed).await
}

/// Opens the store that `url` names; otherwise as [`open`].
///
/// # Errors
///
/// As [`open`].
pub async fn open_url(url: &StoreUrl) -> Result<Opened> {
    let is_local = matches!(url, StoreUrl::Memory | StoreUrl::Sqlite { .. });
    if !is_local && tokio::runtime::Handle::try_current().is_err() {
        let reason = "its connections need a tokio runtime; open it within one".to_owned();
        return Err(StoreError::Configuration { store: url.to_string(), reason });
    }
    match url {
        StoreUrl::Memory => Ok(providers::memory()),
        StoreUrl::Sqlite { path } => providers::sqlite(url, path),
        StoreUrl::Postgres(remote) => providers::postgres(url, remote).await,
        StoreUrl::Redis(remote) => providers::redis(url, remote).await,
        StoreUrl::Etcd(remote) => providers::etcd(url, remote).await,
        StoreUrl::Kafka(remote) => providers::kafka(url, remote).await,
        StoreUrl::S3(remote) => providers::s3(url, remote).await,
        StoreUrl::Kube { namespace, parameters } => providers::kube(url, namespace, parameters).await,
        _ => Err(not_built_in(url)),
    }
}

/// Opens the outlet that `url` names: a topic, as `kafka://host,host/topic`.
///
/// # Errors
///
/// As [`open`].
pub async fn open_outlet(url: &str) -> Result<std::sync::Arc<dyn greenroom_store::Outlet>> {
    let remote = outlet(url)?;
    providers::kafka_outlet(&StoreUrl::Kafka(remote.clone()), &remote).await
}

/// Refuses what [`open_outlet`] would not open, as far as that can be told without opening anything.
///
/// # Errors
///
/// [`StoreError::Configuration`].
pub fn check_outlet(url: &str) -> Result<()> {
    outlet(url).and_then(|remote| check(&StoreUrl::Kafka(remote)))
}

fn outlet(url: &str) -> Result<greenroom_store::url::Remote> {
    let wrong = |reason: String| StoreError::Configuration { store: redact(url), reason };
    match url.parse().map_err(|error: greenroom_store::url::Error| wrong(error.to_string()))? {
        StoreUrl::Kafka(remote) => Ok(remote),
        _ => Err(wrong("it is no outlet; write \"https://host/hook\" or \"kafka://host/topic\"".to_owned())),
    }
}

/// The features of this crate whose providers are built in, besides memory, which always is.
pub fn built_in() -> impl Iterator<Item = &'static str> {
    let providers = [
        ("sqlite", cfg!(feature = "sqlite")),
        ("postgres", cfg!(feature = "postgres")),
        ("redis", cfg!(feature = "redis")),
        ("etcd", cfg!(feature = "etcd")),
        ("kafka", cfg!(feature = "kafka")),
        ("s3", cfg!(feature = "s3")),
        ("kube", cfg!(feature = "kube")),
    ];
    providers.into_iter().filter(|(_, built_in)| *built_in).map(|(feature, _)| feature)
}

/// Whether the provider that `url` wants is built in.
///
/// # Errors
///
/// [`StoreError::Configuration`]: it is not, and with which feature it would be.
pub fn check(url: &StoreUrl) -> Result<()> {
    let (_, feature) = provider(url);
    let is_built_in = matches!(url, StoreUrl::Memory) || built_in().any(|built_in| built_in == feature);
    if is_built_in { Ok(()) } else { Err(not_built_in(url)) }
}

/// The engine that a URL names, and the feature that builds its provider in.
fn provider(url: &StoreUrl) -> (&'static str, &'static str) {
    match url {
        StoreUrl::Sqlite { .. } => ("SQLite", "sqlite"),
        StoreUrl::Postgres(_) => ("PostgreSQL", "postgres"),
        StoreUrl::Redis(_) => ("Redis", "redis"),
        StoreUrl::Etcd(_) => ("etcd", "etcd"),
        StoreUrl::Kafka(_) => ("Kafka", "kafka"),
        StoreUrl::S3(_) => ("object stores", "s3"),
        StoreUrl::Kube { .. } => ("Kubernetes", "kube"),
        _ => ("this kind of store", "all"),
    }
}

/// What a URL meets whose provider is not built in.
fn not_built_in(url: &StoreUrl) -> StoreError {
    let (engine, feature) = provider(url);
    let reason = format!("this program was built without {engine}: build it with --features {feature}");
    StoreError::Configuration { store: url.to_string(), reason }
}

#[cfg(test)]
mod tests;
