//! MinIO: an S3-compatible object store on one disk.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::tail;
use crate::{Error, GoEngine, Process, free_port, http, wait_until};

/// A MinIO server with a directory and a port of its own, and one bucket.
#[derive(Debug)]
pub struct Minio {
    port: u16,
    process: Option<Process>,
    directory: TempDir,
}

impl Minio {
    /// The one user's name, which S3 calls the access key.
    pub const USER: &str = "minio";

    /// The one user's password, which S3 calls the secret key.
    pub const PASSWORD: &str = "minio12345";

    /// The bucket that is there from the beginning.
    pub const BUCKET: &str = "greenroom";

    /// Starts a server.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if it was not built, [`Error::Start`] if it does not start.
    pub fn start() -> Result<Self, Error> {
        let directory = TempDir::with_prefix("greenroom-minio-").map_err(failed)?;
        // To a server on one disk, a folder is a bucket.
        fs::create_dir_all(directory.path().join("data").join(Self::BUCKET)).map_err(failed)?;
        let mut minio = Self { port: free_port(), process: None, directory };
        minio.restart()?;
        Ok(minio)
    }

    /// The port of 127.0.0.1 on which it listens; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What a client calls the bucket: `s3://USER:PASSWORD@BUCKET?endpoint=http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.url_of("")
    }

    /// The same for a `prefix` in the bucket.
    pub fn url_of(&self, prefix: &str) -> String {
        let (user, password, bucket, port) = (Self::USER, Self::PASSWORD, Self::BUCKET, self.port);
        format!("s3://{user}:{password}@{bucket}/{prefix}?endpoint=http://127.0.0.1:{port}")
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

    /// Starts it again, on the same port and data, after stopping it if it runs.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop();
        let output = self.directory.path().join("output");
        let file = fs::File::create(&output).map_err(failed)?;
        let mut command = Command::new(GoEngine::Minio.installed()?);
        command.env("MINIO_ROOT_USER", Self::USER).env("MINIO_ROOT_PASSWORD", Self::PASSWORD);
        for quiet in ["MINIO_UPDATE", "MINIO_BROWSER"] {
            command.env(quiet, "off");
        }
        command.env("MINIO_CALLHOME_ENABLE", "off").env("HOME", self.directory.path());
        command.args(["server", "--address", &format!("127.0.0.1:{}", self.port)]);
        command.arg(self.directory.path().join("data"));
        command.stdin(Stdio::null()).stderr(file.try_clone().map_err(failed)?).stdout(file);
        let mut process = Process::start(ENGINE, command)?;
        let mut ended = None;
        let ready = wait_until(PATIENCE, || {
            ended = process.ended();
            ended.is_some() || self.is_initialized()
        });
        if !ready || ended.is_some() {
            return Err(Error::Start { engine: ENGINE, reason: tail(&output) });
        }
        self.process = Some(process);
        Ok(())
    }

    /// Its door for health says yes earlier. Only a server that knows its users says that it does not know this one.
    fn is_initialized(&self) -> bool {
        let stranger = format!("/{}/?AWSAccessKeyId=nobody&Signature=AAAA&Expires=4000000000", Self::BUCKET);
        http::get(self.port, &stranger).is_ok_and(|answer| answer.contains("InvalidAccessKeyId"))
    }
}

impl Drop for Minio {
    /// Its files go with it, so there is nothing to end in good order.
    fn drop(&mut self) {
        self.kill();
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::Start { engine: ENGINE, reason: error.to_string() }
}

const ENGINE: &str = "MinIO";

/// Far beyond any start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
