//! Keys and values from JSON lines, each written on the condition that nobody else has.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use futures_util::future::join_all;
use greenroom_store::StoreError;

use super::line::Line;
use super::{Failure, Location, Opened, keys};

/// Where the lines come from, and what to do about keys that are there.
#[derive(Args)]
pub(super) struct Import {
    /// A file as `export` writes it; `-` for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    location: Location,
    /// Replace the values of keys that are there, instead of calling them conflicts
    #[arg(long)]
    replace: bool,
    /// Leave keys that are there as they are, and say nothing of them
    #[arg(long, conflicts_with = "replace")]
    skip: bool,
}

/// A line that has been read.
struct Entry {
    number: u64,
    key: String,
    value: Bytes,
}

/// What came of a line.
enum Done {
    Created,
    Replaced,
    Skipped,
}

#[derive(Default)]
struct Counts {
    created: u64,
    replaced: u64,
    skipped: u64,
    conflicts: u64,
}

impl Import {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::Other(format!("cannot read {}: {error}", self.file.display()));
        let input: Box<dyn Read> = match self.file.to_str() {
            Some("-") => Box::new(io::stdin()),
            _ => Box::new(File::open(&self.file).map_err(failed)?),
        };
        let opened = self.location.open_or_create().await?;
        let (mut lines, mut counts) = (Lines::new(input), Counts::default());
        let ended = loop {
            match lines.batch() {
                Ok(batch) if batch.is_empty() => break Ok(()),
                Ok(batch) => {
                    if let Err(failure) = self.write(&opened, batch, &mut counts).await {
                        break Err(failure);
                    }
                }
                Err(failure) => break Err(failure),
            }
        };
        let Counts { created, replaced, skipped, conflicts } = counts;
        eprintln!("created {created}, replaced {replaced}, skipped {skipped}, conflicts {conflicts}");
        ended?;
        if conflicts > 0 {
            let remedy =
                "--replace writes over keys that are there, --skip leaves them; the same file may be imported again";
            return Err(Failure::Conflict(format!("{conflicts} keys were not written; {remedy}")));
        }
        Ok(())
    }

    /// Writes keys that differ, all at once. Conflicts are told and counted; the first other failure is the batch's.
    async fn write(&self, opened: &Opened, batch: Vec<Entry>, counts: &mut Counts) -> Result<(), Failure> {
        let written = batch.into_iter().map(|entry| async move {
            let done = self.write_one(opened, &entry).await;
            (entry, done)
        });
        let mut ended = Ok(());
        for (entry, done) in join_all(written).await {
            match done {
                Ok(Done::Created) => counts.created += 1,
                Ok(Done::Replaced) => counts.replaced += 1,
                Ok(Done::Skipped) => counts.skipped += 1,
                Err(error) if error.is_conflict() => {
                    counts.conflicts += 1;
                    eprintln!("line {}: conflict: key {} is there", entry.number, keys::shown(&entry.key));
                }
                Err(error) if ended.is_ok() => {
                    eprintln!("line {}: key {} failed", entry.number, keys::shown(&entry.key));
                    ended = Err(Failure::from(error));
                }
                Err(error) => eprintln!("line {}: {error}", entry.number),
            }
        }
        ended
    }

    async fn write_one(&self, opened: &Opened, entry: &Entry) -> Result<Done, StoreError> {
        let Opened { store, timeout, .. } = opened;
        if self.replace
            && let Some(found) = store.read(&entry.key, *timeout).await?
        {
            store.replace(&entry.key, entry.value.clone(), &found.version, *timeout).await?;
            return Ok(Done::Replaced);
        }
        match store.create(&entry.key, entry.value.clone(), *timeout).await {
            Err(error) if error.is_conflict() && self.skip => Ok(Done::Skipped),
            created => created.map(|_| Done::Created),
        }
    }
}

/// Reads lines in batches whose keys differ, so that a batch may be written in any order.
struct Lines {
    input: BufReader<Box<dyn Read>>,
    number: u64,
    /// Read already, and of the next batch.
    next: Option<Entry>,
}

impl Lines {
    fn new(input: Box<dyn Read>) -> Self {
        Self { input: BufReader::new(input), number: 0, next: None }
    }

    /// The next lines; none at the end.
    fn batch(&mut self) -> Result<Vec<Entry>, Failure> {
        let (mut batch, mut keys, mut bytes) = (Vec::new(), BTreeSet::new(), 0);
        while batch.len() < BATCH_LEN_MAX && bytes < BATCH_BYTES_MAX {
            let Some(entry) = self.next.take().map_or_else(|| self.read(), |entry| Ok(Some(entry)))? else { break };
            if !keys.insert(entry.key.clone()) {
                self.next = Some(entry);
                break;
            }
            bytes += entry.value.len();
            batch.push(entry);
        }
        Ok(batch)
    }

    fn read(&mut self) -> Result<Option<Entry>, Failure> {
        loop {
            let mut line = Vec::new();
            self.number += 1;
            let number = self.number;
            let failed = |reason: String| Failure::Other(format!("line {number}: {reason}"));
            let read = self.input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            if read.map_err(|error| failed(format!("cannot be read: {error}")))? == 0 {
                return Ok(None);
            }
            if line.len() as u64 == LINE_BYTES_MAX {
                return Err(failed("it is longer than any value may be".to_owned()));
            }
            if !line.trim_ascii().is_empty() {
                let (key, value) = Line::parse(&line).map_err(failed)?;
                return Ok(Some(Entry { number, key, value }));
            }
        }
    }
}

/// Writes on their way at once.
const BATCH_LEN_MAX: usize = 64;

/// Bytes of values on their way at once, but for one value more.
const BATCH_BYTES_MAX: usize = 64 << 20;

/// Longest line: the largest value of any store, with every byte escaped.
const LINE_BYTES_MAX: u64 = 512 << 20;
