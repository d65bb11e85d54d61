//! A server that is killed, answers that are lost, and writes that someone between sends twice.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

use greenroom_store::Applied;
use greenroom_store_conformance::restarts::{self, End};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const ENDS: &[End<Minio>] = &[("kill", Minio::kill), ("kill", Minio::kill), ("kill", Minio::kill)];

#[tokio::test]
async fn no_acknowledged_increment_is_lost_when_minio_is_killed() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let store = Arc::new(ObjectStore::open(&minio.url()).await.unwrap());
    restarts::no_increment_is_lost(store, minio, ENDS, |minio| minio.restart().unwrap()).await;
}

/// What a relay does with requests.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    /// It cuts the connection instead of passing on an answer to a PUT, and refuses new connections.
    Cuts,
    /// It sends each PUT twice, and passes on the second answer.
    Repeats,
}

/// Between a store and its server: misbehaves once it is told to.
struct Relay {
    address: SocketAddr,
    misbehaves: Arc<AtomicBool>,
    puts: Arc<AtomicU64>,
}

impl Relay {
    async fn before(port: u16, does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let relay = Self { address, misbehaves: Arc::default(), puts: Arc::default() };
        let (misbehaves, puts) = (relay.misbehaves.clone(), relay.puts.clone());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (misbehaves, puts) = (misbehaves.clone(), puts.clone());
                tokio::spawn(async move {
                    while let Some(request) = message(&mut client).await {
                        let put = request.starts_with(b"PUT") && misbehaves.load(SeqCst);
                        puts.fetch_add(u64::from(put), SeqCst);
                        let mut answer = ask(port, &request).await;
                        match does {
                            Does::Repeats if put => answer = ask(port, &request).await,
                            Does::Cuts if misbehaves.load(SeqCst) => return,
                            _ => {}
                        }
                        client.write_all(&answer).await.unwrap();
                    }
                });
            }
        });
        relay
    }

    /// What a client calls the bucket behind it. The server checks signatures, and these are over the host's name.
    fn url(&self) -> String {
        format!("s3://minio:minio12345@greenroom?endpoint=http://{}", self.address)
    }
}

/// One HTTP message with a length.
async fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = vec![0; 1 << 16];
        let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
        if bytes.len() >= end + 4 + length {
            return Some(bytes);
        }
    }
}

async fn ask(port: u16, request: &[u8]) -> Vec<u8> {
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    server.write_all(request).await.unwrap();
    message(&mut server).await.unwrap()
}

#[tokio::test]
async fn an_answer_that_is_cut_off_leaves_the_write_unknown() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let relay = Relay::before(minio.port(), Does::Cuts).await;
    let direct = ObjectStore::open(&minio.url()).await.unwrap();
    let store = ObjectStore::open(&relay.url()).await.unwrap();
    let first = store.create("key", "one".into(), BY).await.unwrap();
    relay.misbehaves.store(true, SeqCst);
    let error = store.replace("key", "two".into(), &first, BY).await.unwrap_err();
    assert_eq!(error.applied(), Applied::Maybe, "{error}");
    assert_eq!(&direct.read("key", BY).await.unwrap().unwrap().value[..], b"two", "this time it was applied");
    assert_eq!(relay.puts.load(SeqCst), 1, "a write is not made again");
}

#[tokio::test]
async fn a_write_that_someone_between_sends_twice_is_not_refused_by_itself() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let relay = Relay::before(minio.port(), Does::Repeats).await;
    let store = ObjectStore::open(&relay.url()).await.unwrap();
    relay.misbehaves.store(true, SeqCst);
    let first = store.create("key", "one".into(), BY).await.unwrap();
    let second = store.replace("key", "two".into(), &first, BY).await.unwrap();
    assert!(store.replace("key", "three".into(), &first, BY).await.unwrap_err().is_conflict());
    assert_eq!(store.read("key", BY).await.unwrap().unwrap().version, second);
    store.delete("key", &second, BY).await.unwrap();
}

#[tokio::test]
async fn without_an_answer_a_write_is_unknown_at_its_deadline_and_a_read_is_not() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let store = ObjectStore::open(&minio.url()).await.unwrap();
    let version = store.create("key", "one".into(), BY).await.unwrap();
    minio.signal(SIGSTOP);
    let (begun, short) = (Instant::now(), Duration::from_millis(300));
    let error = store.replace("key", "two".into(), &version, short).await.unwrap_err();
    assert_eq!(error.applied(), Applied::Maybe, "{error}");
    assert_eq!(store.read("key", short).await.unwrap_err().applied(), Applied::No);
    assert!(begun.elapsed() < Duration::from_secs(3));
    minio.signal(SIGCONT);
    let found = store.read("key", BY).await.unwrap().unwrap();
    let again = store.replace("key", "three".into(), &found.version, BY).await;
    assert!(again.is_ok() || again.unwrap_err().is_conflict());
}

const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;
