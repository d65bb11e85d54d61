//! Redis, or Valkey, which speaks the same.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::tls::Certificate;
use crate::{Error, Process, free_port, process::tail, program, wait_until};

/// How a [`Redis`] is started.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    /// Keep an append-only file that is synced before each answer (`appendfsync always`); otherwise nothing is kept.
    pub durable: bool,
    /// The password of the user `default`, if it has one.
    pub password: Option<String>,
    /// Also serve TLS, with this certificate, on [`Redis::tls_port`].
    pub tls: Option<Certificate>,
    /// Further settings, each as of the command line: `("maxmemory", "10mb")`.
    pub settings: Vec<(String, String)>,
}

/// A Redis server with a directory and a port of its own.
#[derive(Debug)]
pub struct Redis {
    options: RedisOptions,
    port: u16,
    tls_port: Option<u16>,
    process: Option<Process>,
    directory: TempDir,
}

impl Redis {
    /// Starts a server that keeps nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if neither Redis nor Valkey is installed, [`Error::Start`] if it does not start.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(RedisOptions::default())
    }

    /// Starts a server as `options` say.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_with(options: RedisOptions) -> Result<Self, Error> {
        let directory = TempDir::with_prefix("greenroom-redis-").map_err(failed)?;
        let tls_port = options.tls.as_ref().map(|_| free_port());
        let mut redis = Self { options, port: free_port(), tls_port, process: None, directory };
        redis.restart()?;
        Ok(redis)
    }

    /// The port of 127.0.0.1 on which it listens; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port of 127.0.0.1 on which it serves TLS, if it does.
    pub fn tls_port(&self) -> Option<u16> {
        self.tls_port
    }

    /// What a client calls it: `redis://:PASSWORD@127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        let user = self.options.password.as_ref().map(|password| format!(":{password}@")).unwrap_or_default();
        format!("redis://{user}127.0.0.1:{}", self.port)
    }

    /// Where it keeps its files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Sends `signal` to the server; nothing if it is stopped.
    pub fn signal(&self, signal: i32) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    /// Stops it as an operator does (SIGTERM): it refuses new commands and syncs its file.
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

    /// Starts it again, on the same port and files, after stopping it if it runs.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop();
        let Some(server) = SERVERS.iter().find_map(|name| program(name, &[])) else {
            let remedy = "run `apt-get install -y --no-install-recommends redis-server`".to_owned();
            return Err(Error::Missing { engine: ENGINE, remedy });
        };
        let output = self.directory.path().join("output");
        let file = fs::File::create(&output).map_err(failed)?;
        let mut command = Command::new(server);
        command.arg("--port").arg(self.port.to_string()).args(["--bind", "127.0.0.1", "--save", "", "--dir"]);
        command.arg(self.directory.path());
        match self.options.durable {
            true => command.args(["--appendonly", "yes", "--appendfsync", "always"]),
            false => command.args(["--appendonly", "no"]),
        };
        if let Some(password) = &self.options.password {
            command.arg("--requirepass").arg(password);
        }
        if let (Some(tls), Some(port)) = (&self.options.tls, self.tls_port) {
            command.arg("--tls-port").arg(port.to_string()).args(["--tls-auth-clients", "no"]);
            command.arg("--tls-cert-file").arg(tls.certificate_file()).arg("--tls-key-file").arg(tls.key_file());
            command.arg("--tls-ca-cert-file").arg(tls.authority_file());
        }
        for (name, value) in &self.options.settings {
            command.arg(format!("--{name}")).arg(value);
        }
        command.stdin(Stdio::null()).stderr(file.try_clone().map_err(failed)?).stdout(file);
        let mut process = Process::start(ENGINE, command)?;
        let mut ended = None;
        let ready = wait_until(PATIENCE, || {
            ended = process.ended();
            ended.is_some() || is_loaded(&output) && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
        if !ready || ended.is_some() {
            return Err(Error::Start { engine: ENGINE, reason: tail(&output) });
        }
        self.process = Some(process);
        Ok(())
    }
}

impl Drop for Redis {
    /// Its files go with it, so there is nothing to end in good order.
    fn drop(&mut self) {
        self.kill();
    }
}

/// It listens before it has loaded its files, and says when it has.
fn is_loaded(output: &Path) -> bool {
    fs::read_to_string(output).is_ok_and(|text| text.contains("eady to accept connections"))
}

fn failed(error: std::io::Error) -> Error {
    Error::Start { engine: ENGINE, reason: error.to_string() }
}

const ENGINE: &str = "Redis";
const SERVERS: [&str; 2] = ["redis-server", "valkey-server"];

/// Far beyond any start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::unless_missing;

    fn ask(redis: &Redis, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).expect("it listens");
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    #[test]
    fn a_killed_redis_has_kept_what_it_was_to_keep() {
        for durable in [true, false] {
            let options = RedisOptions { durable, tls: unless_missing(Certificate::make()), ..RedisOptions::default() };
            let Some(mut redis) = unless_missing(Redis::start_with(options)) else { return };
            ask(&redis, "SET a kept");
            redis.kill();
            redis.restart().expect("it starts again");
            assert_eq!(ask(&redis, "GET a").contains("kept"), durable);
        }
    }
}
