//! What every store and journal promises.

use greenroom_store_conformance::{Harness, Relay, journal, network, store};

use super::*;

async fn open(etcd: &Etcd) -> Arc<EtcdStore> {
    Arc::new(EtcdStore::open(&etcd.url()).await.unwrap())
}

#[tokio::test]
async fn etcd_is_a_store() {
    let Some(etcd) = fast() else { return };
    let (one, other) = (open(&etcd).await, open(&etcd).await);
    let most = one.value_bytes_max();
    store::all(&Harness::new(one).also(other).value_bytes_max(most)).await;
}

#[tokio::test]
async fn etcd_is_a_journal() {
    let Some(etcd) = fast() else { return };
    journal::all(&[open(&etcd).await, open(&etcd).await]).await;
}

#[tokio::test]
async fn etcd_behind_a_bad_network_keeps_its_promises() {
    let Some(etcd) = fast() else { return };
    let relay = Relay::start(([127, 0, 0, 1], etcd.port()).into()).unwrap();
    let through = Arc::new(EtcdStore::open(&format!("etcd://{}", relay.addr())).await.unwrap());
    network::store(&relay, through, open(&etcd).await).await;
}

#[tokio::test]
async fn etcd_behind_a_bad_network_keeps_the_promises_of_a_journal() {
    let Some(etcd) = fast() else { return };
    let relay = Relay::start(([127, 0, 0, 1], etcd.port()).into()).unwrap();
    let through = Arc::new(EtcdStore::open(&format!("etcd://{}", relay.addr())).await.unwrap());
    network::journal(&relay, through, open(&etcd).await).await;
}
