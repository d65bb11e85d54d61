//! What commits do to the tables, within the transaction of a batch.

use std::collections::BTreeMap;

use greenroom_store::journal::Write;
use greenroom_store::{Commit, Committed, Found, Result, StoreError, Version};
use rusqlite::{Connection, OptionalExtension, params};

use crate::write::{Ordered, Outcome};

/// The batch's transaction: what it has to write back at its end, beside the rows themselves.
pub(crate) struct Applying<'a> {
    connection: &'a Connection,
    pub(crate) last_version: i64,
    /// The logs that the batch appends to, and their ends.
    logs: BTreeMap<&'a str, Log>,
    /// How many of the batch have changed something.
    pub(crate) changing: u64,
}

struct Log {
    id: i64,
    next: i64,
}

impl<'a> Applying<'a> {
    pub(crate) fn new(connection: &'a Connection, last_version: i64) -> Self {
        Self { connection, last_version, logs: BTreeMap::new(), changing: 0 }
    }

    /// Carries out what is ordered; a condition that fails leaves nothing of it.
    pub(crate) fn apply(&mut self, ordered: &'a Ordered) -> rusqlite::Result<Result<Outcome>> {
        match ordered {
            Ordered::Commit(commit) => Ok(self.commit(commit)?.map(Outcome::Committed)),
            Ordered::Trim { log, through } => self.trim(log, *through).map(Ok),
        }
    }

    /// Writes the ends of the logs back.
    pub(crate) fn finish(&self) -> rusqlite::Result<()> {
        let mut update = self.connection.prepare_cached("UPDATE greenroom_logs SET next = ?2 WHERE id = ?1")?;
        self.logs.values().try_for_each(|log| update.execute([log.id, log.next]).map(drop))
    }

    fn commit(&mut self, commit: &'a Commit) -> rusqlite::Result<Result<Committed>> {
        // A single write checks and writes by one statement; of several, all conditions are checked before any write.
        let alone = commit.operations() == 1;
        for write in commit.writes.iter().filter(|write| !alone || matches!(write, Write::Holds { .. })) {
            if let Some(conflict) = self.unmet(write)? {
                return Ok(Err(conflict));
            }
        }
        let mut committed = Committed::default();
        for write in &commit.writes {
            match self.write(write)? {
                Some(version) => committed.versions.push(version),
                None => return Ok(Err(self.conflict(write.key())?)),
            }
        }
        for append in &commit.appends {
            let position = self.append(&append.log, &append.entry)?;
            committed.positions.push(position.cast_unsigned());
        }
        let changes = commit.writes.iter().any(|write| !matches!(write, Write::Holds { .. }));
        self.changing += u64::from(changes || !commit.appends.is_empty());
        Ok(Ok(committed))
    }

    /// The conflict, if the write's condition does not hold.
    fn unmet(&self, write: &Write) -> rusqlite::Result<Option<StoreError>> {
        let expected = match write {
            Write::Put { .. } | Write::Remove { .. } => return Ok(None),
            Write::Create { .. } => None,
            Write::Replace { expected, .. } | Write::Delete { expected, .. } | Write::Holds { expected, .. } => {
                Some(number(expected))
            }
        };
        let current = self.version(write.key())?;
        Ok((current != expected).then(|| conflict(write.key(), current)))
    }

    /// The version that the key gets (an inner `None`: none), or `None` if the condition does not hold.
    fn write(&mut self, write: &Write) -> rusqlite::Result<Option<Option<Version>>> {
        let next = self.last_version + 1;
        let run = |sql, row: &[&dyn rusqlite::ToSql]| self.connection.prepare_cached(sql)?.execute(row);
        let changed = match write {
            Write::Holds { .. } => return Ok(Some(None)),
            Write::Remove { key } => {
                run("DELETE FROM greenroom_store WHERE key = ?1", params![key])?;
                return Ok(Some(None));
            }
            Write::Delete { key, expected } => {
                let deleted = run(DELETE, params![key, number(expected)])?;
                return Ok((deleted > 0).then_some(None));
            }
            Write::Create { key, value } => run(INSERT, params![key, next, &value[..]])?,
            Write::Replace { key, value, expected } => run(UPDATE, params![key, next, &value[..], number(expected)])?,
            Write::Put { key, value } => run(UPSERT, params![key, next, &value[..]])?,
        };
        if changed == 0 {
            return Ok(None);
        }
        self.last_version = next;
        Ok(Some(Some(Version::new(next.to_string()))))
    }

    fn append(&mut self, name: &'a str, entry: &[u8]) -> rusqlite::Result<i64> {
        if !self.logs.contains_key(name) {
            let log = self.log(name)?;
            self.logs.insert(name, log);
        }
        let log = self.logs.get_mut(name).expect("it was inserted if it was not there");
        let position = log.next;
        self.connection.prepare_cached(APPEND)?.execute(params![log.id, position, entry])?;
        log.next += 1;
        Ok(position)
    }

    /// The log called `name`, made if there is none.
    fn log(&self, name: &str) -> rusqlite::Result<Log> {
        let mut select = self.connection.prepare_cached("SELECT id, next FROM greenroom_logs WHERE name = ?1")?;
        let found = select.query_row([name], |row| Ok(Log { id: row.get(0)?, next: row.get(1)? })).optional()?;
        if let Some(found) = found {
            return Ok(found);
        }
        let mut insert = self.connection.prepare_cached("INSERT INTO greenroom_logs (name, next) VALUES (?1, 1)")?;
        Ok(Log { id: insert.insert([name])?, next: 1 })
    }

    /// Removes the first entries, some at a time.
    fn trim(&mut self, name: &str, through: u64) -> rusqlite::Result<Outcome> {
        let mut select = self.connection.prepare_cached(SELECT_FIRST)?;
        let found: Option<(i64, i64)> = select.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let through = i64::try_from(through).unwrap_or(i64::MAX);
        let Some((id, first)) = found.filter(|(_, first)| *first <= through) else {
            return Ok(Outcome::Trimmed { more: false });
        };
        let last = through.min(first + TRIMMED_AT_ONCE_MAX - 1);
        self.connection.prepare_cached(TRIM)?.execute([id, last])?;
        self.changing += 1;
        Ok(Outcome::Trimmed { more: last < through })
    }

    fn conflict(&self, key: &str) -> rusqlite::Result<StoreError> {
        Ok(conflict(key, self.version(key)?))
    }

    fn version(&self, key: &str) -> rusqlite::Result<Option<i64>> {
        let mut select = self.connection.prepare_cached("SELECT version FROM greenroom_store WHERE key = ?1")?;
        select.query_row([key], |row| row.get(0)).optional()
    }
}

fn conflict(key: &str, current: Option<i64>) -> StoreError {
    let found = current.map_or(Found::Absent, |number| Found::Version(Version::new(number.to_string())));
    StoreError::Conflict { key: key.to_owned(), found }
}

/// The number that a version spells; versions start at 1, so 0 is what no row has.
fn number(version: &Version) -> i64 {
    let text = version.as_str();
    text.parse::<i64>().ok().filter(|number| number.to_string() == text).unwrap_or(0)
}

const INSERT: &str = "INSERT INTO greenroom_store (key, version, value) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
const UPDATE: &str = "UPDATE greenroom_store SET version = ?2, value = ?3 WHERE key = ?1 AND version = ?4";
const UPSERT: &str = "INSERT INTO greenroom_store (key, version, value) VALUES (?1, ?2, ?3)
    ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value";
const DELETE: &str = "DELETE FROM greenroom_store WHERE key = ?1 AND version = ?2";
const APPEND: &str = "INSERT INTO greenroom_log (log, position, value) VALUES (?1, ?2, ?3)";
const TRIM: &str = "DELETE FROM greenroom_log WHERE log = ?1 AND position <= ?2";
const SELECT_FIRST: &str = "SELECT id, position FROM greenroom_logs JOIN greenroom_log ON log = id
    WHERE name = ?1 ORDER BY position LIMIT 1";

/// Most entries that one request removes, so that those behind it do not wait for long.
const TRIMMED_AT_ONCE_MAX: i64 = 4096;
