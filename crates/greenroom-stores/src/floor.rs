//! What an engine's raw client reaches: the best program for that engine, with the same durability and as many requests
//! in flight, beside which the store's rate is measured.

use std::time::Duration;

use greenroom_store::Result;
use greenroom_store::url::StoreUrl;

/// Conditional writes a second, by `writers` that each replace a `value` of their own, again and again for `span`; `None`
/// where there is no engine (memory), or nothing raw to measure by (object stores, Kubernetes).
///
/// # Errors
///
/// As [`open`](crate::open).
pub async fn conditional_writes(url: &StoreUrl, writers: usize, span: Duration, value: &[u8]) -> Result<Option<f64>> {
    let rate = match url {
        #[cfg(feature = "sqlite")]
        StoreUrl::Sqlite { path } => {
            let mut beside = path.clone().into_os_string();
            beside.push("-floor");
            greenroom_store_sqlite::floor::conditional_writes(beside.as_ref(), writers, span, value).await?
        }
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(remote) => {
            greenroom_store_postgres::floor::conditional_writes(remote, writers, span, value).await?
        }
        #[cfg(feature = "redis")]
        StoreUrl::Redis(remote) => {
            greenroom_store_redis::floor::conditional_writes(remote, writers, span, value).await?
        }
        #[cfg(feature = "etcd")]
        StoreUrl::Etcd(remote) => greenroom_store_etcd::floor::conditional_writes(remote, writers, span, value).await?,
        _ => return Ok(None),
    };
    Ok(Some(rate))
}
