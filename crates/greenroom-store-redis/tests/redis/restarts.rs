//! Servers that stop, or are killed, in the middle of writes: nothing acknowledged is lost, and the store goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_engines::{Redis, RedisOptions, unless_missing};
use greenroom_store::{Applied, Store, StoreError};
use greenroom_store_conformance::crash;

use crate::open;

const BY: Duration = Duration::from_secs(30);
const ENDS: [(&str, End); 2] = [("stop", Redis::stop), ("kill", Redis::kill)];

/// How a server ends.
type End = fn(&mut Redis);

fn durable() -> Option<Redis> {
    unless_missing(Redis::start_with(RedisOptions { durable: true, ..RedisOptions::default() }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_were_acknowledged_survive_every_end_of_the_server() {
    let Some(mut redis) = durable() else { return };
    let store = Arc::new(open(&redis, "commits").await);
    for round in 0..4 {
        let (end, stop) = ENDS[round % ENDS.len()];
        let name = format!("{end}/{round}");
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let (told, journal, work) = (acknowledged.clone(), store.clone(), name.clone());
        let work = tokio::spawn(async move {
            crash::work(journal, &work, |one| told.lock().expect("nobody has panicked").push(one)).await
        });
        tokio::time::sleep(Duration::from_millis(300 + 70 * round as u64)).await;
        stop(&mut redis);
        let errors = work.await.expect("the work has not panicked");
        assert_eq!(errors.len(), crash::COMMITTERS);
        redis.restart().expect("it recovers");
        let acknowledged = acknowledged.lock().expect("nobody has panicked").clone();
        println!("{name}: {} commits were acknowledged; then: {}", acknowledged.len(), errors[0]);
        assert!(acknowledged.len() > crash::COMMITTERS, "nothing was going on");
        crash::examine(&*store, &name, &acknowledged).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn increments_go_on_through_every_end_of_the_server_and_none_is_lost() {
    const WRITERS: usize = 16;
    let Some(mut redis) = durable() else { return };
    let store = open(&redis, "increments").await;
    let done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let (store, done) = (store.clone(), done.clone());
            // Half of them meet at one key.
            tokio::spawn(async move {
                let key = if n % 2 == 0 { "shared".to_owned() } else { format!("own/{n}") };
                let (mut sure, mut unknown) = (0_u64, 0_u64);
                while !done.load(Ordering::Relaxed) {
                    match increment(&store, &key).await {
                        Ok(()) => sure += 1,
                        Err(Applied::Maybe) => unknown += 1,
                        Err(Applied::No) => tokio::time::sleep(Duration::from_millis(5)).await,
                    }
                }
                (key, sure, unknown)
            })
        })
        .collect();
    for (_, stop) in ENDS.into_iter().chain(ENDS) {
        tokio::time::sleep(Duration::from_millis(400)).await;
        stop(&mut redis);
        redis.restart().expect("it recovers");
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    done.store(true, Ordering::Relaxed);
    let mut told = std::collections::BTreeMap::<String, (u64, u64)>::new();
    for writer in writers {
        let (key, sure, unknown) = writer.await.expect("no writer has panicked");
        let sums = told.entry(key).or_default();
        *sums = (sums.0 + sure, sums.1 + unknown);
    }
    for (key, (sure, unknown)) in told {
        let found = store.read(&key, BY).await.expect("a read").expect("it was created");
        let count: u64 = str::from_utf8(&found.value).expect("text").parse().expect("a number");
        println!("{key}: {count}; {sure} acknowledged, {unknown} unknown");
        assert!(
            sure > 0 && (sure..=sure + unknown).contains(&count),
            "{key}: {sure} + {unknown} were told, not {count}"
        );
    }
}

/// Adds one, or tells whether that may have happened nevertheless.
async fn increment(store: &dyn Store, key: &str) -> Result<(), Applied> {
    let written = match store.read(key, BY).await.map_err(|_| Applied::No)? {
        None => store.create(key, "1".into(), BY).await,
        Some(found) => {
            let count: u64 = str::from_utf8(&found.value).expect("text").parse().expect("a number");
            store.replace(key, (count + 1).to_string().into(), &found.version, BY).await
        }
    };
    written.map(drop).map_err(|error| error.applied())
}

#[tokio::test]
async fn a_server_that_has_kept_nothing_is_refused_after_its_restart_rather_than_taken_for_empty() {
    let Some(mut redis) = unless_missing(Redis::start()) else { return };
    let store = open(&redis, "forgotten").await;
    let version = store.create("a", "1".into(), BY).await.expect("it is there");
    redis.kill();
    redis.restart().expect("it starts empty");
    let errors = [
        store.read("a", BY).await.expect_err("its data are gone"),
        store.replace("a", "2".into(), &version, BY).await.expect_err("its data are gone"),
    ];
    for error in errors {
        let told = error.to_string();
        assert!(matches!(error, StoreError::Format { .. }) && told.contains("turn appendonly on"), "{told}");
    }
}
