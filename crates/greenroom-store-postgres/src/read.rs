//! Reads: sent at once, many on one connection, each within its timeout, and again if the connection has ended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use greenroom_store::journal::{ENTRIES_BYTES_MAX, ENTRIES_MAX, EntriesBuilder};
use greenroom_store::network::{Connect, Link};
use greenroom_store::scan::{LIMIT_MAX, PAGE_BYTES_MAX, PageBuilder};
use greenroom_store::{Entry, Item, Page, Result, StoreError, Version, Versioned};
use tokio::sync::Semaphore;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::fault;
use crate::session::Session;
use crate::target::Target;

/// A connection for reads.
pub(crate) struct Reader {
    target: Arc<Target>,
    link: Arc<Link<Target>>,
    room: Semaphore,
}

type Arguments<'a> = [&'a (dyn ToSql + Sync)];

impl Reader {
    /// One that reads through `link`.
    pub(crate) fn new(target: Arc<Target>, link: Arc<Link<Target>>) -> Self {
        Self { target, link, room: Semaphore::new(READS_MAX) }
    }

    pub(crate) async fn key(&self, key: &str, timeout: Duration) -> Result<Option<Versioned>> {
        let rows = self.rows(key, |session| &session.read, &[&key], timeout).await?;
        let versioned = |row: &Row| Versioned { value: bytes(row, 1), version: version(row, 0) };
        Ok(rows.first().map(versioned))
    }

    pub(crate) async fn scan(&self, prefix: &str, after: &str, limit: usize, timeout: Duration) -> Result<Page> {
        let limit = limit.clamp(1, LIMIT_MAX);
        let (number, bytes_max) = (limit as i64, PAGE_BYTES_MAX as i64);
        let arguments: &Arguments = &[&after, &prefix, &end(prefix), &number, &bytes_max];
        let rows = self.rows(prefix, |session| &session.scan, arguments, timeout).await?;
        let mut page = PageBuilder::new(limit);
        for row in &rows {
            let Some(value) = row.get::<_, Option<&[u8]>>(2) else { return Ok(page.finish(true)) };
            let versioned = Versioned { value: Bytes::copy_from_slice(value), version: version(row, 1) };
            page.push(Item { key: row.get(0), versioned });
        }
        Ok(page.finish(false))
    }

    pub(crate) async fn entries(&self, log: &str, from: u64, limit: usize, timeout: Duration) -> Result<Vec<Entry>> {
        let mut entries = EntriesBuilder::new(limit);
        let (number, bytes_max) = (limit.clamp(1, ENTRIES_MAX) as i64, ENTRIES_BYTES_MAX as i64);
        let arguments: &Arguments = &[&log, &position(from), &number, &bytes_max];
        for row in self.rows(log, |session| &session.entries, arguments, timeout).await? {
            if !entries.is_full() {
                let position = row.get::<_, i64>(0).cast_unsigned();
                entries.push(Entry { position, value: bytes(&row, 1) });
            }
        }
        Ok(entries.finish())
    }

    pub(crate) async fn end(&self, log: &str, timeout: Duration) -> Result<u64> {
        let rows = self.rows(log, |session| &session.end, &[&log], timeout).await?;
        Ok(rows.first().map_or(1, |row| row.get::<_, i64>(0).cast_unsigned()))
    }

    /// Not a read, but like one: what it does again changes nothing.
    pub(crate) async fn trim(&self, log: &str, through: u64, timeout: Duration) -> Result<()> {
        let trim = async {
            loop {
                let session = self.link.session().await?;
                let trimmed = session.client.execute(&session.trim, &[&log, &position(through)]).await;
                match trimmed {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) => return Err(fault::of_write(&self.target, log, &error)),
                }
            }
        };
        let unknown = || StoreError::Unknown { key: log.to_owned(), reason: "no answer came in time".to_owned() };
        tokio::time::timeout(timeout, trim).await.unwrap_or_else(|_| Err(unknown()))
    }

    /// What a statement answers; a second time if the connection has ended meanwhile.
    async fn rows(
        &self,
        key: &str,
        statement: impl Fn(&Session) -> &Statement,
        arguments: &Arguments<'_>,
        timeout: Duration,
    ) -> Result<Vec<Row>> {
        let _room = self.room.try_acquire().map_err(|_| {
            let reason = format!("{READS_MAX} reads are waiting already; the server does not keep up, ask more slowly");
            StoreError::NotApplied { key: key.to_owned(), reason }
        })?;
        let read = async {
            let mut again = true;
            loop {
                let session = self.link.session().await?;
                match session.client.query(statement(&session), arguments).await {
                    Ok(rows) => return Ok(rows),
                    Err(_) if again && !Target::is_open(&session) => again = false,
                    Err(error) => return Err(fault::without_effect(&self.target, key, &error)),
                }
            }
        };
        tokio::time::timeout(timeout, read).await.unwrap_or_else(|_| {
            let reason = "no answer came in time; allow more time or look at the server".to_owned();
            Err(StoreError::NotApplied { key: key.to_owned(), reason })
        })
    }
}

fn version(row: &Row, at: usize) -> Version {
    Version::new(row.get::<_, i64>(at).to_string())
}

fn bytes(row: &Row, at: usize) -> Bytes {
    Bytes::copy_from_slice(row.get::<_, &[u8]>(at))
}

fn position(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The least text after all that begin with `prefix`, in the order of bytes, which is that of characters.
fn end(prefix: &str) -> String {
    let mut characters: Vec<char> = prefix.chars().collect();
    while let Some(last) = characters.pop() {
        // A step over the surrogates, which are no characters.
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            characters.push(next);
            return characters.into_iter().collect();
        }
    }
    std::iter::repeat_n(char::MAX, greenroom_store::key::KEY_BYTES_MAX / char::MAX.len_utf8() + 1).collect()
}

/// Most reads at once on one connection.
const READS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one_also_at_the_edges_of_the_characters() {
        for (prefix, after) in [("a", "b"), ("a/", "a0"), ("\u{d7ff}", "\u{e000}"), ("a\u{10ffff}", "b")] {
            assert_eq!(end(prefix), after);
        }
        let greatest_key: String = std::iter::repeat_n(char::MAX, 225).collect();
        assert!(end("") > greatest_key && end("\u{10ffff}") > greatest_key);
    }
}
