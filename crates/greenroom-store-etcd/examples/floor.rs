//! Measures conditional writes against the floor, which is the bare client sending ready-made transactions:
//! `cargo run --release -p greenroom-store-etcd --example floor`. The server is started on the disk of `TMPDIR`.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::try_join_all;
use greenroom_engines::{Etcd, unless_missing};
use greenroom_store::Store;
use greenroom_store_etcd::EtcdStore;
use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let Some(etcd) = unless_missing(Etcd::start()) else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let channel =
            Endpoint::from_shared(format!("http://127.0.0.1:{}", etcd.port()))?.tcp_nodelay(true).connect().await?;
        let store = EtcdStore::open(&etcd.url()).await?;
        for writers in [1, 64] {
            // In turns, so that what else the machine does meets both.
            let (mut floor, mut ours) = (0.0, 0.0);
            for round in 0..ROUNDS {
                floor += bare(&channel, writers, round).await? / f64::from(ROUNDS);
                ours += through_the_store(&store, writers, round).await? / f64::from(ROUNDS);
            }
            println!("{writers:3} writers: bare {floor:7.0}/s  store {ours:7.0}/s  ratio {:.2}", ours / floor);
        }
        Ok(())
    })
}

async fn through_the_store(store: &EtcdStore, writers: usize, round: u32) -> Result<f64, Failure> {
    let begun = Instant::now();
    let counts = try_join_all((0..writers).map(|writer| async move {
        let (key, mut count) = (format!("round/{round}/{writers}/{writer}"), 0_u32);
        let mut version = store.create(&key, VALUE[..].into(), TIMEOUT).await?;
        while begun.elapsed() < SPAN {
            version = store.replace(&key, VALUE[..].into(), &version, TIMEOUT).await?;
            count += 1;
        }
        Ok::<_, greenroom_store::StoreError>(count)
    }))
    .await?;
    Ok(f64::from(counts.iter().sum::<u32>()) / begun.elapsed().as_secs_f64())
}

/// The same transactions, with nothing around them: each compares a revision, and puts.
async fn bare(channel: &Channel, writers: usize, round: u32) -> Result<f64, Failure> {
    let begun = Instant::now();
    let counts = try_join_all((0..writers).map(|writer| async move {
        let (key, mut count) = (format!("bare/{round}/{writers}/{writer}"), 0_u32);
        let mut revision = 0;
        while begun.elapsed() < SPAN {
            let mut grpc = Grpc::new(channel.clone());
            grpc.ready().await.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
            let path = PathAndQuery::from_static("/etcdserverpb.KV/Txn");
            let request = tonic::Request::new(txn(&key, revision));
            let answer = grpc.unary(request, path, ProstCodec::<Txn, Answer>::default()).await?.into_inner();
            assert!(answer.succeeded);
            revision = answer.header.unwrap_or_default().revision;
            count += 1;
        }
        Ok::<_, tonic::Status>(count)
    }))
    .await?;
    Ok(f64::from(counts.iter().sum::<u32>()) / begun.elapsed().as_secs_f64())
}

fn txn(key: &str, revision: i64) -> Txn {
    let key = Bytes::copy_from_slice(key.as_bytes());
    let put = Put { key: key.clone(), value: VALUE[..].into() };
    Txn {
        compare: Some(Compare { target: 2, key, revision: Some(Target::Mod(revision)) }),
        put: Some(Op { put: Some(put) }),
    }
}

#[derive(Clone, PartialEq, Message)]
struct Txn {
    #[prost(message, optional, tag = "1")]
    compare: Option<Compare>,
    #[prost(message, optional, tag = "2")]
    put: Option<Op>,
}

#[derive(Clone, PartialEq, Message)]
struct Compare {
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    key: Bytes,
    #[prost(oneof = "Target", tags = "6")]
    revision: Option<Target>,
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
enum Target {
    #[prost(int64, tag = "6")]
    Mod(i64),
}

#[derive(Clone, PartialEq, Message)]
struct Op {
    #[prost(message, optional, tag = "2")]
    put: Option<Put>,
}

#[derive(Clone, PartialEq, Message)]
struct Put {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(bool, tag = "2")]
    succeeded: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(int64, tag = "3")]
    revision: i64,
}

const ROUNDS: u32 = 4;
const SPAN: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(30);
const VALUE: &[u8; 200] = &[7; 200];
