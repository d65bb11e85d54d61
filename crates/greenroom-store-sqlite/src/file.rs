//! The file's name and identity.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_store::{DiskUsage, Result, StoreError};

/// The file that a store was opened on. It is known by device and inode too: SQLite would go on with a file that was
/// removed, while newcomers would make and use another one under the same name, and there would be two tables.
#[derive(Clone, Debug)]
pub(crate) struct File {
    path: Arc<Path>,
    identity: Option<Identity>,
}

type Identity = (u64, u64);

impl File {
    pub(crate) fn new(path: &Path) -> Self {
        // An absolute name stays right when the process changes its directory.
        let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
        Self { path: path.into(), identity: None }
    }

    /// Remembers which file is there now.
    pub(crate) fn identify(&mut self) {
        self.identity = identity(&self.path);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// As errors and URLs name it.
    pub(crate) fn name(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    /// Checks that the name still leads to the file that was opened.
    pub(crate) fn check_present(&self) -> Result<()> {
        if identity(&self.path) == self.identity {
            return Ok(());
        }
        let reason = "the file was removed or replaced while it was open, so others may be using another one; \
            stop every process that uses it, put the right file in place and start again";
        Err(StoreError::Unavailable { store: self.name(), reason: reason.to_owned() })
    }

    /// Refuses, before SQLite sees it, what it would call by a vague name. Never opens the file: closing it again
    /// would drop the locks that this process may hold on it (POSIX locks belong to the process).
    pub(crate) fn check_openable(&self) -> Result<()> {
        let cannot = |reason: String| StoreError::Format { store: self.name(), reason };
        match std::fs::metadata(&self.path) {
            Ok(found) if found.is_dir() => Err(cannot("it is a directory; name a file in it".to_owned())),
            Ok(found) if !found.is_file() => Err(cannot("it is not a regular file; name one".to_owned())),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(self.denied(&error.to_string())),
            Err(_) => match self.path.parent() {
                Some(parent) if !parent.is_dir() => {
                    let reason = format!("there is no directory {}; create it", parent.display());
                    Err(StoreError::Unavailable { store: self.name(), reason })
                }
                _ => Ok(()),
            },
        }
    }

    /// Returns the room that the file and its log take on their disk, if the system tells.
    pub(crate) fn disk_usage(&self) -> Option<DiskUsage> {
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        let disk = rustix::fs::statvfs(self.path.parent()?).ok()?;
        let mut usage = DiskUsage::new(self.name());
        usage.bytes = std::fs::metadata(&self.path).ok()?.len();
        usage.log_bytes = std::fs::metadata(log).map_or(0, |found| found.len());
        usage.free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
        Some(usage)
    }

    /// Makes the file for its user alone, if nothing is there: what actors have stored is nobody else's. SQLite gives its files beside
    /// it the same mode. A file that is there keeps its own.
    ///
    /// It gets its name only after it is closed, so that no lock on it is dropped by that.
    pub(crate) fn make_private(&self) -> std::io::Result<()> {
        if self.path.exists() {
            return Ok(());
        }
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!("-new-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        drop(private().create_new(true).write(true).open(&name)?);
        let named = std::fs::hard_link(&name, &self.path);
        std::fs::remove_file(&name)?;
        match named {
            // This file system has no links.
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                private().create_new(true).write(true).open(&self.path).map(drop)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn denied(&self, what: &str) -> StoreError {
        let reason = format!("{what}; let this user read and write the file and its directory (for -wal and -shm)");
        StoreError::Denied { store: self.name(), reason }
    }
}

/// Returns options that open a file, and make it for its user alone.
#[cfg(unix)]
pub(crate) fn private() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(not(unix))]
pub(crate) fn private() -> OpenOptions {
    OpenOptions::new()
}

/// Tells files apart that this process makes at once.
static NEXT: AtomicU64 = AtomicU64::new(0);

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(_path: &Path) -> Option<Identity> {
    None
}
