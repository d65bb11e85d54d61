//! Servers that stop, or are killed, in the middle of writes: nothing acknowledged is lost, and the store goes on.
//!
//! The engine is stopped only when writes are going on, and what is examined was written after it came back, too:
//! both are waited for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use greenroom_store::{Applied, Journal, Store};

use crate::crash::{self, COMMITTERS};
use crate::{BY, plain};

/// A way in which an engine ends, with its name.
pub type End<E> = (&'static str, fn(&mut E));

/// Many add to counters through `store`, while `engine` ends in each of these ways and is restarted: each counter is
/// between what was acknowledged and what may have been applied, and all go on after each restart.
pub async fn no_increment_is_lost<E: Send + 'static>(
    store: Arc<dyn Store>,
    engine: E,
    ends: &'static [End<E>],
    restart: fn(&mut E),
) {
    let load = Arc::new(Load::default());
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            // Half of them meet at one key.
            let key = if n % 2 == 0 { "restarts/shared".to_owned() } else { format!("restarts/own/{n}") };
            tokio::spawn(add_on(store.clone(), key, load.clone()))
        })
        .collect();
    let watched = load.clone();
    let trouble = tokio::task::spawn_blocking(move || {
        let mut engine = engine;
        watched.goes_on("at first");
        for (name, end) in ends {
            end(&mut engine);
            restart(&mut engine);
            watched.goes_on(name);
        }
        engine
    });
    let troubled = trouble.await;
    load.over.store(true, Ordering::Relaxed);
    // The engine is kept until all is examined.
    let _engine = troubled.expect("the engine ends and comes back");
    let mut told = BTreeMap::<String, (u64, u64)>::new();
    for writer in writers {
        let (key, sure, doubtful) = writer.await.expect("no writer has panicked");
        let sums = told.entry(key).or_default();
        *sums = (sums.0 + sure, sums.1 + doubtful);
    }
    for (key, (sure, doubtful)) in told {
        let count = plain::number(&*store, &key).await;
        assert!(
            sure > 0 && (sure..=sure + doubtful).contains(&count),
            "{key}: {sure} increments were acknowledged and {doubtful} in doubt, {count} are there"
        );
    }
}

/// Many commit through `journal`, while `engine` ends in each of these ways and is restarted: nothing acknowledged is
/// lost, and no commit is there by half.
pub async fn no_commit_is_lost<E: Send + 'static>(
    journal: Arc<dyn Journal>,
    mut engine: E,
    ends: &'static [End<E>],
    restart: fn(&mut E),
) {
    for (round, (end, stop)) in ends.iter().enumerate() {
        let name = format!("restarts/{end}/{round}");
        let load = Arc::new(Load::default());
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let (seen, told, worker, work) = (load.clone(), acknowledged.clone(), journal.clone(), name.clone());
        let work = tokio::spawn(async move {
            let tell = |one| {
                told.lock().unwrap_or_else(PoisonError::into_inner).push(one);
                seen.acknowledged.fetch_add(1, Ordering::Relaxed);
            };
            crash::work(worker, &work, tell).await
        });
        let trouble = tokio::task::spawn_blocking(move || {
            load.goes_on("before the end");
            stop(&mut engine);
            engine
        });
        engine = trouble.await.expect("the engine ends");
        let errors = work.await.expect("the work has not panicked");
        assert_eq!(errors.len(), COMMITTERS);
        let restarting = tokio::task::spawn_blocking(move || {
            restart(&mut engine);
            engine
        });
        engine = restarting.await.expect("the engine comes back");
        let acknowledged = acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
        crash::examine(&*journal, &name, &acknowledged).await;
    }
}

/// What the writers of one claim have in common.
#[derive(Default)]
struct Load {
    acknowledged: AtomicU64,
    over: AtomicBool,
}

impl Load {
    /// Blocks until many more writes have been acknowledged.
    fn goes_on(&self, when: &str) {
        let (begun, enough) = (Instant::now(), self.acknowledged.load(Ordering::Relaxed) + ENOUGH);
        while self.acknowledged.load(Ordering::Relaxed) < enough {
            assert!(begun.elapsed() < PATIENCE, "nothing goes on: {when}");
            std::thread::sleep(PAUSE);
        }
    }
}

/// Adds one to `key` until the load is over: how often that was acknowledged, and how often it may have happened besides.
async fn add_on(store: Arc<dyn Store>, key: String, load: Arc<Load>) -> (String, u64, u64) {
    let (mut sure, mut doubtful) = (0, 0);
    while !load.over.load(Ordering::Relaxed) {
        match add(&*store, &key).await {
            Ok(()) => {
                sure += 1;
                load.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err(Applied::Maybe) => doubtful += 1,
            Err(Applied::No) => tokio::time::sleep(PAUSE).await,
        }
    }
    (key, sure, doubtful)
}

/// Adds one, or tells whether that may have happened nevertheless.
async fn add(store: &dyn Store, key: &str) -> Result<(), Applied> {
    let written = match store.read(key, BY).await.map_err(|_| Applied::No)? {
        None => store.create(key, "1".into(), BY).await,
        Some(found) => {
            let count: u64 = str::from_utf8(&found.value).expect("text").parse().expect("a number");
            store.replace(key, (count + 1).to_string().into(), &found.version, BY).await
        }
    };
    written.map(drop).map_err(|error| error.applied())
}

const WRITERS: usize = 16;
/// Writes that show that the store goes on.
const ENOUGH: u64 = 100;
/// Within which they come, on a slow machine too.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(5);
