//! Fairness between processes: who waits for the file's write lock gets it before its last holder gets it again.
//!
//! SQLite's lock is polled for, so a process that commits without a pause would win it again and again. A second lock,
//! on an empty file beside the store, is held while one waits for the first and let go once one has it: the others
//! then take their turn during the commit. It orders, it does not protect: one who waits too long goes without.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::file::private;

/// The door through which one process at a time waits for the write lock. The kernel opens it if that process dies.
pub(crate) struct Turnstile {
    file: Option<File>,
}

impl Turnstile {
    /// The turnstile of the store at `path`; without rights to make its file, an open one.
    pub(crate) fn beside(path: &Path) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push("-turn");
        Self { file: private().create(true).truncate(false).write(true).open(name).ok() }
    }

    /// Starts to wait for a turn.
    pub(crate) fn approach(&self) -> Turn<'_> {
        Turn { file: self.file.as_ref(), passed: false, patience_ends: Instant::now() + PATIENCE }
    }
}

/// A place in the turnstile, left when dropped.
pub(crate) struct Turn<'a> {
    file: Option<&'a File>,
    passed: bool,
    patience_ends: Instant,
}

impl Turn<'_> {
    /// Whether it is this process's turn to try for the write lock.
    pub(crate) fn has_come(&mut self) -> bool {
        self.passed = self.passed || self.file.is_some_and(|file| file.try_lock().is_ok());
        self.passed || self.file.is_none() || self.patience_ends <= Instant::now()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file.filter(|_| self.passed) {
            // It can fail only if the file is not open, and then there is no lock.
            drop(file.unlock());
        }
    }
}

/// Longest wait for a turn: many commits' time; only a stopped process keeps its turn longer.
const PATIENCE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_has_its_turn_before_its_last_holder_has_it_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let (a, b) = (Turnstile::beside(&path), Turnstile::beside(&path));
        let (mut first, mut second) = (a.approach(), b.approach());
        assert!(first.has_come() && !second.has_come());
        drop(first);
        assert!(second.has_come());
        assert!(!a.approach().has_come());
        drop(second);
        assert!(a.approach().has_come());
    }

    #[test]
    fn a_holder_that_never_leaves_is_passed_by() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let (stopped, other) = (Turnstile::beside(&path), Turnstile::beside(&path));
        let mut held = stopped.approach();
        assert!(held.has_come());
        let mut waiting = other.approach();
        let begun = Instant::now();
        while !waiting.has_come() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(begun.elapsed() >= PATIENCE);
        drop(waiting);
        assert!(!other.approach().has_come(), "leaving must not take the turn of its holder");
    }
}
