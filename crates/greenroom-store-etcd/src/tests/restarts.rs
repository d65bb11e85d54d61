//! A server that is killed, and answers that are lost.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

use greenroom_store::Applied;
use greenroom_store_conformance::restarts::{self, End};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const ENDS: &[End<Etcd>] = &[("kill", Etcd::kill), ("kill", Etcd::kill), ("kill", Etcd::kill)];

fn restart(etcd: &mut Etcd) {
    etcd.restart().unwrap();
}

#[tokio::test]
async fn no_acknowledged_increment_is_lost_when_etcd_is_killed() {
    let Some(etcd) = unless_missing(Etcd::start()) else { return };
    let store = Arc::new(EtcdStore::open(&etcd.url()).await.unwrap());
    restarts::no_increment_is_lost(store, etcd, ENDS, restart).await;
}

#[tokio::test]
async fn commits_that_were_acknowledged_survive_the_death_of_etcd() {
    let Some(etcd) = unless_missing(Etcd::start()) else { return };
    let store = Arc::new(EtcdStore::open(&etcd.url()).await.unwrap());
    restarts::no_commit_is_lost(store, etcd, ENDS, restart).await;
}

/// Between a store and its server: cuts a connection instead of passing on an answer, once it is told to.
struct Relay {
    address: SocketAddr,
    cuts: Arc<AtomicBool>,
    cut: Arc<AtomicU64>,
}

impl Relay {
    async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Self { address: listener.local_addr().unwrap(), cuts: Arc::default(), cut: Arc::default() };
        let (cuts, cut) = (relay.cuts.clone(), relay.cut.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let (cuts, cut) = (cuts.clone(), cut.clone());
                let there = tokio::spawn(async move {
                    // Ends when either side does.
                    drop(tokio::io::copy(&mut from_client, &mut to_server).await);
                });
                tokio::spawn(async move {
                    let mut bytes = vec![0; 1 << 16];
                    while let Ok(read @ 1..) = from_server.read(&mut bytes).await {
                        if cuts.load(SeqCst) {
                            // Time for the server to apply what it has acknowledged in part.
                            tokio::time::sleep(Duration::from_millis(100)).await;
                            cut.fetch_add(1, SeqCst);
                            break;
                        }
                        if to_client.write_all(&bytes[..read]).await.is_err() {
                            break;
                        }
                    }
                    there.abort();
                });
            }
        });
        relay
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_off_leaves_the_write_unknown_and_a_read_is_made_again() {
    let Some(etcd) = fast() else { return };
    let relay = Relay::before(etcd.port()).await;
    let direct = EtcdStore::open(&etcd.url()).await.unwrap();
    let store = EtcdStore::open(&format!("etcd://{}", relay.address)).await.unwrap();
    let first = store.create("key", "one".into(), BY).await.unwrap();
    relay.cuts.store(true, SeqCst);
    let error = store.replace("key", "two".into(), &first, BY).await.unwrap_err();
    assert_eq!(error.applied(), Applied::Maybe, "{error}");
    assert_eq!(&direct.read("key", BY).await.unwrap().unwrap().value[..], b"two", "this time it was applied");
    assert_eq!(relay.cut.load(SeqCst), 1, "a write is not made again");
    relay.cuts.store(false, SeqCst);
    assert_eq!(&store.read("key", BY).await.unwrap().unwrap().value[..], b"two");
}

#[tokio::test]
async fn without_an_answer_a_write_is_unknown_at_its_deadline_and_a_read_is_not() {
    let Some(etcd) = fast() else { return };
    let store = EtcdStore::open(&etcd.url()).await.unwrap();
    let version = store.create("key", "one".into(), BY).await.unwrap();
    etcd.signal(SIGSTOP);
    let (begun, short) = (Instant::now(), Duration::from_millis(300));
    let error = store.replace("key", "two".into(), &version, short).await.unwrap_err();
    assert_eq!(error.applied(), Applied::Maybe, "{error}");
    assert_eq!(store.read("key", short).await.unwrap_err().applied(), Applied::No);
    assert!(begun.elapsed() < Duration::from_secs(3));
    etcd.signal(SIGCONT);
    let found = store.read("key", BY).await.unwrap().unwrap();
    let again = store.replace("key", "three".into(), &found.version, BY).await;
    assert!(again.is_ok() || again.unwrap_err().is_conflict());
}

const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;
