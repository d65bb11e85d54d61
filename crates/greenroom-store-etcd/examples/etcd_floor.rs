//! Measures conditional writes against the floor, which is the bare client sending ready-made transactions:
//! `cargo run --release -p greenroom-store-etcd --features floor --example etcd_floor`. The server is started on the disk of `TMPDIR`.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom_engines::{Etcd, unless_missing};
use greenroom_store::Store;
use greenroom_store::url::StoreUrl;
use greenroom_store_etcd::{EtcdStore, floor};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let Some(etcd) = unless_missing(Etcd::start()) else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let StoreUrl::Etcd(remote) = etcd.url().parse()? else { unreachable!("it is etcd's") };
        let store = EtcdStore::open_remote(&remote).await?;
        for writers in [1, 64] {
            // In turns, so that what else the machine does meets both.
            let (mut bare, mut ours) = (0.0, 0.0);
            for round in 0..ROUNDS {
                bare += floor::conditional_writes(&remote, writers, SPAN, VALUE).await? / f64::from(ROUNDS);
                ours += through_the_store(&store, writers, round).await? / f64::from(ROUNDS);
            }
            println!("{writers:3} writers: bare {bare:7.0}/s  store {ours:7.0}/s  ratio {:.2}", ours / bare);
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

const ROUNDS: u32 = 4;
const SPAN: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(30);
const VALUE: &[u8; 200] = &[7; 200];
