//! What every store promises.

use greenroom_store_conformance::{Harness, Relay, network, store};

use super::*;

async fn open(url: &str) -> Arc<ObjectStore> {
    Arc::new(ObjectStore::open(url).await.unwrap())
}

#[tokio::test]
async fn minio_is_a_store() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let (one, other) = (open(&minio.url()).await, open(&minio.url()).await);
    store::all(&Harness::new(one).also(other)).await;
}

#[tokio::test]
async fn minio_behind_a_bad_network_keeps_its_promises() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let relay = Relay::start(([127, 0, 0, 1], minio.port()).into()).unwrap();
    let through = format!("s3://minio:minio12345@greenroom?endpoint=http://{}", relay.addr());
    network::store(&relay, open(&through).await, open(&minio.url()).await).await;
}
