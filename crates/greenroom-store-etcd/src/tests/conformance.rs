//! What every store and journal promises.

use greenroom_store_conformance::{Harness, Relay, crash, journal, network, store};

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

#[tokio::test]
async fn commits_that_were_acknowledged_survive_the_death_of_the_server() {
    let Some(mut etcd) = unless_missing(Etcd::start()) else { return };
    let store = open(&etcd).await;
    for round in 0..3 {
        let (name, acknowledged) = (format!("round/{round}"), Arc::new(std::sync::Mutex::new(Vec::new())));
        let (told, worker, work) = (acknowledged.clone(), store.clone(), name.clone());
        let work = tokio::spawn(async move {
            crash::work(worker, &work, |one| told.lock().expect("nobody has panicked").push(one)).await
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        etcd = tokio::task::spawn_blocking(move || {
            etcd.kill();
            etcd.restart().map(|()| etcd)
        })
        .await
        .unwrap()
        .unwrap();
        work.await.unwrap();
        let acknowledged = acknowledged.lock().expect("nobody has panicked").clone();
        assert!(acknowledged.len() > crash::COMMITTERS, "nothing was going on");
        crash::examine(&*store, &name, &acknowledged).await;
    }
}
