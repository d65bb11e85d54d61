//! Kubernetes' API server, on an etcd of its own. There are no controllers and no kubelet beside it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::tail;
use crate::tls::Certificate;
use crate::{Error, Etcd, GoEngine, Process, free_port, program, wait_until};

/// An API server with a directory, a port and an etcd of its own.
#[derive(Debug)]
pub struct KubeApiserver {
    port: u16,
    process: Option<Process>,
    etcd: Etcd,
    tls: Certificate,
    directory: TempDir,
}

impl KubeApiserver {
    /// The token of a user who may do everything.
    pub const ADMIN: &str = "admin-token";

    /// The token of the user `limited`, who may do nothing before a role is bound to it.
    pub const LIMITED: &str = "limited-token";

    /// Starts a server with an empty cluster.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if it was not built or its etcd or `openssl` is missing, [`Error::Start`] if it does not start.
    pub fn start() -> Result<Self, Error> {
        GoEngine::KubeApiserver.installed()?;
        let directory = TempDir::with_prefix("greenroom-kube-").map_err(failed)?;
        let (tls, etcd) = (Certificate::make()?, Etcd::start()?);
        let users = format!("{},admin,1,\"system:masters\"\n{},limited,2\n", Self::ADMIN, Self::LIMITED);
        fs::write(directory.path().join("tokens.csv"), users).map_err(failed)?;
        let mut server = Self { port: free_port(), process: None, etcd, tls, directory };
        server.run()?;
        Ok(server)
    }

    /// The port of 127.0.0.1 on which it serves TLS; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A kubeconfig for who has `token`, with the context `test` and `namespace`.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if it cannot be written.
    pub fn kubeconfig(&self, token: &str) -> Result<PathBuf, Error> {
        self.kubeconfig_at(self.port, token)
    }

    /// The same for a relay before the server, on `port` of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if it cannot be written.
    pub fn kubeconfig_at(&self, port: u16, token: &str) -> Result<PathBuf, Error> {
        let file = self.directory.path().join(format!("{}-{port}.kubeconfig", token.trim_end_matches("-token")));
        let authority = self.tls.authority_file();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters:\n- name: test\n  cluster:\n    server: https://127.0.0.1:{port}\n    \
             certificate-authority: {}\n\
             users:\n- name: test\n  user:\n    token: {token}\n\
             contexts:\n- name: test\n  context:\n    cluster: test\n    user: test\n",
            authority.display(),
        );
        fs::write(&file, text).map_err(failed)?;
        Ok(file)
    }

    /// Posts `yaml` to `path` as the administrator: creates the object that it describes. Gives what the server says, head
    /// and body.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] with what the server says.
    pub fn create(&self, path: &str, yaml: &str) -> Result<String, Error> {
        let head = format!("POST {path} HTTP/1.0\r\nContent-Type: application/yaml\r\nContent-Length: {}", yaml.len());
        let answer = self.ask(&head, yaml).map_err(failed)?;
        if answer.contains(" 201 Created") { Ok(answer) } else { Err(Error::Start { engine: ENGINE, reason: answer }) }
    }

    /// Waits until `path` can be read, as that of a new kind's objects after a moment.
    pub fn wait_for(&self, path: &str) -> bool {
        wait_until(PATIENCE, || self.is_ok(path))
    }

    /// Sends `signal` to the server; nothing if it is stopped.
    pub fn signal(&self, signal: i32) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    /// Kills it and its etcd as `kill -9` does.
    pub fn kill(&mut self) {
        self.process = None;
        self.etcd.kill();
    }

    /// Starts both again, on the same ports and data.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        self.etcd.restart()?;
        self.run()
    }

    fn run(&mut self) -> Result<(), Error> {
        let output = self.directory.path().join("output");
        let file = fs::File::create(&output).map_err(failed)?;
        let (port, folder) = (self.port, self.directory.path());
        let mut command = Command::new(GoEngine::KubeApiserver.installed()?);
        command.arg(format!("--etcd-servers=http://127.0.0.1:{}", self.etcd.port()));
        command.arg("--bind-address=127.0.0.1").arg(format!("--secure-port={port}"));
        command.arg(setting("cert-dir", &folder.join("certificates")));
        command.arg(setting("tls-cert-file", &self.tls.certificate_file()));
        command.arg(setting("tls-private-key-file", &self.tls.key_file()));
        command.arg(setting("token-auth-file", &folder.join("tokens.csv")));
        command.arg(format!("--service-account-issuer=https://127.0.0.1:{port}"));
        // Tokens are signed with the same key that the server shows itself by: nobody asks for one here.
        command.arg(setting("service-account-key-file", &self.tls.certificate_file()));
        command.arg(setting("service-account-signing-key-file", &self.tls.key_file()));
        command.args(["--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC"]);
        command.args(["--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"]);
        command.stdin(Stdio::null()).stderr(file.try_clone().map_err(failed)?).stdout(file);
        let mut process = Process::start(ENGINE, command)?;
        let mut ended = None;
        let ready = wait_until(PATIENCE, || {
            ended = process.ended();
            ended.is_some() || self.is_ok("/readyz")
        });
        if !ready || ended.is_some() {
            return Err(Error::Start { engine: ENGINE, reason: tail(&output) });
        }
        self.process = Some(process);
        Ok(())
    }

    fn is_ok(&self, path: &str) -> bool {
        self.ask(&format!("GET {path} HTTP/1.0"), "").is_ok_and(|answer| answer.contains(" 200 OK"))
    }

    /// One request of the administrator's; `openssl` is there, as the certificate was made by it.
    fn ask(&self, head: &str, body: &str) -> std::io::Result<String> {
        let openssl = program("openssl", &[Path::new("/usr/bin")]).unwrap_or_else(|| "openssl".into());
        let mut command = Command::new(openssl);
        command.args(["s_client", "-quiet", "-connect", &format!("127.0.0.1:{}", self.port)]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let request = format!("{head}\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n{body}", Self::ADMIN);
        if let Some(stdin) = &mut child.stdin {
            // Fails if there is no server yet: then there is no answer either.
            drop(stdin.write_all(request.as_bytes()));
        }
        child.wait_with_output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for KubeApiserver {
    /// Their files go with it, so there is nothing to end in good order.
    fn drop(&mut self) {
        self.kill();
    }
}

fn setting(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

fn failed(error: std::io::Error) -> Error {
    Error::Start { engine: ENGINE, reason: error.to_string() }
}

const ENGINE: &str = "kube-apiserver";

/// Far beyond any start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
