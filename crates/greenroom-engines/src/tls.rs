//! Certificates for servers on 127.0.0.1, made with the `openssl` program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use crate::{Error, program};

/// A certificate for `localhost` and 127.0.0.1 with its key, and the authority that has signed it. Clones share the
/// files, which go with the last of them.
#[derive(Clone, Debug)]
pub struct Certificate {
    directory: Arc<TempDir>,
}

impl Certificate {
    /// Makes an authority and a certificate signed by it.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] without the `openssl` program, [`Error::Start`] with its words if it fails.
    pub fn make() -> Result<Self, Error> {
        let directory = TempDir::with_prefix("greenroom-tls-").map_err(failed)?;
        let made = Self { directory: Arc::new(directory) };
        fs::write(made.file("san"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").map_err(failed)?;
        let ec = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30";
        made.openssl(&format!("{ec} -x509 -subj /CN=greenroom-tests -keyout ca.key -out ca.crt"))?;
        made.openssl(&format!("{ec} -subj /CN=localhost -keyout server.key -out server.csr"))?;
        made.openssl(
            "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -set_serial 1 -days 30 -extfile san -out server.crt",
        )?;
        Ok(made)
    }

    /// The certificate of the authority, which a client is to trust (PEM).
    pub fn authority_file(&self) -> PathBuf {
        self.file("ca.crt")
    }

    /// The server's certificate (PEM).
    pub fn certificate_file(&self) -> PathBuf {
        self.file("server.crt")
    }

    /// The server's key (PEM).
    pub fn key_file(&self) -> PathBuf {
        self.file("server.key")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn openssl(&self, arguments: &str) -> Result<(), Error> {
        let openssl = program("openssl", &[Path::new("/usr/bin")]).ok_or_else(|| Error::Missing {
            engine: ENGINE,
            remedy: "run `apt-get install -y --no-install-recommends openssl`".to_owned(),
        })?;
        let mut command = Command::new(openssl);
        command.args(arguments.split(' ')).current_dir(self.directory.path()).stdin(Stdio::null());
        let output = command.output().map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::Start { engine: ENGINE, reason: String::from_utf8_lossy(&output.stderr).into_owned() })
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::Start { engine: ENGINE, reason: error.to_string() }
}

const ENGINE: &str = "openssl";
