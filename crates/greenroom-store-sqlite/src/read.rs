//! The thread that reads.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use bytes::Bytes;
use greenroom_store::journal::EntriesBuilder;
use greenroom_store::scan::PageBuilder;
use greenroom_store::{Entry, Item, Page, Result, Version, Versioned};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::fault;
use crate::file::File;
use crate::request::{Ask, Request};

/// One read.
pub(crate) enum Read {
    Key(String),
    Scan { prefix: String, after: Option<String>, limit: usize },
    Entries { log: String, from: u64, limit: usize },
    End { log: String },
}

/// What was found.
pub(crate) enum Answer {
    /// For a key or a scan: of one item at most for a key.
    Page(Page),
    Entries(Vec<Entry>),
    End(u64),
}

impl Ask for Read {
    type Answer = Answer;
    const WRITES: bool = false;

    fn key(&self) -> &str {
        match self {
            Self::Key(key) => key,
            Self::Scan { prefix, .. } => prefix,
            Self::Entries { log, .. } | Self::End { log } => log,
        }
    }

    fn bytes(&self) -> usize {
        self.key().len()
    }
}

/// The connection for reads.
pub(crate) struct Reader {
    pub(crate) file: File,
    pub(crate) connection: Connection,
}

/// Serves reads, in order, until nobody can ask any more. Those that wait when one begins share its snapshot: each sees what was
/// committed when it was asked.
pub(crate) fn run(reader: Reader, queue: Receiver<Request<Read>>) {
    while let Ok(first) = queue.recv() {
        let others = queue.try_iter().take(TOGETHER_MAX - 1);
        reader.serve(std::iter::once(first).chain(others).collect());
    }
}

impl Reader {
    fn serve(&self, requests: Vec<Request<Read>>) {
        let present = self.file.check_present();
        // Without a snapshot for all of them each has its own.
        let shared = requests.len() > 1 && self.run(BEGIN).is_ok();
        let now = Instant::now();
        for request in requests.into_iter().filter_map(|request| request.begin(now)) {
            let answer = present.clone().and_then(|()| self.read(&request));
            request.answer(answer);
        }
        if shared && !self.connection.is_autocommit() {
            // It fails only if there is no transaction, which is what is wanted.
            drop(self.run(END));
        }
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn read(&self, request: &Request<Read>) -> Result<Answer> {
        loop {
            let answer = match request.ask() {
                Read::Key(key) => self.key(key).map(Answer::Page),
                Read::Scan { prefix, after, limit } => self.scan(prefix, after.as_deref(), *limit).map(Answer::Page),
                Read::Entries { log, from, limit } => self.entries(log, *from, *limit).map(Answer::Entries),
                Read::End { log } => self.end(log).map(Answer::End),
            };
            match answer {
                Ok(answer) => return Ok(answer),
                // Only while another process recovers the log after a crash, or closes the file as the last one.
                Err(error) if fault::is_busy(&error) && request.is_wanted(Instant::now()) => {
                    std::thread::sleep(BUSY_PAUSE)
                }
                Err(error) => return Err(fault::without_effect(&self.file, &error)),
            }
        }
    }

    fn key(&self, key: &str) -> rusqlite::Result<Page> {
        let mut select = self.connection.prepare_cached(SELECT_KEY)?;
        let items = select.query_map([key], item)?.collect::<rusqlite::Result<_>>()?;
        Ok(Page { items, next: None })
    }

    fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> rusqlite::Result<Page> {
        let mut select = self.connection.prepare_cached(if after.is_some() { SELECT_AFTER } else { SELECT_FROM })?;
        let mut rows = select.query([after.unwrap_or(prefix)])?;
        let mut page = PageBuilder::new(limit);
        while let Some(row) = rows.next()? {
            if !row.get_ref(0)?.as_str()?.starts_with(prefix) {
                break;
            }
            if page.is_full() {
                return Ok(page.finish(true));
            }
            page.push(item(row)?);
        }
        Ok(page.finish(false))
    }

    fn entries(&self, log: &str, from: u64, limit: usize) -> rusqlite::Result<Vec<Entry>> {
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let mut select = self.connection.prepare_cached(SELECT_ENTRIES)?;
        let mut rows = select.query(params![log, from])?;
        let mut entries = EntriesBuilder::new(limit);
        while !entries.is_full()
            && let Some(row) = rows.next()?
        {
            let value = Bytes::copy_from_slice(row.get_ref(1)?.as_blob()?);
            entries.push(Entry { position: row.get::<_, i64>(0)?.cast_unsigned(), value });
        }
        Ok(entries.finish())
    }

    fn end(&self, log: &str) -> rusqlite::Result<u64> {
        let mut select = self.connection.prepare_cached("SELECT next FROM greenroom_logs WHERE name = ?1")?;
        let next = select.query_row([log], |row| row.get::<_, i64>(0)).optional()?;
        Ok(next.map_or(1, i64::cast_unsigned))
    }
}

fn item(row: &Row<'_>) -> rusqlite::Result<Item> {
    let version: i64 = row.get(1)?;
    let value = Bytes::copy_from_slice(row.get_ref(2)?.as_blob()?);
    Ok(Item { key: row.get(0)?, versioned: Versioned { value, version: Version::new(version.to_string()) } })
}

const SELECT_KEY: &str = "SELECT key, version, value FROM greenroom_store WHERE key = ?1";
const SELECT_FROM: &str = "SELECT key, version, value FROM greenroom_store WHERE key >= ?1 ORDER BY key";
const SELECT_ENTRIES: &str = "SELECT position, value FROM greenroom_log
    WHERE log = (SELECT id FROM greenroom_logs WHERE name = ?1) AND position >= ?2 ORDER BY position";
const SELECT_AFTER: &str = "SELECT key, version, value FROM greenroom_store WHERE key > ?1 ORDER BY key";

/// The snapshot is that of the first read behind it.
const BEGIN: &str = "BEGIN";
/// It has only read.
const END: &str = "ROLLBACK";

/// Most reads that share a snapshot: while it lasts, the log of writes cannot be begun anew.
const TOGETHER_MAX: usize = 64;

/// Between attempts to read a file that is locked for the moment.
const BUSY_PAUSE: Duration = Duration::from_micros(500);
