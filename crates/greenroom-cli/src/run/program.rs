//! The program: a child that does not outlive the node, and the files that it is made of.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, SystemTime};

/// A program that runs. Dropping it ends it at once.
pub(super) struct Program(Child);

impl Program {
    /// Starts `words`, with the way in to its node.
    pub(super) fn start(words: &[String], way: &str) -> Result<Self, String> {
        let [program, arguments @ ..] = words else { return Err("there is no program to run".to_owned()) };
        let mut command = Command::new(program);
        command.args(arguments).env("GREENROOM_HOST", way);
        // It is told of Ctrl-C by us, after the node's word, not by the terminal.
        command.process_group(0);
        // SAFETY: prctl is safe to call between fork and exec, and takes no pointers here.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        command.spawn().map(Self).map_err(|error| format!("cannot run {program}: {error}"))
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.0.try_wait().map_err(|error| format!("cannot look after the program: {error}"))
    }

    /// Tells it to end, and waits; whatever has not ended after `patience` is killed.
    pub(super) async fn stop(&mut self, patience: Duration) {
        let until = tokio::time::Instant::now() + patience;
        if let (Ok(None), Ok(pid)) = (self.0.try_wait(), i32::try_from(self.0.id())) {
            // SAFETY: kill takes no pointers; the child is not yet waited for, so the number is still its own.
            #[allow(unsafe_code)]
            unsafe {
                libc::kill(pid, libc::SIGTERM);
            }
        }
        while matches!(self.0.try_wait(), Ok(None)) && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail for one that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// When a file in `folders` was last written; hidden folders, and those of installed packages, are passed over.
pub(super) fn newest(folders: &[PathBuf]) -> Option<SystemTime> {
    folders.iter().filter_map(|folder| in_folder(folder, DEPTH_MAX)).max()
}

fn in_folder(folder: &Path, depth: usize) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    entries
        .filter_map(|entry| {
            let (name, about) = (entry.file_name(), entry.metadata().ok()?);
            let name = name.to_string_lossy();
            match about.is_dir() {
                _ if name.starts_with(['.', '_']) || name == "node_modules" || name == "target" => None,
                true if depth == 0 => None,
                true => in_folder(&entry.path(), depth - 1),
                false => about.modified().ok(),
            }
        })
        .max()
}

/// Folders within folders that are looked at.
const DEPTH_MAX: usize = 4;
