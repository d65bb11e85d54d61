//! Measures the store's conditional writes beside the raw client's, on a Redis of its own that syncs every write:
//! `cargo run --release -p greenroom-store-redis --features floor --example redis_floor`.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom_engines::{Redis, RedisOptions};
use greenroom_store::url::StoreUrl;
use greenroom_store::{Commit, Journal, Result, Store};
use greenroom_store_redis::{Options, RedisStore, floor};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    for durable in [true, false] {
        println!("appendfsync {}:", if durable { "always" } else { "never, nothing kept" });
        let redis = Redis::start_with(RedisOptions { durable, ..RedisOptions::default() })?;
        let StoreUrl::Redis(remote) = redis.url().parse()? else { unreachable!("it is Redis's") };
        let store = RedisStore::open(&remote, &Options::default()).await?;
        for writers in [1, 64] {
            let mut rates = [const { Vec::new() }; 3];
            // In turn, as the device's speed changes over time.
            for _ in 0..ROUNDS {
                rates[0].push(floor::conditional_writes(&remote, writers, SPAN, VALUE).await?);
                rates[1].push(replaces(&store, writers).await?);
                rates[2].push(commits(&store, writers).await?);
            }
            let floor = rates[0].iter().sum::<f64>();
            for (name, rates) in ["raw client", "store", "journal"].iter().zip(&mut rates) {
                rates.sort_by(f64::total_cmp);
                let sum = rates.iter().sum::<f64>();
                let (least, most) = (rates[0], rates[ROUNDS - 1]);
                let (mean, ratio) = (sum / ROUNDS as f64, sum / floor);
                println!(
                    "{writers:3} writers, {name:10} {mean:7.0}/s ({least:.0} to {most:.0}), {ratio:.2} of the raw client"
                );
            }
        }
    }
    Ok(())
}

/// Each writer replaces a key of its own, one write after another.
async fn replaces(store: &RedisStore, writers: usize) -> Result<f64> {
    let (begun, run) = (Instant::now(), run());
    let written = try_join_all((0..writers).map(|writer| async move {
        let (key, mut written) = (format!("key/{run}/{writer}"), 0_u64);
        let mut version = store.create(&key, VALUE.into(), TIMEOUT).await?;
        while begun.elapsed() < SPAN {
            version = store.replace(&key, VALUE.into(), &version, TIMEOUT).await?;
            written += 1;
        }
        Result::Ok(written)
    }));
    Ok(written.await?.into_iter().sum::<u64>() as f64 / begun.elapsed().as_secs_f64())
}

/// Each writer puts a key of its own and appends to a log of its own, one commit after another.
async fn commits(store: &RedisStore, writers: usize) -> Result<f64> {
    let (begun, run) = (Instant::now(), run());
    let committed = try_join_all((0..writers).map(|writer| async move {
        let (key, mut committed) = (format!("journal/{run}/{writer}"), 0_u64);
        while begun.elapsed() < SPAN {
            let commit = Commit::new().put(&key, VALUE.into()).append(&key, VALUE.into());
            store.commit(commit, TIMEOUT).await?;
            committed += 1;
        }
        Result::Ok(committed)
    }));
    Ok(committed.await?.into_iter().sum::<u64>() as f64 / begun.elapsed().as_secs_f64())
}

/// Keys of a run are new.
fn run() -> u128 {
    std::time::UNIX_EPOCH.elapsed().map(|since| since.as_nanos()).unwrap_or_default()
}

const SPAN: Duration = Duration::from_secs(1);
const ROUNDS: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(30);
const VALUE: &[u8] = &[7; 200];
