//! The engine that keeps the cluster's table and its states, on a small disk of its own.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_engines::{Etcd, Postgres, PostgresOptions};
use tempfile::TempDir;

use crate::network::Network;
use crate::options::Engine;

/// The table's engine.
pub(crate) struct Table {
    // Before the disk: it is stopped before that is taken away.
    engine: Running,
    network: Arc<Network>,
    disk: Disk,
}

enum Running {
    Sqlite(PathBuf),
    Postgres(Postgres),
    Etcd(Etcd),
}

impl Table {
    pub(crate) fn start(engine: Engine, network: &Arc<Network>) -> Result<Self, String> {
        let disk = Disk::make()?;
        // The engines keep their data where temporary files go.
        if tempfile::env::override_temp_dir(disk.path()).is_err() {
            return Err("the folder for temporary files was set before".to_owned());
        }
        let engine = match engine {
            Engine::Sqlite => Running::Sqlite(disk.path().join("table.db")),
            Engine::Postgres => {
                let options = PostgresOptions { durable: true, ..PostgresOptions::default() };
                Running::Postgres(Postgres::start_with(options).map_err(|error| error.to_string())?)
            }
            Engine::Etcd => Running::Etcd(Etcd::start().map_err(|error| error.to_string())?),
        };
        Ok(Self { engine, network: network.clone(), disk })
    }

    /// What a node is told to use.
    pub(crate) fn url(&self) -> impl Fn(usize) -> Result<String, String> + '_ {
        |node| {
            let (url, port) = match &self.engine {
                Running::Sqlite(path) => return Ok(format!("sqlite:{}", path.display())),
                Running::Postgres(postgres) => (postgres.url(), postgres.port()),
                Running::Etcd(etcd) => (etcd.url(), etcd.port()),
            };
            let way = self.network.way_to_table(node, port)?;
            Ok(url.replace(&format!("127.0.0.1:{port}"), &way))
        }
    }

    /// Kills the engine as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        match &mut self.engine {
            Running::Sqlite(_) => {}
            Running::Postgres(postgres) => postgres.kill(),
            Running::Etcd(etcd) => etcd.kill(),
        }
    }

    /// Starts it again, whatever state it is in.
    pub(crate) fn restart(&mut self) -> Result<(), String> {
        let until = Instant::now() + RESTART_TIMEOUT;
        loop {
            let restarted = match &mut self.engine {
                Running::Sqlite(_) => Ok(()),
                Running::Postgres(postgres) => postgres.restart(),
                Running::Etcd(etcd) => etcd.restart(),
            };
            match restarted {
                Err(error) if Instant::now() > until => return Err(format!("the table does not start again: {error}")),
                Err(_) => std::thread::sleep(Duration::from_millis(200)),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Sends a signal to all of the engine's processes.
    pub(crate) fn signal(&self, signal: i32) {
        match &self.engine {
            Running::Sqlite(_) => {}
            Running::Postgres(postgres) => postgres.signal(signal),
            Running::Etcd(etcd) => etcd.signal(signal),
        }
    }

    /// Leaves no room on its disk; false if it has none of its own.
    pub(crate) fn fill_disk(&self) -> bool {
        self.disk.fill()
    }

    /// Undoes [`Table::fill_disk`], and starts the engine again if it did not survive that.
    pub(crate) fn free_disk(&mut self) -> Result<(), String> {
        self.disk.free();
        self.restart()
    }
}

/// A small file system, if the system permits one; else a folder.
struct Disk {
    folder: TempDir,
    is_mounted: bool,
}

impl Disk {
    fn make() -> Result<Self, String> {
        let folder =
            TempDir::with_prefix("greenroom-chaos-").map_err(|error| format!("no temporary folder: {error}"))?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={DISK_SIZE},mode=1777"), "tmpfs"]).arg(folder.path());
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        if !is_mounted {
            println!("==> NO SMALL DISK: mount is not permitted; the table's disk is never full in this run");
        }
        Ok(Self { folder, is_mounted })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    fn fill(&self) -> bool {
        if !self.is_mounted {
            return false;
        }
        let Ok(mut file) = File::create(self.ballast()) else { return false };
        let block = vec![0x5A; 64 << 10];
        while file.write_all(&block).is_ok() {}
        while file.write_all(&block[..512]).is_ok() {}
        true
    }

    fn free(&self) {
        // It fails where there is none.
        drop(fs::remove_file(self.ballast()));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            // What cannot be unmounted is left to the system.
            drop(Command::new("umount").arg("-l").arg(self.path()).output());
        }
    }
}

/// Room for an engine's files and little more.
const DISK_SIZE: &str = "320m";
/// Enough for a recovery on a busy machine.
const RESTART_TIMEOUT: Duration = Duration::from_secs(60);
