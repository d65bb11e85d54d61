//! A child process that never outlives its test.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use crate::Error;

/// A running server; killed and waited for when dropped, and killed by the kernel if the test's process dies.
#[derive(Debug)]
pub struct Process {
    engine: &'static str,
    child: Child,
}

impl Process {
    /// Starts `command`, from any thread, which may end before it. Its output goes where the command says.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] with the system's words.
    pub fn start(engine: &'static str, mut command: Command) -> Result<Self, Error> {
        // SAFETY: between fork and exec only prctl is called, which is async-signal-safe and touches no memory.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let child = spawn(command).map_err(|error| Error::Start { engine, reason: error.to_string() })?;
        Ok(Self { engine, child })
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends `signal` (`libc::SIGSTOP`, say; it returns when all threads have stopped).
    pub fn signal(&self, signal: i32) {
        let id = i32::try_from(self.child.id()).expect("a process id fits");
        // SAFETY: the child has not been waited for, so the number is still its own.
        unsafe { libc::kill(id, signal) };
        if signal == libc::SIGSTOP {
            wait_until(STOP_PATIENCE, || self.is_stopped());
        }
    }

    /// Whether none of its threads runs: they stop one after the other.
    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        threads.into_iter().flatten().flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state follows the name, which is in parentheses.
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        })
    }

    /// Why the process has ended, if it has.
    pub fn ended(&mut self) -> Option<Error> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(Error::Start { engine: self.engine, reason: format!("it ended with {status}") })
    }

    /// Waits until it has ended by itself, at most `patience`; false if it has not.
    pub fn wait(&mut self, patience: Duration) -> bool {
        wait_until(patience, || !matches!(self.child.try_wait(), Ok(None)))
    }

    /// Kills it, as `kill -9` does, and waits until it is gone.
    pub fn kill(&mut self) {
        // Both fail only if it is gone already, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts `command` from the one thread that starts every server and lives as long as this process: the kernel kills
/// the child when the *thread* that forked it ends, and a test's thread may end before its server is to.
fn spawn(command: Command) -> std::io::Result<Child> {
    static STARTER: OnceLock<Sender<(Command, Sender<std::io::Result<Child>>)>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, received) = channel::<(Command, Sender<_>)>();
        std::thread::spawn(move || {
            for (mut command, answer) in received {
                // Who ordered is waiting.
                drop(answer.send(command.spawn()));
            }
        });
        orders
    });
    let (answer, started) = channel();
    let gone = || std::io::Error::other("the thread that starts servers has ended");
    starter.send((command, answer)).map_err(|_| gone())?;
    started.recv().map_err(|_| gone())?
}

/// The program called `name`, from the `PATH` or one of `folders`.
pub fn program(name: &str, folders: &[&Path]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = folders.iter().map(|folder| folder.to_path_buf()).chain(std::env::split_paths(&path));
    all.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Waits until `ready`, at most `patience`; false if it never was.
pub fn wait_until(patience: Duration, mut ready: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if ready() {
            return true;
        }
        if begun.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// The last lines of what a server has said.
pub(crate) fn tail(output: &Path) -> String {
    let text = std::fs::read(output).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().rev().take(TAIL_LINES).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// What is shown of a server's output when it does not start.
const TAIL_LINES: usize = 12;

/// How long the threads of a process may take to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks: short against a server's start.
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_process_is_gone() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let process = Process::start("sleep", command).expect("it starts");
        let folder = PathBuf::from(format!("/proc/{}", process.id()));
        assert!(folder.exists());
        drop(process);
        assert!(!folder.exists());
    }

    #[test]
    fn a_process_outlives_the_thread_that_started_it() {
        let start = || {
            let mut command = Command::new("sleep");
            command.arg("60");
            Process::start("sleep", command).expect("it starts")
        };
        let mut process = std::thread::spawn(start).join().expect("it starts one and ends");
        assert!(!process.wait(Duration::from_millis(300)), "it was killed with the thread");
    }
}
