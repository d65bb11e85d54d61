//! What callers do with a slice: hand in an order and wait until it is carried out, or look at what there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use greenroom_store::{Committed, Result, StoreError};
use rdkafka::producer::{BaseRecord, Producer};
use tokio::sync::oneshot;

use crate::clients::{Writer, opaque};
use crate::command::{Command, Id, Order};
use crate::fault;
use crate::replica::Replica;
use crate::state::{Phase, Shared, Waiting};

/// An open journal.
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) serials: AtomicU64,
    /// Slices to be restored, and who wants to be told when that is done.
    pub(crate) restores: Sender<i32>,
    /// Slices whose ends are asked for.
    pub(crate) ends: Sender<EndAsked>,
    pub(crate) opened: tokio::sync::watch::Receiver<u64>,
}

/// Somebody wants to know where a slice ends.
pub(crate) struct EndAsked {
    pub(crate) slice: i32,
    pub(crate) asked: Instant,
    pub(crate) answer: oneshot::Sender<Result<i64>>,
}

impl Core {
    pub(crate) fn name(&self) -> &str {
        &self.shared.settings.name
    }

    pub(crate) fn slices(&self) -> i32 {
        self.shared.slices()
    }

    /// Hands in an order, and waits until it is carried out.
    pub(crate) async fn order(&self, slice: i32, key: &str, order: Order, timeout: Duration) -> Result<Committed> {
        let deadline = Instant::now() + timeout;
        let not_applied = |reason: &str| StoreError::NotApplied { key: key.to_owned(), reason: reason.to_owned() };
        within(deadline, self.open(slice)).await.ok_or_else(|| not_applied(LATE))??;
        if timeout.is_zero() {
            return Err(not_applied(LATE));
        }
        let serial = self.serials.fetch_add(1, Ordering::Relaxed);
        let record = Command { id: Id { writer: self.shared.writer, serial }, order }.encode();
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.shared.slice(slice);
            if state.answers.len() >= WAITING_MAX {
                return Err(not_applied("as many commits wait as may; ask again later and more slowly"));
            }
            state.answers.insert(serial, Waiting { key: key.to_owned(), answer });
        }
        let topic = self.shared.settings.commits();
        let to = BaseRecord::<'_, (), [u8], usize>::with_opaque_to(&topic, opaque(slice, serial, self.slices()));
        if let Err((error, _)) = self.writer.send(to.partition(slice).payload(&record)) {
            self.shared.slice(slice).answers.remove(&serial);
            // It was not taken.
            return Err(match fault::of_record(self.name(), key, &error) {
                StoreError::Unknown { key, reason } => StoreError::NotApplied { key, reason },
                sure => sure,
            });
        }
        let unknown = |reason: &str| StoreError::Unknown { key: key.to_owned(), reason: reason.to_owned() };
        let answer = within(deadline, answered).await;
        if answer.is_none() {
            self.shared.slice(slice).answers.remove(&serial);
        }
        answer.ok_or_else(|| unknown("no answer came in time"))?.map_err(|_| unknown("the journal was closed"))?
    }

    /// Looks at a slice as it is now.
    pub(crate) async fn look<T>(
        &self,
        slice: i32,
        key: &str,
        timeout: Duration,
        mut look: impl FnMut(&Replica) -> T,
    ) -> Result<T> {
        let deadline = Instant::now() + timeout;
        let looking = async {
            let (answer, answered) = oneshot::channel();
            self.ends.send(EndAsked { slice, asked: Instant::now(), answer }).map_err(|_| self.closed())?;
            let end = answered.await.map_err(|_| self.closed())??;
            loop {
                self.open(slice).await?;
                let carried_out = {
                    let mut state = self.shared.slice(slice);
                    match &state.phase {
                        Phase::Open if state.replica.next >= end => return Ok(look(&state.replica)),
                        Phase::Open => {
                            let (told, carried_out) = oneshot::channel();
                            state.readers.push((end, told));
                            carried_out
                        }
                        _ => continue,
                    }
                };
                // An error means that the slice was closed meanwhile.
                let _ = carried_out.await;
            }
        };
        let late = || StoreError::NotApplied { key: key.to_owned(), reason: LATE.to_owned() };
        within(deadline, looking).await.ok_or_else(late)?
    }

    /// Waits until a slice is there.
    async fn open(&self, slice: i32) -> Result<()> {
        let mut opened = self.opened.clone();
        loop {
            opened.mark_unchanged();
            {
                let mut state = self.shared.slice(slice);
                state.used = Instant::now();
                match &state.phase {
                    Phase::Open => return Ok(()),
                    Phase::Broken(error) => return Err(error.clone()),
                    Phase::Opening => {}
                    Phase::Closed => {
                        state.phase = Phase::Opening;
                        self.restores.send(slice).map_err(|_| self.closed())?;
                    }
                }
            }
            opened.changed().await.map_err(|_| self.closed())?;
        }
    }

    fn closed(&self) -> StoreError {
        let reason = "one of its threads has ended by a panic; open it again".to_owned();
        StoreError::Unavailable { store: self.name().to_owned(), reason }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.shared.end();
        // What is on its way has a little time; nobody waits for it any more.
        drop(self.writer.flush(FLUSH));
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// `None` if the deadline comes first.
async fn within<F: Future>(deadline: Instant, future: F) -> Option<F::Output> {
    tokio::time::timeout_at(deadline.into(), future).await.ok()
}

const LATE: &str =
    "its timeout ended before its turn came: no broker answers, or the partition is being read; allow more time";
/// Records on their way in one slice.
const WAITING_MAX: usize = 65_536;
const FLUSH: Duration = Duration::from_millis(200);
