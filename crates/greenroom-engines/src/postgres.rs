//! PostgreSQL.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::tail;
use crate::tls::Certificate;
use crate::{Error, Process, free_port, program, wait_until};

/// How a [`Postgres`] is started.
#[derive(Clone, Debug, Default)]
pub struct PostgresOptions {
    /// Sync what is committed to the device (`fsync=on`, PostgreSQL's own default); off unless asked for.
    pub durable: bool,
    /// Also serve TLS, on the same port, with this certificate.
    pub tls: Option<Certificate>,
    /// Further settings: `("max_connections", "20")`.
    pub settings: Vec<(String, String)>,
}

/// A PostgreSQL server with a data directory and a port of its own. Its superuser is `postgres`, the password
/// [`PASSWORD`](Self::PASSWORD), the database `postgres`.
#[derive(Debug)]
pub struct Postgres {
    options: PostgresOptions,
    programs: PathBuf,
    user: Option<User>,
    port: u16,
    process: Option<Process>,
    directory: TempDir,
}

impl Postgres {
    /// The superuser's password, asked of connections over TCP.
    pub const PASSWORD: &str = "super-secret-word";

    /// Starts a server that does not sync to the device.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if PostgreSQL is not installed, [`Error::Start`] if it does not start.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(PostgresOptions::default())
    }

    /// Starts a server as `options` say.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_with(options: PostgresOptions) -> Result<Self, Error> {
        let programs = programs()?;
        let directory = TempDir::with_prefix("greenroom-postgres-").map_err(failed)?;
        let user = User::to_run_as()?;
        let mut postgres = Self { options, programs, user, port: free_port(), process: None, directory };
        postgres.initialize()?;
        postgres.restart()?;
        Ok(postgres)
    }

    /// The port of 127.0.0.1 on which it listens; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What a client calls it: `postgres://postgres:PASSWORD@127.0.0.1:PORT/postgres`.
    pub fn url(&self) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/postgres", Self::PASSWORD, self.port)
    }

    /// The folder around its data; files for the server may be put there.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Gives `path` to the user as whom the server runs.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] with the system's words.
    pub fn give(&self, path: &Path) -> Result<(), Error> {
        let Some(user) = &self.user else { return Ok(()) };
        chown(path, Some(user.id), Some(user.group)).map_err(failed)
    }

    /// Sends `signal` to all of the server's processes, and to those of a killed one that are still there.
    pub fn signal(&self, signal: i32) {
        // The first one forks the others: a signal that stops it comes before theirs.
        if let Some(process) = &self.process {
            process.signal(signal);
        }
        for process in self.processes() {
            // SAFETY: it takes two numbers; at worst the process is gone.
            unsafe { libc::kill(process, signal) };
        }
    }

    /// The processes that work in the server's data.
    fn processes(&self) -> Vec<i32> {
        let Ok(data) = self.data().canonicalize() else { return Vec::new() };
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let works_here = |folder: &Path| fs::read_link(folder.join("cwd")).is_ok_and(|place| place == data);
        let here = all.filter(|entry| works_here(&entry.path()));
        here.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// Stops it as `pg_ctl stop -m fast` does: what runs is rolled back, clients are cut off.
    pub fn stop_fast(&mut self) {
        self.stop(libc::SIGINT);
    }

    /// Stops it as `pg_ctl stop -m immediate` does: like a crash of its processes.
    pub fn stop_immediate(&mut self) {
        self.stop(libc::SIGQUIT);
    }

    /// Kills its first process as `kill -9` does; the others notice and end.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again, on the same port and data, after stopping it fast if it runs. What a signal had stopped goes on.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn restart(&mut self) -> Result<(), Error> {
        self.signal(libc::SIGCONT);
        self.stop_fast();
        let begun = Instant::now();
        loop {
            match self.launch() {
                Ok(process) => {
                    self.process = Some(process);
                    return Ok(());
                }
                // After a kill its last processes may still hold the data for a moment.
                Err(_) if begun.elapsed() < PATIENCE_AFTER_KILL => std::thread::sleep(PAUSE_AFTER_KILL),
                Err(error) => return Err(error),
            }
        }
    }

    fn stop(&mut self, signal: i32) {
        if let Some(mut process) = self.process.take() {
            process.signal(signal);
            process.wait(PATIENCE);
        }
    }

    fn initialize(&self) -> Result<(), Error> {
        let folder = self.directory.path();
        self.give(folder)?;
        let password = folder.join("password");
        fs::write(&password, Self::PASSWORD).map_err(failed)?;
        self.give(&password)?;
        if let Some(tls) = &self.options.tls {
            for (from, name) in [(tls.certificate_file(), "server.crt"), (tls.key_file(), "server.key")] {
                let to = folder.join(name);
                fs::copy(from, &to).map_err(failed)?;
                fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).map_err(failed)?;
                self.give(&to)?;
            }
        }
        let mut command = self.command("initdb");
        command.arg("-D").arg(self.data()).arg("--pwfile").arg(&password);
        command.args(["-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync"]);
        command.args(["--locale=C.UTF-8", "--encoding=UTF8"]);
        let output = command.stdin(Stdio::null()).output().map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        let reason = format!("initdb: {}", String::from_utf8_lossy(&output.stderr));
        Err(Error::Start { engine: ENGINE, reason })
    }

    fn launch(&self) -> Result<Process, Error> {
        let output = self.directory.path().join("output");
        let file = fs::File::create(&output).map_err(failed)?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-p").arg(self.port.to_string());
        let mut set = |name: &str, value: &OsStr| {
            let mut setting = OsStr::new(name).to_owned();
            setting.push("=");
            setting.push(value);
            command.arg("-c").arg(setting);
        };
        set("listen_addresses", OsStr::new("127.0.0.1"));
        set("unix_socket_directories", self.directory.path().as_os_str());
        set("fsync", OsStr::new(if self.options.durable { "on" } else { "off" }));
        if self.options.tls.is_some() {
            set("ssl", OsStr::new("on"));
            set("ssl_cert_file", self.directory.path().join("server.crt").as_os_str());
            set("ssl_key_file", self.directory.path().join("server.key").as_os_str());
        }
        for (name, value) in &self.options.settings {
            set(name, OsStr::new(value));
        }
        command.stdin(Stdio::null()).stderr(file.try_clone().map_err(failed)?).stdout(file);
        let mut process = Process::start(ENGINE, command)?;
        let mut ended = None;
        let ready = wait_until(PATIENCE, || {
            ended = process.ended();
            ended.is_some() || self.is_ready(process.id())
        });
        if ready && ended.is_none() {
            return Ok(process);
        }
        Err(Error::Start { engine: ENGINE, reason: tail(&output) })
    }

    /// What `pg_ctl -w` looks at: the eighth line of the file with the process's number tells its state.
    fn is_ready(&self, process: u32) -> bool {
        let Ok(text) = fs::read_to_string(self.data().join("postmaster.pid")) else { return false };
        let mut lines = text.lines();
        lines.next() == Some(&process.to_string()) && lines.nth(6).is_some_and(|state| state.trim() == "ready")
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.directory.path()).env("LC_ALL", "C.UTF-8");
        if let Some(user) = &self.user {
            command.uid(user.id).gid(user.group);
        }
        command
    }
}

impl Drop for Postgres {
    /// Its processes are to be gone before its data is; those of a killed server may still write for a moment, and
    /// end only when they run.
    fn drop(&mut self) {
        self.signal(libc::SIGCONT);
        self.stop_immediate();
        let folder = self.directory.path();
        wait_until(PATIENCE_AFTER_KILL, || fs::remove_dir_all(folder).is_ok() || !folder.exists());
    }
}

/// As whom the server runs when the test runs as root, which PostgreSQL refuses.
#[derive(Debug)]
struct User {
    id: u32,
    group: u32,
}

impl User {
    fn to_run_as() -> Result<Option<Self>, Error> {
        // SAFETY: it takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Ok(None);
        }
        let table = fs::read_to_string("/etc/passwd").map_err(failed)?;
        let named = |name: &str| {
            let fields: Vec<_> = table.lines().map(|line| line.split(':').collect::<Vec<_>>()).collect();
            let found = fields.iter().find(|fields| fields[0] == name)?;
            Some(Self { id: found.get(2)?.parse().ok()?, group: found.get(3)?.parse().ok()? })
        };
        let reason = "it refuses to run as root, and there is no user \"nobody\" to run it as".to_owned();
        named("nobody").map(Some).ok_or(Error::Start { engine: ENGINE, reason })
    }
}

/// The folder of the server's programs: beside `postgres` of the path, or where Debian puts the newest.
fn programs() -> Result<PathBuf, Error> {
    let mut versions: Vec<PathBuf> = fs::read_dir(DEBIAN_FOLDER)
        .map(|folders| folders.flatten().map(|folder| folder.path().join("bin")).collect())
        .unwrap_or_default();
    let number = |path: &PathBuf| path.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
    let folders: Vec<&Path> = versions.iter().map(PathBuf::as_path).collect();
    let server = program("postgres", &folders).and_then(|server| server.canonicalize().ok());
    let folder = server.as_deref().and_then(Path::parent).filter(|folder| folder.join("initdb").is_file());
    folder.map(Path::to_owned).ok_or_else(|| Error::Missing {
        engine: ENGINE,
        remedy: "run `apt-get install -y --no-install-recommends postgresql`".to_owned(),
    })
}

fn failed(error: std::io::Error) -> Error {
    Error::Start { engine: ENGINE, reason: error.to_string() }
}

const ENGINE: &str = "PostgreSQL";
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";

/// Far beyond any start on a busy machine, a recovery included.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the processes of a killed server may take to notice.
const PATIENCE_AFTER_KILL: Duration = Duration::from_secs(10);
const PAUSE_AFTER_KILL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unless_missing;

    #[test]
    fn a_killed_postgres_starts_again_on_its_port_and_its_processes_are_gone_with_it() {
        let tls = unless_missing(Certificate::make());
        let options = PostgresOptions { durable: true, tls, ..PostgresOptions::default() };
        let Some(mut postgres) = unless_missing(Postgres::start_with(options)) else { return };
        let port = postgres.port();
        postgres.kill();
        // Its other processes notice a moment later.
        let refused = || std::net::TcpStream::connect(("127.0.0.1", port)).is_err();
        assert!(wait_until(PATIENCE_AFTER_KILL, refused), "it is dead");
        postgres.restart().expect("it recovers");
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        let directory = postgres.directory().to_owned();
        drop(postgres);
        assert!(!directory.exists());
    }

    #[test]
    fn a_postgres_that_was_killed_while_it_was_frozen_starts_again() {
        let Some(mut postgres) = unless_missing(Postgres::start()) else { return };
        postgres.signal(libc::SIGSTOP);
        postgres.kill();
        assert!(!postgres.processes().is_empty(), "the others cannot notice");
        postgres.restart().expect("it recovers");
        postgres.signal(libc::SIGSTOP);
        postgres.restart().expect("it is thawed to be stopped");
    }
}
