//! Reads: sent at once, many on one connection, each within its timeout, and again if the connection has ended.

use std::sync::Arc;
use std::time::Duration;

use greenroom_store::journal::{ENTRIES_BYTES_MAX, ENTRIES_MAX, EntriesBuilder};
use greenroom_store::network::Link;
use greenroom_store::scan::{LIMIT_MAX, PAGE_BYTES_MAX, PageBuilder};
use greenroom_store::{Entry, Item, Page, Result, StoreError, Version, Versioned};
use redis::aio::ConnectionLike;
use redis::{Cmd, Value};
use tokio::sync::Semaphore;

use crate::fault;
use crate::script::{bytes, number, text};
use crate::session::Session;
use crate::target::Target;

/// The connection for reads.
pub(crate) struct Reader {
    target: Arc<Target>,
    link: Arc<Link<Target>>,
    room: Semaphore,
}

impl Reader {
    /// One that reads through `link`.
    pub(crate) fn new(target: Arc<Target>, link: Arc<Link<Target>>) -> Self {
        Self { target, link, room: Semaphore::new(READS_MAX) }
    }

    pub(crate) async fn key(&self, key: &str, timeout: Duration) -> Result<Option<Versioned>> {
        let name = format!("{}value:{key}", self.target.prefix);
        let answer = self.ask(key, |_| redis::cmd("HMGET").arg(&name).arg("v").arg("d").take(), timeout).await?;
        let [version, value] = match answer {
            Value::Array(parts) => <[Value; 2]>::try_from(parts).map_err(|parts| self.strange(&Value::Array(parts)))?,
            other => return Err(self.strange(&other)),
        };
        match (version, value) {
            (Value::Nil, Value::Nil) => Ok(None),
            (version, value) => self.versioned(version, value).map(Some),
        }
    }

    pub(crate) async fn scan(&self, prefix: &str, after: &str, limit: usize, timeout: Duration) -> Result<Page> {
        let limit = limit.clamp(1, LIMIT_MAX);
        let from = if after >= prefix { format!("({after}") } else { format!("[{prefix}") };
        let from = if from == "(" { "-".to_owned() } else { from };
        // No text holds the byte 0xff, so this comes after all that begin with the prefix.
        let to = if prefix.is_empty() { b"+".to_vec() } else { [b"(", prefix.as_bytes(), b"\xff"].concat() };
        let call = |session: &Session| {
            session.scan.call(&self.target.prefix).arg(&from).arg(&to).arg(limit).arg(PAGE_BYTES_MAX).take()
        };
        let mut parts = match self.ask(prefix, call, timeout).await? {
            Value::Array(parts) => parts.into_iter(),
            other => return Err(self.strange(&other)),
        };
        let more = parts.next().as_ref().and_then(number) == Some(1);
        let mut page = PageBuilder::new(limit);
        while let (Some(key), Some(version), Some(value)) = (parts.next(), parts.next(), parts.next()) {
            let key = text(&key).ok_or_else(|| self.strange(&key))?;
            page.push(Item { key, versioned: self.versioned(version, value)? });
        }
        Ok(page.finish(more))
    }

    pub(crate) async fn entries(&self, log: &str, from: u64, limit: usize, timeout: Duration) -> Result<Vec<Entry>> {
        let stream = self.stream(log);
        let limit = limit.clamp(1, ENTRIES_MAX);
        let call = |session: &Session| session.entries.call(&stream).arg(from).arg(limit).arg(ENTRIES_BYTES_MAX).take();
        let mut parts = match self.ask(log, call, timeout).await? {
            Value::Array(parts) => parts.into_iter(),
            other => return Err(self.strange(&other)),
        };
        let mut entries = EntriesBuilder::new(limit);
        while let (Some(id), Some(value)) = (parts.next(), parts.next()) {
            let position = text(&id).and_then(|id| id.split_once('-')?.0.parse().ok());
            let (Some(position), Some(value)) = (position, bytes(value)) else { return Err(self.strange(&id)) };
            entries.push(Entry { position, value });
        }
        Ok(entries.finish())
    }

    pub(crate) async fn end(&self, log: &str, timeout: Duration) -> Result<u64> {
        let logs = format!("{}logs", self.target.prefix);
        let answer = self.ask(log, |_| redis::cmd("HGET").arg(&logs).arg(log).take(), timeout).await?;
        match answer {
            Value::Nil => Ok(1),
            last => Ok(number(&last).ok_or_else(|| self.strange(&last))? + 1),
        }
    }

    /// Not a read, but like one: what it does again changes nothing.
    pub(crate) async fn trim(&self, log: &str, through: u64, timeout: Duration) -> Result<()> {
        let (stream, least) = (self.stream(log), through.saturating_add(1));
        let call = |_: &Session| redis::cmd("XTRIM").arg(&stream).arg("MINID").arg(format!("{least}-0")).take();
        match self.ask(log, call, timeout).await {
            Ok(_) => Ok(()),
            // It may still be carried out.
            Err(StoreError::NotApplied { key, reason }) => Err(StoreError::Unknown { key, reason }),
            Err(error) => Err(error),
        }
    }

    /// What the server answers to a call; a second time if the connection has ended meanwhile or lost its scripts.
    async fn ask(&self, key: &str, call: impl Fn(&Session) -> Cmd, timeout: Duration) -> Result<Value> {
        let _room = self.room.try_acquire().map_err(|_| {
            let reason = format!("{READS_MAX} reads are waiting already; the server does not keep up, ask more slowly");
            StoreError::NotApplied { key: key.to_owned(), reason }
        })?;
        let read = async {
            let mut again = true;
            loop {
                let session = self.link.session().await?;
                let mut connection = session.connection.clone();
                match connection.req_packed_command(&call(&session)).await {
                    Ok(Value::ServerError(error)) if again && error.code() == "NOSCRIPT" => {}
                    Ok(Value::ServerError(error)) => return Err(fault::of_answer(&self.target, key, &error)),
                    Ok(value) => return Ok(value),
                    Err(_) if again => {}
                    Err(error) => return Err(fault::of_connection(&self.target, &error)),
                }
                again = false;
                self.link.retire(&session);
            }
        };
        tokio::time::timeout(timeout, read).await.unwrap_or_else(|_| {
            let reason = "no answer came in time; allow more time or look at the server".to_owned();
            Err(StoreError::NotApplied { key: key.to_owned(), reason })
        })
    }

    fn versioned(&self, version: Value, value: Value) -> Result<Versioned> {
        let (Some(version), Some(value)) = (text(&version), bytes(value)) else { return Err(self.strange(&version)) };
        Ok(Versioned { value, version: Version::new(version) })
    }

    fn stream(&self, log: &str) -> String {
        format!("{}log:{log}", self.target.prefix)
    }

    fn strange(&self, value: &Value) -> StoreError {
        fault::strange(&self.target, value)
    }
}

/// Most reads at once.
const READS_MAX: usize = 4096;
