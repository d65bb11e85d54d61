//! Measures conditional writes against the floor, which is the bare client sending ready-made objects:
//! `cargo run --release -p greenroom-store-object --example object_floor`. The server is started on the disk of `TMPDIR`.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom_engines::{Minio, unless_missing};
use greenroom_store::Store;
use greenroom_store_object::ObjectStore;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ObjectStore as _, PutMode, PutOptions};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let Some(minio) = unless_missing(Minio::start()) else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = ObjectStore::open(&minio.url()).await?;
        let builder = AmazonS3Builder::new().with_bucket_name(Minio::BUCKET).with_allow_http(true);
        let builder = builder.with_access_key_id(Minio::USER).with_secret_access_key(Minio::PASSWORD);
        let bare_store = builder.with_endpoint(format!("http://127.0.0.1:{}", minio.port())).build()?;
        for writers in [1, 64] {
            // In turns, so that what else the machine does meets both.
            let (mut floor, mut ours) = (0.0, 0.0);
            for round in 0..ROUNDS {
                floor += bare(&bare_store, writers, round).await? / f64::from(ROUNDS);
                ours += through_the_store(&store, writers, round).await? / f64::from(ROUNDS);
            }
            println!("{writers:3} writers: bare {floor:7.0}/s  store {ours:7.0}/s  ratio {:.2}", ours / floor);
        }
        Ok(())
    })
}

async fn through_the_store(store: &ObjectStore, writers: usize, round: u32) -> Result<f64, Failure> {
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

/// The same requests, with nothing around them.
async fn bare(store: &AmazonS3, writers: usize, round: u32) -> Result<f64, Failure> {
    let begun = Instant::now();
    let counts = try_join_all((0..writers).map(|writer| async move {
        let (path, mut count) = (Path::from(format!("bare/{round}/{writers}/{writer}")), 0_u32);
        let mut mode = PutMode::Create;
        while begun.elapsed() < SPAN {
            // Different each time, as ETags of equal objects are equal.
            let body = [&VALUE[..], &count.to_be_bytes()].concat();
            let put = store.put_opts(&path, body.into(), PutOptions { mode, ..PutOptions::default() }).await?;
            mode = PutMode::Update(put.into());
            count += 1;
        }
        Ok::<_, object_store::Error>(count)
    }))
    .await?;
    Ok(f64::from(counts.iter().sum::<u32>()) / begun.elapsed().as_secs_f64())
}

const ROUNDS: u32 = 4;
const SPAN: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(30);
const VALUE: &[u8; 200] = &[7; 200];
