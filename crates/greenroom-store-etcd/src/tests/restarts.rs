//! A server that is killed, and answers that are lost.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

use greenroom_store::Applied;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Adds one to the number under `key` until `end`, and answers how many increments were acknowledged, and how many may
/// have been applied.
async fn count(store: EtcdStore, key: String, end: Instant) -> (u64, u64) {
    let (mut acknowledged, mut possible) = (0, 0);
    while Instant::now() < end {
        let Ok(found) = store.read(&key, BY).await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let written = match found {
            None => store.create(&key, "1".into(), BY).await,
            Some(found) => {
                let next = str::from_utf8(&found.value).unwrap().parse::<u64>().unwrap() + 1;
                store.replace(&key, next.to_string().into(), &found.version, BY).await
            }
        };
        match written {
            Ok(_) => (acknowledged, possible) = (acknowledged + 1, possible + 1),
            Err(error) if error.applied() == Applied::Maybe => possible += 1,
            Err(_) => {}
        }
    }
    (acknowledged, possible)
}

#[tokio::test]
async fn no_acknowledged_increment_is_lost_when_etcd_is_killed() {
    let Some(mut etcd) = unless_missing(Etcd::start()) else { return };
    let store = EtcdStore::open(&etcd.url()).await.unwrap();
    let end = Instant::now() + Duration::from_secs(8);
    let key = |n: usize| format!("count/{}", n % 4);
    let counters: Vec<_> = (0..8).map(|n| tokio::spawn(count(store.clone(), key(n), end))).collect();
    let etcd = tokio::task::spawn_blocking(move || {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_secs(1));
            etcd.kill();
            etcd.restart().unwrap();
        }
        etcd
    });
    let _etcd = etcd.await.unwrap();
    let mut totals = [(0, 0); 4];
    for (n, counter) in counters.into_iter().enumerate() {
        let (acknowledged, possible) = counter.await.unwrap();
        totals[n % 4].0 += acknowledged;
        totals[n % 4].1 += possible;
    }
    for (n, (acknowledged, possible)) in totals.into_iter().enumerate() {
        let found = store.read(&key(n), BY).await.unwrap().unwrap();
        let value: u64 = str::from_utf8(&found.value).unwrap().parse().unwrap();
        assert!((acknowledged..=possible).contains(&value), "{acknowledged}..={possible} increments made {value}");
        assert!(acknowledged > 10, "too few to mean anything: {acknowledged}");
    }
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
