//! etcd: one member, with its data on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::tail;
use crate::tls::Certificate;
use crate::{Error, GoEngine, Process, free_port, http, program, wait_until};

/// How an [`Etcd`] is started.
#[derive(Clone, Debug, Default)]
pub struct EtcdOptions {
    /// Answer writes before they are synced to the device: for tests that are not about crashes.
    pub unsafe_no_fsync: bool,
    /// Serve TLS with this certificate instead of plain text.
    pub tls: Option<Certificate>,
    /// Let only those in whose certificate the authority of `tls` has signed.
    pub client_certificates: bool,
    /// Further settings, each as of the command line: `("quota-backend-bytes", "16777216")`.
    pub settings: Vec<(String, String)>,
}

/// An etcd server with a directory and ports of its own.
#[derive(Debug)]
pub struct Etcd {
    options: EtcdOptions,
    port: u16,
    peer_port: u16,
    health_port: u16,
    process: Option<Process>,
    directory: TempDir,
}

impl Etcd {
    /// Starts a server that syncs every write, without TLS and users.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if neither etcd 3.7 was built nor another etcd is installed, [`Error::Start`] if it does not
    /// start.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(EtcdOptions::default())
    }

    /// Starts a server as `options` say.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_with(options: EtcdOptions) -> Result<Self, Error> {
        let directory = TempDir::with_prefix("greenroom-etcd-").map_err(failed)?;
        let [port, peer_port, health_port] = [free_port(), free_port(), free_port()];
        let mut etcd = Self { options, port, peer_port, health_port, process: None, directory };
        etcd.restart()?;
        Ok(etcd)
    }

    /// The port of 127.0.0.1 on which it serves clients; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What a client calls it: `etcd://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("etcd://127.0.0.1:{}", self.port)
    }

    /// Sends `signal` to the server; nothing if it is stopped.
    pub fn signal(&self, signal: i32) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    /// Stops it as an operator does (SIGTERM).
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.signal(libc::SIGTERM);
            process.wait(PATIENCE);
        }
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again, on the same ports and data, after stopping it if it runs.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop();
        let output = self.directory.path().join("output");
        let file = fs::File::create(&output).map_err(failed)?;
        let mut command = Command::new(server()?);
        let scheme = if self.options.tls.is_some() { "https" } else { "http" };
        let clients = format!("{scheme}://127.0.0.1:{}", self.port);
        let peers = format!("http://127.0.0.1:{}", self.peer_port);
        command.arg("--data-dir").arg(self.directory.path().join("data"));
        command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("default={peers}"), "--log-level", "warn"]);
        // Always plain, whatever the clients speak.
        command.args(["--listen-metrics-urls", &format!("http://127.0.0.1:{}", self.health_port)]);
        if self.options.unsafe_no_fsync {
            command.arg("--unsafe-no-fsync");
        }
        if let Some(tls) = &self.options.tls {
            command.arg("--cert-file").arg(tls.certificate_file()).arg("--key-file").arg(tls.key_file());
            if self.options.client_certificates {
                command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(tls.authority_file());
            }
        }
        for (name, value) in &self.options.settings {
            command.arg(format!("--{name}={value}"));
        }
        command.stdin(Stdio::null()).stderr(file.try_clone().map_err(failed)?).stdout(file);
        let mut process = Process::start(ENGINE, command)?;
        let mut ended = None;
        let ready = wait_until(PATIENCE, || {
            ended = process.ended();
            ended.is_some() || http::get(self.health_port, "/health").is_ok_and(|answer| answer.contains("true"))
        });
        if !ready || ended.is_some() {
            return Err(Error::Start { engine: ENGINE, reason: tail(&output) });
        }
        self.process = Some(process);
        Ok(())
    }

    /// Makes the user `root` with `password`, and lets nobody in without a password from now on. Not with TLS.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] with what the server says.
    pub fn enable_auth(&self, password: &str) -> Result<(), Error> {
        let user = format!(r#"{{"name":"root","password":"{password}"}}"#);
        let steps = [
            ("user/add", user.as_str()),
            ("role/add", r#"{"name":"root"}"#),
            ("user/grant", r#"{"user":"root","role":"root"}"#),
            ("enable", "{}"),
        ];
        steps.iter().try_for_each(|(step, json)| self.administer(&format!("/v3/auth/{step}"), json))
    }

    /// Posts `json` to `path` of the server's JSON gateway. Not with TLS, nor once [`enable_auth`](Self::enable_auth)
    /// was called.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] with what the server says.
    pub fn administer(&self, path: &str, json: &str) -> Result<(), Error> {
        let answer = http::post(self.port, path, json).map_err(failed)?;
        if http::is_ok(&answer) { Ok(()) } else { Err(Error::Start { engine: ENGINE, reason: answer }) }
    }
}

impl Drop for Etcd {
    /// Its files go with it, so there is nothing to end in good order.
    fn drop(&mut self) {
        self.kill();
    }
}

/// The built etcd, or else the one that a package has installed.
fn server() -> Result<PathBuf, Error> {
    GoEngine::Etcd.installed().or_else(|missing| program("etcd", &[Path::new("/usr/bin")]).ok_or(missing))
}

fn failed(error: std::io::Error) -> Error {
    Error::Start { engine: ENGINE, reason: error.to_string() }
}

const ENGINE: &str = "etcd";

/// Far beyond any start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unless_missing;

    #[test]
    fn a_killed_etcd_has_kept_what_it_has_acknowledged() {
        let Some(mut etcd) = unless_missing(Etcd::start()) else { return };
        etcd.administer("/v3/kv/put", r#"{"key":"YQ==","value":"a2VwdA=="}"#).expect("it takes a value");
        etcd.kill();
        etcd.restart().expect("it starts again");
        let answer = http::post(etcd.port(), "/v3/kv/range", r#"{"key":"YQ=="}"#).expect("it answers");
        assert!(answer.contains("a2VwdA=="), "{answer}");
    }

    #[test]
    fn an_etcd_with_tls_starts() {
        let Some(tls) = unless_missing(Certificate::make()) else { return };
        let options = EtcdOptions { tls: Some(tls), client_certificates: true, ..EtcdOptions::default() };
        let Some(etcd) = unless_missing(Etcd::start_with(options)) else { return };
        assert!(etcd.administer("/v3/kv/range", "{}").is_err(), "plain text is refused");
    }
}
