//! Measures the store's conditional writes beside the raw client's, on a PostgreSQL of its own that syncs every commit:
//! `cargo run --release -p greenroom-store-postgres --features floor --example floor`.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom_engines::{Postgres, PostgresOptions};
use greenroom_store::url::StoreUrl;
use greenroom_store::{Commit, Journal, Result, Store};
use greenroom_store_postgres::{Options, PostgresStore, floor};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let postgres = Postgres::start_with(PostgresOptions { durable: true, ..PostgresOptions::default() })?;
    let StoreUrl::Postgres(remote) = postgres.url().parse()? else { unreachable!("it is PostgreSQL's") };
    for writers in [1, 8, 64] {
        let raw = floor::conditional_writes(&remote, writers, SPAN, VALUE).await?;
        println!("{writers:3} writers: raw client, one connection each {raw:7.0}/s");
        for connections in [1, 2, 4] {
            let options = Options { connections, ..Options::default() };
            let store = PostgresStore::open(&remote, &options).await?;
            let rate = replaces(&store, writers).await?;
            println!("             store, {connections} connections          {rate:7.0}/s, {:.2} of raw", rate / raw);
            let rate = commits(&store, writers).await?;
            println!("             journal, {connections} connections        {rate:7.0}/s");
        }
    }
    Ok(())
}

/// Each writer replaces a key of its own, one write after another.
async fn replaces(store: &PostgresStore, writers: usize) -> Result<f64> {
    let begun = Instant::now();
    let written = try_join_all((0..writers).map(|writer| async move {
        let (key, mut written) = (format!("key/{}/{writer}", store_name()), 0_u64);
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
async fn commits(store: &PostgresStore, writers: usize) -> Result<f64> {
    let begun = Instant::now();
    let committed = try_join_all((0..writers).map(|writer| async move {
        let (key, mut committed) = (format!("journal/{}/{writer}", store_name()), 0_u64);
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
fn store_name() -> u128 {
    std::time::UNIX_EPOCH.elapsed().map(|since| since.as_nanos()).unwrap_or_default()
}

const SPAN: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(30);
const VALUE: &[u8] = &[7; 200];
