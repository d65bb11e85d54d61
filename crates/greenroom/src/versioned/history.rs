//! What a log of updates has kept: every update, and every state that there was.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::bcas::{Change, Version};
use greenroom_protocols::update_log::{Logged, Replay};
use greenroom_store::{Entry, Journal};
use greenroom_wire::codec;

use super::instance::{Instance, log_name};
use super::protocol::{Log, StateValue};
use super::{VersionedStateWithOutput, log_record};
use crate::state::StateError;

/// One update of a log, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Recorded<U> {
    /// Its place among all updates of the state, from 1, whatever was cleared.
    pub position: u64,
    /// The state's version after it.
    pub version: Version,
    /// When it was written: time since 1970, by the writer's wall clock.
    pub written: Duration,
    /// The update; `None` where the state was cleared.
    pub update: Option<U>,
    /// Why it has no effect, if it was rejected.
    pub rejected: Option<String>,
}

/// One entry of a log, for who knows no types.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RawRecorded<'a> {
    /// The state's version after it.
    pub version: Version,
    /// When it was written: time since 1970, by the writer's wall clock.
    pub written: Duration,
    /// The update, as a payload of `greenroom_wire::codec`; `None` where the state was cleared.
    pub update: Option<&'a [u8]>,
    /// Why it has no effect, if it was rejected.
    pub rejected: Option<String>,
}

/// One snapshot of a log, for who knows no types.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RawSnapshot<'a> {
    /// The last position that is in it.
    pub position: u64,
    /// The state's version then.
    pub version: Version,
    /// The state, as a payload of `greenroom_wire::codec`.
    pub state: &'a [u8],
}

/// The name of the log of updates of the state whose record has the key `state`, as `state/KIND/FIELD/KEY`.
pub fn updates_log(state: &str) -> String {
    log_name(Log::Updates, state)
}

/// The name of the log of its snapshots.
pub fn snapshots_log(state: &str) -> String {
    log_name(Log::Snapshots, state)
}

/// What an entry of a log of updates says.
///
/// # Errors
/// Why it cannot be read.
pub fn read_entry(value: &[u8]) -> Result<RawRecorded<'_>, String> {
    let log_record::Raw { version, written, rejected, update } = log_record::open_raw(value)?;
    Ok(RawRecorded { version, written, update, rejected })
}

/// What an entry of a log of snapshots says.
///
/// # Errors
/// Why it cannot be read.
pub fn read_snapshot(value: &[u8]) -> Result<RawSnapshot<'_>, String> {
    let (position, version, state) = log_record::open_raw_snapshot(value)?;
    Ok(RawSnapshot { position, version, state })
}

/// An update or a state as JSON, whose type need not be known.
///
/// # Errors
/// What JSON has no words for.
pub fn json(payload: &[u8]) -> Result<serde_json::Value, String> {
    codec::decode(payload).map_err(|error| error.to_string())
}

/// The last snapshot of `state` that has no position after `position`, found by halving: its place in its log, and the entry.
///
/// # Errors
/// Why the journal cannot be read.
pub async fn snapshot_before(
    journal: &dyn Journal,
    state: &str,
    position: u64,
    timeout: Duration,
) -> Result<Option<Entry>, String> {
    let name = snapshots_log(state);
    let end = journal.end(&name, timeout).await.map_err(|error| error.to_string())?;
    let (mut low, mut high, mut found) = (1, end, None);
    while low < high {
        let middle = low + (high - low) / 2;
        let entries = journal.entries(&name, middle, 1, timeout).await.map_err(|error| error.to_string())?;
        let Some(entry) = entries.into_iter().next() else { break };
        if log_record::open_raw_snapshot(&entry.value)?.0 <= position {
            low = entry.position + 1;
            found = Some(entry);
        } else {
            high = middle;
        }
    }
    Ok(found)
}

impl Instance {
    fn without_log(&self) -> StateError {
        let why =
            "it has no history; say #[actor(protocol = \"log\")], or protocol = \"log\" in the node's configuration";
        self.unconfirmed(why)
    }

    /// At most [`HISTORY_MAX`] recorded updates.
    pub(super) async fn history<S: VersionedStateWithOutput>(
        &self,
        range: impl RangeBounds<u64>,
    ) -> Result<Vec<Recorded<S::Update>>, StateError> {
        let (state, journal, timeout) = self.archive().ok_or_else(|| self.without_log())?;
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 1,
        };
        let mut next = from.max(1);
        let mut recorded = Vec::new();
        while recorded.len() < HISTORY_MAX && range.contains(&next) {
            let limit = HISTORY_MAX - recorded.len();
            let found = journal.entries(&updates_log(state), next, limit, timeout).await;
            let found = found.map_err(|error| self.unreadable(error))?;
            let Some(last) = found.last() else { break };
            next = last.position + 1;
            for entry in found.iter().filter(|entry| range.contains(&entry.position)) {
                let told = log_record::open_entry(self.types(), entry).map_err(|why| self.unreadable(why))?;
                recorded.push(Recorded {
                    position: entry.position,
                    version: told.entry.version,
                    written: told.written,
                    update: match &told.entry.change {
                        Change::Update(update) => update.typed::<S>().cloned(),
                        Change::Clear => None,
                    },
                    rejected: told.rejected,
                });
            }
        }
        Ok(recorded)
    }

    /// The state after the update at `position`.
    pub(super) async fn state_at<S: VersionedStateWithOutput>(
        &self,
        position: u64,
    ) -> Result<(Arc<S>, Version), StateError> {
        let (state, journal, timeout) = self.archive().ok_or_else(|| self.without_log())?;
        let mut replay: Replay<StateValue> = Replay::new(Logged::default(), Version::default(), position);
        let snapshot = snapshot_before(journal, state, position, timeout).await;
        if let Some(entry) = snapshot.map_err(|why| self.unreadable(why))? {
            let (snapshot, version) =
                log_record::open_snapshot(self.types(), &entry.value).map_err(|why| self.unreadable(why))?;
            replay.skip_to(snapshot, version);
        }
        while let Some(next) = replay.wants() {
            let found = journal.entries(&updates_log(state), next, HISTORY_MAX, timeout).await;
            let found = found.map_err(|error| self.unreadable(error))?;
            if found.is_empty() {
                return Err(self.unreadable(format!("there is no update {next} yet")));
            }
            for entry in &found {
                let told = log_record::open_entry(self.types(), entry).map_err(|why| self.unreadable(why))?;
                replay.take(&told.entry).map_err(|broken| self.unreadable(broken))?;
            }
        }
        let (reached, version) = replay.reached();
        Ok((reached.state.typed(), version))
    }

    fn unreadable(&self, why: impl ToString) -> StateError {
        let key = self.archive().map_or_else(String::new, |(key, ..)| key.to_owned());
        StateError::not_loaded(&key, why)
    }
}

/// Updates that one question is answered with.
const HISTORY_MAX: usize = 1000;
