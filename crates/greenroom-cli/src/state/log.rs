//! The history of a versioned state whose protocol is `log`: its updates, and its snapshots.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use greenroom::versioned::history;
use greenroom_store::Journal;
use serde_json::{Map, Value, json};

use super::namespaces::full_name;
use super::{Failure, Location, unwritten};

/// Which history to print, and what of it.
#[derive(Args)]
pub(super) struct Log {
    /// The state, as `list` shows it, or as KIND/FIELD/KEY where the store has states of one namespace
    state: String,
    #[command(flatten)]
    location: Location,
    /// Begin with the update at this position
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,
    /// Stop after so many updates
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print what the state at this position is made of: the last snapshot before it, and the updates behind that
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "limit"])]
    at: Option<u64>,
}

impl Log {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let opened = self.location.open().await?;
        let state = full_name(&opened, &self.state).await?;
        let Some(journal) = opened.journal else {
            return Err(Failure::Other(
                "this store has no logs; name the one that the kind keeps its states in".to_owned(),
            ));
        };
        let end = journal.end(&history::updates_log(&state), opened.timeout).await?;
        if end == 1 {
            let remedy =
                "`greenroom state list state/` shows which states there are; only those of protocol \"log\" have one";
            return Err(Failure::Missing(format!("there is no log of {state:?}; {remedy}")));
        }
        let reading = Reading { journal, state, timeout: opened.timeout };
        let mut out = BufWriter::new(io::stdout().lock());
        match self.at {
            Some(at) if at >= end => {
                return Err(Failure::Missing(format!("there is no update {at} yet; the last one is {}", end - 1)));
            }
            Some(at) => {
                let from = reading.snapshot(at, &mut out).await? + 1;
                reading.updates(from, at, &mut out).await?;
            }
            None => {
                let last = self.limit.map_or(u64::MAX, |limit| self.from.saturating_add(limit - 1));
                reading.updates(self.from, last, &mut out).await?;
            }
        }
        out.flush().map_err(unwritten)
    }
}

struct Reading {
    journal: Arc<dyn Journal>,
    state: String,
    timeout: Duration,
}

impl Reading {
    /// Prints the last snapshot that has nothing behind `at`, and tells its position; 0 if there is none.
    async fn snapshot(&self, at: u64, out: &mut impl Write) -> Result<u64, Failure> {
        let found = history::snapshot_before(&*self.journal, &self.state, at, self.timeout).await;
        let Some(entry) = found.map_err(Failure::Other)? else { return Ok(0) };
        let snapshot = history::read_snapshot(&entry.value).map_err(Failure::Other)?;
        let mut line = Map::new();
        line.insert("snapshot".to_owned(), json!(snapshot.position));
        line.insert("version".to_owned(), json!(snapshot.version));
        insert(&mut line, "state", snapshot.state);
        writeln!(out, "{}", Value::Object(line)).map_err(unwritten)?;
        Ok(snapshot.position)
    }

    async fn updates(&self, from: u64, last: u64, out: &mut impl Write) -> Result<(), Failure> {
        let (log, mut next) = (history::updates_log(&self.state), from);
        while next <= last {
            let entries = self.journal.entries(&log, next, PAGE_LEN, self.timeout).await?;
            let Some(end) = entries.last().map(|entry| entry.position) else { break };
            for entry in entries.iter().filter(|entry| entry.position <= last) {
                let failed = |why| Failure::Other(format!("update {} of {:?}: {why}", entry.position, self.state));
                let recorded = history::read_entry(&entry.value).map_err(failed)?;
                let mut line = Map::new();
                line.insert("position".to_owned(), json!(entry.position));
                line.insert("version".to_owned(), json!(recorded.version));
                line.insert("written_ms".to_owned(), json!(recorded.written.as_millis() as u64));
                match recorded.update {
                    Some(update) => insert(&mut line, "update", update),
                    None => _ = line.insert("cleared".to_owned(), json!(true)),
                }
                if let Some(why) = recorded.rejected {
                    line.insert("rejected".to_owned(), json!(why));
                }
                writeln!(out, "{}", Value::Object(line)).map_err(unwritten)?;
            }
            next = end + 1;
        }
        Ok(())
    }
}

/// The value that `payload` is, or its bytes if JSON has no words for it.
fn insert(line: &mut Map<String, Value>, name: &str, payload: &[u8]) {
    let (name, value) = match history::json(payload) {
        Ok(value) => (name.to_owned(), value),
        Err(_) => (format!("{name}_base64"), STANDARD.encode(payload).into()),
    };
    line.insert(name, value);
}

/// Entries that are read at once.
const PAGE_LEN: usize = 1000;
