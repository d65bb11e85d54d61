//! What commits do to the tables, within the transaction of a batch.

use std::collections::BTreeMap;

use greenroom_store::journal::Write;
use greenroom_store::{Commit, Committed, Found, Result, StoreError, Version};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use crate::write::{Ordered, Outcome};

/// The batch's transaction: what it has to write back at its end, beside the rows themselves.
pub(crate) struct Applying<'a> {
    statements: Statements<'a>,
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
        Self { statements: Statements::of(connection), last_version, logs: BTreeMap::new(), changing: 0 }
    }

    /// Carries out what is ordered; a condition that fails leaves nothing of it.
    pub(crate) fn apply(&mut self, ordered: &'a Ordered) -> rusqlite::Result<Result<Outcome>> {
        match ordered {
            Ordered::Commit(commit) => Ok(self.commit(commit)?.map(Outcome::Committed)),
            Ordered::Trim { log, through } => self.trim(log, *through).map(Ok),
        }
    }

    /// Writes the ends of the logs back.
    pub(crate) fn finish(&mut self) -> rusqlite::Result<()> {
        let update = self.statements.get(Sql::MoveEnd)?;
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
    fn unmet(&mut self, write: &Write) -> rusqlite::Result<Option<StoreError>> {
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
        let mut run = |sql, row: &[&dyn rusqlite::ToSql]| self.statements.get(sql)?.execute(row);
        let changed = match write {
            Write::Holds { .. } => return Ok(Some(None)),
            Write::Remove { key } => {
                run(Sql::Remove, params![key])?;
                return Ok(Some(None));
            }
            Write::Delete { key, expected } => {
                let deleted = run(Sql::Delete, params![key, number(expected)])?;
                return Ok((deleted > 0).then_some(None));
            }
            Write::Create { key, value } => run(Sql::Insert, params![key, next, &value[..]])?,
            Write::Replace { key, value, expected } => {
                run(Sql::Update, params![key, next, &value[..], number(expected)])?
            }
            Write::Put { key, value } => run(Sql::Upsert, params![key, next, &value[..]])?,
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
        self.statements.get(Sql::Append)?.execute(params![log.id, position, entry])?;
        log.next += 1;
        Ok(position)
    }

    /// The log called `name`, made if there is none.
    fn log(&mut self, name: &str) -> rusqlite::Result<Log> {
        let select = self.statements.get(Sql::FindLog)?;
        let found = select.query_row([name], |row| Ok(Log { id: row.get(0)?, next: row.get(1)? })).optional()?;
        if let Some(found) = found {
            return Ok(found);
        }
        Ok(Log { id: self.statements.get(Sql::MakeLog)?.insert([name])?, next: 1 })
    }

    /// Removes the first entries, some at a time.
    fn trim(&mut self, name: &str, through: u64) -> rusqlite::Result<Outcome> {
        let select = self.statements.get(Sql::FindFirst)?;
        let found: Option<(i64, i64)> = select.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let through = i64::try_from(through).unwrap_or(i64::MAX);
        let Some((id, first)) = found.filter(|(_, first)| *first <= through) else {
            return Ok(Outcome::Trimmed { more: false });
        };
        let last = through.min(first + TRIMMED_AT_ONCE_MAX - 1);
        self.statements.get(Sql::Trim)?.execute([id, last])?;
        self.changing += 1;
        Ok(Outcome::Trimmed { more: last < through })
    }

    fn conflict(&mut self, key: &str) -> rusqlite::Result<StoreError> {
        Ok(conflict(key, self.version(key)?))
    }

    fn version(&mut self, key: &str) -> rusqlite::Result<Option<i64>> {
        self.statements.get(Sql::FindVersion)?.query_row([key], |row| row.get(0)).optional()
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

/// What a batch needs to be prepared; each is taken out of the connection's cache once.
struct Statements<'a> {
    connection: &'a Connection,
    prepared: [Option<CachedStatement<'a>>; Sql::COUNT],
}

impl<'a> Statements<'a> {
    fn of(connection: &'a Connection) -> Self {
        Self { connection, prepared: Default::default() }
    }

    fn get(&mut self, sql: Sql) -> rusqlite::Result<&mut CachedStatement<'a>> {
        let prepared = &mut self.prepared[sql as usize];
        match prepared {
            Some(prepared) => Ok(prepared),
            None => Ok(prepared.insert(self.connection.prepare_cached(sql.text())?)),
        }
    }
}

#[derive(Clone, Copy)]
enum Sql {
    Insert,
    Update,
    Upsert,
    Delete,
    Remove,
    FindVersion,
    Append,
    FindLog,
    MakeLog,
    MoveEnd,
    FindFirst,
    Trim,
}

impl Sql {
    const COUNT: usize = Self::Trim as usize + 1;

    fn text(self) -> &'static str {
        match self {
            Self::Insert => {
                "INSERT INTO greenroom_store (key, version, value) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING"
            }
            Self::Update => "UPDATE greenroom_store SET version = ?2, value = ?3 WHERE key = ?1 AND version = ?4",
            Self::Upsert => {
                "INSERT INTO greenroom_store (key, version, value) VALUES (?1, ?2, ?3)
                ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value"
            }
            Self::Delete => "DELETE FROM greenroom_store WHERE key = ?1 AND version = ?2",
            Self::Remove => "DELETE FROM greenroom_store WHERE key = ?1",
            Self::FindVersion => "SELECT version FROM greenroom_store WHERE key = ?1",
            Self::Append => "INSERT INTO greenroom_log (log, position, value) VALUES (?1, ?2, ?3)",
            Self::FindLog => "SELECT id, next FROM greenroom_logs WHERE name = ?1",
            Self::MakeLog => "INSERT INTO greenroom_logs (name, next) VALUES (?1, 1)",
            Self::MoveEnd => "UPDATE greenroom_logs SET next = ?2 WHERE id = ?1",
            Self::FindFirst => {
                "SELECT id, position FROM greenroom_logs JOIN greenroom_log ON log = id WHERE name = ?1 ORDER BY position LIMIT 1"
            }
            Self::Trim => "DELETE FROM greenroom_log WHERE log = ?1 AND position <= ?2",
        }
    }
}

/// Most entries that one request removes, so that those behind it do not wait for long.
const TRIMMED_AT_ONCE_MAX: i64 = 4096;
