//! Several commits as the arguments of one statement, and its answer.

use std::collections::BTreeSet;

use bytes::Bytes;
use greenroom_store::journal::{Committed, Write};
use greenroom_store::{Commit, Found, Result, StoreError, Version};
use tokio_postgres::Row;

/// What a batch has taken, so that its commits do not depend on each other: a key that one writes is neither written
/// nor held by another.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    written: BTreeSet<String>,
    held: BTreeSet<String>,
    len: usize,
    bytes: usize,
}

impl Taken {
    /// Takes what `commit` touches, if it fits beside what was taken.
    pub(crate) fn take(&mut self, commit: &Commit) -> bool {
        let (len, bytes) = (self.len + commit.operations(), self.bytes + commit.bytes());
        if self.len > 0 && (len > BATCH_LEN_MAX || bytes > BATCH_BYTES_MAX) {
            return false;
        }
        let collides = |write: &Write| {
            let holds = matches!(write, Write::Holds { .. });
            self.written.contains(write.key()) || !holds && self.held.contains(write.key())
        };
        if commit.writes.iter().any(collides) {
            return false;
        }
        for write in &commit.writes {
            let holds = matches!(write, Write::Holds { .. });
            let keys = if holds { &mut self.held } else { &mut self.written };
            keys.insert(write.key().to_owned());
        }
        (self.len, self.bytes) = (len, bytes);
        true
    }
}

/// The arguments of the commit function, borrowed from the commits.
#[derive(Debug, Default)]
pub(crate) struct Arguments<'a> {
    pub(crate) commits: i32,
    pub(crate) keys: Vec<&'a str>,
    pub(crate) owners: Vec<i32>,
    pub(crate) alones: Vec<bool>,
    pub(crate) expecteds: Vec<Option<i64>>,
    pub(crate) effects: Vec<i32>,
    pub(crate) values: Vec<Option<&'a [u8]>>,
    pub(crate) logs: Vec<&'a str>,
    pub(crate) log_owners: Vec<i32>,
    pub(crate) entries: Vec<&'a [u8]>,
    /// Where write n of the statement stands: in which commit, as which of its writes.
    writes: Vec<(usize, usize)>,
    /// The same for the appends.
    appends: Vec<(usize, usize)>,
}

impl<'a> Arguments<'a> {
    /// Those of `commits`: writes in the order of their keys, appends in that of their logs.
    pub(crate) fn of(commits: &[&'a Commit]) -> Self {
        let mut writes: Vec<_> = commits
            .iter()
            .enumerate()
            .flat_map(|(owner, commit)| commit.writes.iter().enumerate().map(move |(at, write)| (write, (owner, at))))
            .collect();
        writes.sort_by_key(|(write, _)| write.key());
        let mut appends: Vec<_> = commits
            .iter()
            .enumerate()
            .flat_map(|(owner, commit)| commit.appends.iter().enumerate().map(move |(at, one)| (one, (owner, at))))
            .collect();
        // Stable, so that the appends of one commit to one log keep their order.
        appends.sort_by_key(|(append, _)| append.log.as_str());

        let number = |owner: usize| i32::try_from(owner + 1).expect("a batch is small");
        let mut arguments = Self { commits: number(commits.len()) - 1, ..Self::default() };
        for (write, (owner, at)) in writes {
            arguments.keys.push(write.key());
            arguments.owners.push(number(owner));
            arguments.alones.push(commits[owner].operations() == 1);
            arguments.expecteds.push(expected(write));
            arguments.effects.push(effect(write));
            arguments.values.push(write.value().map(Bytes::as_ref));
            arguments.writes.push((owner, at));
        }
        for (append, (owner, at)) in appends {
            arguments.logs.push(&append.log);
            arguments.log_owners.push(number(owner));
            arguments.entries.push(&append.entry);
            arguments.appends.push((owner, at));
        }
        arguments
    }

    /// What the statement's `row` answers to each of `commits`.
    pub(crate) fn answers(
        &self,
        commits: &[&Commit],
        row: &Row,
    ) -> Result<Vec<Result<Committed>>, tokio_postgres::Error> {
        let (versions, founds): (Vec<Option<i64>>, Vec<Option<i64>>) = (row.try_get(0)?, row.try_get(1)?);
        let positions: Vec<Option<i64>> = row.try_get(2)?;
        let mut answers: Vec<Result<Committed>> = commits
            .iter()
            .map(|commit| {
                Ok(Committed { versions: vec![None; commit.writes.len()], positions: vec![0; commit.appends.len()] })
            })
            .collect();
        for (n, (owner, at)) in self.writes.iter().enumerate() {
            if let Some(found) = founds[n] {
                answers[*owner] = Err(conflict(&commits[*owner].writes[*at], found));
            } else if let Ok(committed) = &mut answers[*owner] {
                committed.versions[*at] = versions[n].map(|number| Version::new(number.to_string()));
            }
        }
        for (n, (owner, at)) in self.appends.iter().enumerate() {
            if let (Ok(committed), Some(position)) = (&mut answers[*owner], positions[n]) {
                committed.positions[*at] = position.cast_unsigned();
            }
        }
        Ok(answers)
    }
}

fn expected(write: &Write) -> Option<i64> {
    match write {
        Write::Create { .. } => Some(ABSENT),
        Write::Replace { expected, .. } | Write::Delete { expected, .. } | Write::Holds { expected, .. } => {
            Some(number(expected))
        }
        Write::Put { .. } | Write::Remove { .. } => None,
    }
}

fn effect(write: &Write) -> i32 {
    match write {
        Write::Holds { .. } => 0,
        Write::Create { .. } | Write::Replace { .. } | Write::Put { .. } => 1,
        Write::Delete { .. } | Write::Remove { .. } => 2,
    }
}

fn conflict(write: &Write, found: i64) -> StoreError {
    let found = match (found, write) {
        // It was there when it was to be created, and was gone when the statement looked again.
        (ABSENT, Write::Create { .. }) => Found::Untold,
        (ABSENT, _) => Found::Absent,
        (version, _) => Found::Version(Version::new(version.to_string())),
    };
    StoreError::Conflict { key: write.key().to_owned(), found }
}

/// The number that a version spells; a foreign one is what no row has.
fn number(version: &Version) -> i64 {
    let text = version.as_str();
    text.parse::<i64>().ok().filter(|number| *number > 0 && number.to_string() == text).unwrap_or(NEVER)
}

/// What the function calls the version of what is not there.
const ABSENT: i64 = 0;

/// A version that is never given.
const NEVER: i64 = -1;

/// Most writes and appends in one statement, unless one commit has more.
const BATCH_LEN_MAX: usize = 512;

/// A statement that has reached this size is not filled further: 16 MiB.
const BATCH_BYTES_MAX: usize = 16 << 20;
