//! One function a provider, each there twice: with its feature it opens, without it refuses.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use greenroom_store::memory::MemoryStore;
use greenroom_store::url::{Parameters, Remote, StoreUrl};
use greenroom_store::{Outlet, Result};

use crate::Opened;
#[cfg(feature = "sqlite")]
use crate::opened::DeviceSyncs;

pub(crate) fn memory() -> Opened {
    // Operators and programs may still hold versions of a process that was there before.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let store = MemoryStore::counting_from(u64::try_from(since_1970.as_micros()).unwrap_or_default());
    Opened::journal(&StoreUrl::Memory, store, "nothing: it is gone with this process").private()
}

#[cfg(feature = "sqlite")]
pub(crate) fn sqlite(url: &StoreUrl, path: &Path) -> Result<Opened> {
    let store = greenroom_store_sqlite::SqliteStore::open(path)?;
    let counted = store.clone();
    let count = move || {
        let stats = counted.stats();
        DeviceSyncs { commits: stats.commits, syncs: stats.syncs }
    };
    Ok(Opened::journal(url, store, LOSS_OF_POWER).counting(count))
}

#[cfg(feature = "postgres")]
pub(crate) async fn postgres(url: &StoreUrl, remote: &Remote) -> Result<Opened> {
    use greenroom_store_postgres::{Durability, Options, PostgresStore};

    let store = PostgresStore::open(remote, &Options::default()).await?;
    let survives = match store.durability() {
        Durability::Full => LOSS_OF_POWER,
        Durability::ProcessCrash => "the death of the server's processes, not a loss of power: its fsync is off",
    };
    Ok(Opened::journal(url, store, survives))
}

#[cfg(feature = "redis")]
pub(crate) async fn redis(url: &StoreUrl, remote: &Remote) -> Result<Opened> {
    use greenroom_store_redis::{Durability, Options, RedisStore};

    let store = RedisStore::open(remote, &Options::default()).await?;
    let survives = match store.status().durability {
        Durability::Full => LOSS_OF_POWER.to_owned(),
        less => format!("less than is acknowledged: {less}"),
    };
    Ok(Opened::journal(url, store, survives))
}

#[cfg(feature = "etcd")]
pub(crate) async fn etcd(url: &StoreUrl, remote: &Remote) -> Result<Opened> {
    let store = greenroom_store_etcd::EtcdStore::open_remote(remote).await?;
    Ok(Opened::journal(url, store, "a loss of power, and of a minority of the members"))
}

#[cfg(feature = "kafka")]
pub(crate) async fn kafka(url: &StoreUrl, remote: &Remote) -> Result<Opened> {
    let store = greenroom_store_kafka::KafkaStore::open_remote(remote).await?;
    Ok(Opened::journal(url, store, "the death of the brokers' processes, and a loss of power of all replicas but one"))
}

#[cfg(feature = "kafka")]
pub(crate) async fn kafka_outlet(_: &StoreUrl, remote: &Remote) -> Result<Arc<dyn Outlet>> {
    Ok(Arc::new(greenroom_store_kafka::KafkaTopic::open_remote(remote)?))
}

#[cfg(feature = "s3")]
pub(crate) async fn s3(url: &StoreUrl, remote: &Remote) -> Result<Opened> {
    let store = greenroom_store_object::ObjectStore::open_remote(remote).await?;
    Ok(Opened::store(url, Arc::new(store), "what the object store's operator promises"))
}

#[cfg(feature = "kube")]
pub(crate) async fn kube(url: &StoreUrl, namespace: &str, parameters: &Parameters) -> Result<Opened> {
    let store = greenroom_store_kube::KubeStore::open_in(namespace, parameters).await?;
    let survives = "what the etcd behind the API server survives";
    Ok(Opened::store(url, Arc::new(store), survives))
}

#[cfg(not(feature = "sqlite"))]
pub(crate) fn sqlite(url: &StoreUrl, _: &Path) -> Result<Opened> {
    Err(crate::not_built_in(url))
}

#[cfg(not(feature = "postgres"))]
pub(crate) async fn postgres(url: &StoreUrl, _: &Remote) -> Result<Opened> {
    Err(crate::not_built_in(url))
}

#[cfg(not(feature = "redis"))]
pub(crate) async fn redis(url: &StoreUrl, _: &Remote) -> Result<Opened> {
    Err(crate::not_built_in(url))
}

#[cfg(not(feature = "etcd"))]
pub(crate) async fn etcd(url: &StoreUrl, _: &Remote) -> Result<Opened> {
    Err(crate::not_built_in(url))
}

#[cfg(not(feature = "kafka"))]
pub(crate) async fn kafka(url: &StoreUrl, _: &Remote) -> Result<Opened> {
    Err(crate::not_built_in(url))
}

#[cfg(not(feature = "kafka"))]
pub(crate) async fn kafka_outlet(url: &StoreUrl, _: &Remote) -> Result<Arc<dyn Outlet>> {
    Err(crate::not_built_in(url))
}

#[cfg(not(feature = "s3"))]
pub(crate) async fn s3(url: &StoreUrl, _: &Remote) -> Result<Opened> {
    Err(crate::not_built_in(url))
}

#[cfg(not(feature = "kube"))]
pub(crate) async fn kube(url: &StoreUrl, _: &str, _: &Parameters) -> Result<Opened> {
    Err(crate::not_built_in(url))
}

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
const LOSS_OF_POWER: &str = "a loss of power";
