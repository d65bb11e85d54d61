//! What a journal reaches by itself: the best program for it writes entries of a message's size in full batches, and trims them.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom_store::{Commit, Journal, StoreError};

use super::{BURST, BURST_BYTES};

/// Entries of `payload` bytes a second that the journal at `url` commits; `None` for one that is memory.
///
/// # Errors
/// What kept it from writing.
pub(super) async fn batch_writes(url: &str, payload: usize) -> Result<Option<f64>, String> {
    let opened = greenroom_stores::open(url).await.map_err(|error| error.to_string())?;
    let Some(journal) = opened.journal.as_ref().filter(|_| opened.shared) else { return Ok(None) };
    let batch = (BURST_BYTES / payload.max(1)).clamp(1, BURST);
    let begun = Instant::now();
    let writers = (0..WRITERS).map(|writer| write(&**journal, writer, payload, batch, begun));
    let written: u64 = try_join_all(writers).await.map_err(|error| error.to_string())?.into_iter().sum();
    Ok(Some(written as f64 / begun.elapsed().as_secs_f64()))
}

async fn write(
    journal: &dyn Journal,
    writer: usize,
    payload: usize,
    batch: usize,
    begun: Instant,
) -> Result<u64, StoreError> {
    let (log, entry) = (format!("bench/floor/{writer}"), bytes::Bytes::from(vec![7; payload]));
    let mut written = 0;
    while begun.elapsed() < SPAN {
        let commit = (0..batch).fold(Commit::new(), |commit, _| commit.append(&log, entry.clone()));
        let last = journal.commit(commit, TIMEOUT).await?.positions.last().copied();
        written += batch as u64;
        journal.trim(&log, last.unwrap_or_default(), TIMEOUT).await?;
    }
    Ok(written)
}

/// Batches on their way at once.
const WRITERS: usize = 8;
const SPAN: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(60);
