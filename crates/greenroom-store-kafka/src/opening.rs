//! Opening a journal: its topics, its clients, its threads.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use greenroom_store::{Result, StoreError};
use rdkafka::producer::Producer;

use crate::checkpoint::Checkpointer;
use crate::clients::{self, Writer};
use crate::core::{Core, EndAsked};
use crate::restore::Restorer;
use crate::settings::Settings;
use crate::state::Shared;
use crate::tail::Tail;
use crate::{fault, topics};

/// # Errors
/// As [`KafkaStore::open`](crate::KafkaStore::open).
pub(crate) async fn open(settings: Settings) -> Result<Core> {
    let slices = topics::ensure(&settings).await?;
    // Seeded by the system anew each time.
    let number = RandomState::new().hash_one(std::process::id());
    let shared = Arc::new(Shared::new(settings, slices, number));
    let writer = Arc::new(clients::writer(&shared)?);
    let (restores, wanted) = channel();
    let (restored, begins) = channel();
    let (checkpoints, jobs) = channel();
    let (ends, asked) = channel();
    let (tell, opened) = tokio::sync::watch::channel(0);
    let tell = Arc::new(tell);
    let consumer = clients::reader(&shared.settings, true)?;
    let restorer = Restorer { shared: shared.clone(), consumer, wanted, restored, opened: tell.clone() };
    start(&shared, "kafka-restore", move || restorer.run())?;
    let consumer = clients::reader(&shared.settings, false)?;
    let tail =
        Tail { shared: shared.clone(), consumer, writer: writer.clone(), restored: begins, checkpoints, opened: tell };
    start(&shared, "kafka-tail", move || tail.run())?;
    let checkpointer = Checkpointer { shared: shared.clone(), writer: writer.clone(), jobs };
    start(&shared, "kafka-checkpoint", move || checkpointer.run())?;
    let (shared_too, writer_too) = (shared.clone(), writer.clone());
    start(&shared, "kafka-ends", move || answer_ends(&shared_too, &writer_too, &asked))?;
    // Serials begin at 1.
    Ok(Core { shared, writer, serials: AtomicU64::new(1), restores, ends, opened })
}

fn start(shared: &Shared, name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(drop).map_err(|error| StoreError::Unavailable {
        store: shared.settings.name.clone(),
        reason: format!("its thread {name} cannot be started ({error}); raise the limit of threads"),
    })
}

/// Asks the brokers where slices end, once for all who wait; again while they do not answer, as just after a restart.
fn answer_ends(shared: &Shared, writer: &Writer, asked: &Receiver<EndAsked>) {
    let mut waiting: BTreeMap<i32, Vec<EndAsked>> = BTreeMap::new();
    loop {
        let first = match asked.recv_timeout(if waiting.is_empty() { IDLE } else { PAUSE }) {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        for ask in first.into_iter().chain(asked.try_iter()) {
            waiting.entry(ask.slice).or_default().push(ask);
        }
        for (slice, mut asks) in std::mem::take(&mut waiting) {
            let ends = writer.client().fetch_watermarks(&shared.settings.commits(), slice, PATIENCE);
            if ends.is_err() {
                let (late, wanted) = asks.into_iter().partition(|ask| ask.asked.elapsed() > AGAIN);
                asks = late;
                let wanted: Vec<_> = Vec::into_iter(wanted).filter(|ask| !ask.answer.is_closed()).collect();
                if !wanted.is_empty() {
                    waiting.insert(slice, wanted);
                }
            }
            let end = ends.map_err(|error| fault::without_effect(&shared.settings.name, &error));
            for ask in asks {
                // An error means that it has given up.
                let _ = ask.answer.send(end.clone().map(|(_, high)| high));
            }
        }
    }
}

/// Silence of the brokers after which they are asked again.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time for answers, after which a read fails.
const AGAIN: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_secs(60);
