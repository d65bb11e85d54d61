//! Kafka: one broker that is its own controller (KRaft), with its data on disk. From Maven's packages, which are fetched
//! once into the cache.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::cache::cache;
use crate::process::tail;
use crate::{Error, Process, free_port, program, wait_until};

/// A broker with a directory and ports of its own.
#[derive(Debug)]
pub struct Kafka {
    port: u16,
    process: Option<Process>,
    directory: TempDir,
}

impl Kafka {
    /// Starts a broker without topics.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if there is no Java or Kafka was not fetched, [`Error::Start`] if it does not start.
    pub fn start() -> Result<Self, Error> {
        Self::installed()?;
        let directory = TempDir::with_prefix("greenroom-kafka-").map_err(failed)?;
        let (port, controller) = (free_port(), free_port());
        let data = directory.path().join("data");
        let settings = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\nlog.dirs={}\n\
             offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n\
             transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
             transaction.state.log.num.partitions=2\ngroup.initial.rebalance.delay.ms=0\n\
             auto.create.topics.enable=false\nlog.cleaner.dedupe.buffer.size=2097152\n",
            data.display()
        );
        fs::write(directory.path().join("server.properties"), settings).map_err(failed)?;
        let mut broker = Self { port, process: None, directory };
        broker.format()?;
        broker.run()?;
        Ok(broker)
    }

    /// Where its packages are.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] with what fetches them.
    pub fn installed() -> Result<PathBuf, Error> {
        let missing = |remedy: String| Error::Missing { engine: ENGINE, remedy };
        java().ok_or_else(|| missing("install the package default-jre-headless".to_owned()))?;
        let folder = folder();
        if folder.is_dir() {
            return Ok(folder);
        }
        let maven = if program("mvn", &[]).is_some() { "" } else { "install the package maven, and " };
        Err(missing(format!("{maven}run `cargo run -p greenroom-engines --example install -- kafka`")))
    }

    /// Fetches its packages, if they are not in the cache: about a minute.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if there is no Maven, [`Error::Start`] if it fails.
    pub fn install() -> Result<PathBuf, Error> {
        let target = folder();
        let cache = target.parent().expect("it is in the cache's folder");
        fs::create_dir_all(cache).map_err(failed)?;
        let lock = File::create(cache.join(".lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        if !target.is_dir() {
            let scratch = tempfile::tempdir_in(cache).map_err(failed)?;
            fs::write(scratch.path().join("pom.xml"), include_str!("../engines/kafka/pom.xml")).map_err(failed)?;
            let mut maven = Command::new("mvn");
            maven.args(["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"]);
            let output = maven.current_dir(scratch.path()).stdin(Stdio::null()).output();
            let output = output.map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    Error::Missing { engine: ENGINE, remedy: "install the package maven".to_owned() }
                }
                _ => failed(error),
            })?;
            if !output.status.success() {
                let said = [output.stdout, output.stderr].concat();
                return Err(Error::Start { engine: ENGINE, reason: String::from_utf8_lossy(&said).into_owned() });
            }
            fs::rename(scratch.path().join("lib"), &target).map_err(failed)?;
        }
        Ok(target)
    }

    /// The port of 127.0.0.1 on which it serves clients; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What a client calls a journal in it: `kafka://127.0.0.1:PORT/greenroom`.
    pub fn url(&self) -> String {
        format!("kafka://127.0.0.1:{}/greenroom?partitions=4", self.port)
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

    /// Sends `signal` to it; nothing if it is stopped.
    pub fn signal(&self, signal: i32) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    /// Starts it again, on the same ports and data, after stopping it if it runs.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop();
        self.run()
    }

    fn format(&self) -> Result<(), Error> {
        let mut command = self.java("kafka.tools.StorageTool")?;
        command.args(["format", "-t", "Z3JlZW5yb29tLXRlc3QtMQ", "-c"]);
        let output = command.arg(self.settings()).output().map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        Err(Error::Start { engine: ENGINE, reason: String::from_utf8_lossy(&said).into_owned() })
    }

    fn run(&mut self) -> Result<(), Error> {
        let output = self.directory.path().join("output");
        let file = File::create(&output).map_err(failed)?;
        let mut command = self.java("kafka.Kafka")?;
        command.arg(self.settings()).stderr(file.try_clone().map_err(failed)?).stdout(file);
        let mut process = Process::start(ENGINE, command)?;
        let mut ended = None;
        let ready = wait_until(PATIENCE, || {
            ended = process.ended();
            // It listens as soon as it is registered; clients wait for the rest themselves.
            ended.is_some() || TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
        if !ready || ended.is_some() {
            return Err(Error::Start { engine: ENGINE, reason: tail(&output) });
        }
        self.process = Some(process);
        Ok(())
    }

    fn java(&self, class: &str) -> Result<Command, Error> {
        let packages = Self::installed()?.join("*");
        let mut command = Command::new(java().unwrap_or_else(|| "java".into()));
        command.args(["-XX:+UseSerialGC", "-Xms64m", "-Xmx256m", "-XX:TieredStopAtLevel=1"]);
        command.arg("-cp").arg(packages).arg(class).current_dir(self.directory.path()).stdin(Stdio::null());
        Ok(command)
    }

    fn settings(&self) -> PathBuf {
        self.directory.path().join("server.properties")
    }
}

impl Drop for Kafka {
    /// Its files go with it, so there is nothing to end in good order.
    fn drop(&mut self) {
        self.kill();
    }
}

fn java() -> Option<PathBuf> {
    program("java", &[Path::new("/usr/bin")])
}

fn folder() -> PathBuf {
    cache().join("kafka-4.3.1")
}

fn failed(error: std::io::Error) -> Error {
    Error::Start { engine: ENGINE, reason: error.to_string() }
}

const ENGINE: &str = "kafka";

/// Far beyond any start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
