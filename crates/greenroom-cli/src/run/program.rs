//! The program: children that do not outlive the node, and the files that it is made of.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, SystemTime};

/// A program that runs, with what it has started: `go run`, `npx` and shells do not hand a signal on to the host that is their child,
/// so all of the process group is told. Dropping it ends it at once.
///
/// Its first process is waited for when nothing else of the group is left: until then the group's number is nobody else's.
pub(super) struct Program {
    first: Child,
    group: i32,
    /// A host that drains may take a second SIGTERM for impatience.
    is_told: bool,
    ended: Option<ExitStatus>,
}

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
        let first = command.spawn().map_err(|error| format!("cannot run {program}: {error}"))?;
        let group = i32::try_from(first.id()).map_err(|error| format!("cannot look after {program}: {error}"))?;
        Ok(Self { first, group, is_told: false, ended: None })
    }

    /// Whether its first process has ended; others of the group may run.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some() || !is_in(self.group, self.group)
    }

    /// Tells all of it to end, and waits; whatever has not ended after `patience` is killed. How its first process ended.
    pub(super) async fn stop(&mut self, patience: Duration) -> Result<ExitStatus, String> {
        let until = tokio::time::Instant::now() + patience;
        if !self.is_told {
            self.is_told = true;
            self.signal(libc::SIGTERM);
        }
        while self.is_alive() && tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.end().map_err(|error| format!("cannot look after the program: {error}"))
    }

    fn is_alive(&self) -> bool {
        self.ended.is_none() && has_any(self.group)
    }

    fn signal(&self, signal: i32) {
        if self.ended.is_none() {
            // SAFETY: kill takes no pointers; the first process is not yet waited for, so the number is still its group's.
            #[allow(unsafe_code)]
            unsafe {
                libc::kill(-self.group, signal);
            }
        }
    }

    /// Kills what is left.
    fn end(&mut self) -> io::Result<ExitStatus> {
        self.signal(libc::SIGKILL);
        let ended = self.first.wait()?;
        self.ended = Some(ended);
        Ok(ended)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It fails for nothing that could be mended here.
        let _ = self.end();
    }
}

/// Whether a process of the group has not ended.
fn has_any(group: i32) -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).any(|pid| is_in(group, pid))
}

/// Whether a process is of the group, and has not ended. One that nobody has waited for has: who inherits it may never do so.
fn is_in(group: i32, pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Behind the name, which may have any character: state, parent, group.
    let about: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().take(3).collect();
    matches!(about[..], [state, _, of] if !matches!(state, "Z" | "X") && of.parse() == Ok(group))
}

/// What the program is made of: each of its words that names a file, and that file's folder; folders, as in `go run ./host`. A
/// program that was built here is one of the files; what is installed, as `/usr/bin/python`, is not.
pub(super) fn sources(program: &[String]) -> Vec<PathBuf> {
    let words = program.iter().enumerate().filter(|(at, word)| *at > 0 || word.contains('/') && !word.starts_with('/'));
    let found = words.filter_map(|(_, word)| Path::new(word).canonicalize().ok());
    found
        .flat_map(|path| {
            let folder = path.parent().filter(|_| !path.is_dir()).map(Path::to_owned);
            [Some(path), folder].into_iter().flatten()
        })
        .collect()
}

/// When one of the `sources` was last written, or code in those that are folders: what a program writes beside its code, as a log or a
/// store, changes nothing about it. Hidden folders, and those of installed packages, are passed over.
pub(super) fn newest(sources: &[PathBuf]) -> Option<SystemTime> {
    let written = |file: &PathBuf| file.metadata().ok()?.modified().ok();
    sources
        .iter()
        .filter_map(|source| if source.is_dir() { in_folder(source, DEPTH_MAX) } else { written(source) })
        .max()
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
                false if is_code(&name) => about.modified().ok(),
                false => None,
            }
        })
        .max()
}

fn is_code(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| CODE.contains(&ending))
}

/// How names of files end that programs are written in.
const CODE: [&str; 21] = [
    "py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "go", "rs", "java", "kt", "scala", "cs", "rb",
    "ex", "exs", "lua", "php",
];
/// Folders within folders that are looked at.
const DEPTH_MAX: usize = 4;
/// Between two looks at what is to end.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_files_are_beside_its_words_and_in_its_folders() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let here = Path::new(".").canonicalize().expect("it is there");
        for (program, folders) in [
            ("python Cargo.toml --verbose", vec![here.join("Cargo.toml"), here.clone()]),
            ("go run .", vec![here.clone()]),
            ("go run ./src", vec![here.join("src")]),
            ("src/main.rs", vec![here.join("src/main.rs"), here.join("src")]),
            ("/bin/sh nowhere", vec![]),
            ("src", vec![]),
        ] {
            assert_eq!(sources(&words(program)), folders, "{program}");
        }
    }

    #[test]
    fn what_a_program_writes_beside_its_code_is_no_change_of_it() {
        let folder = tempfile::tempdir().expect("there is room");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("host"), "").expect("there is room");
        let sources = sources(&["sh".to_owned(), at("host").display().to_string()]);
        let before = newest(&sources);
        let write = |name: &str, seconds| {
            let file = fs::File::create(at(name)).expect("there is room");
            let later = before.expect("it was written") + Duration::from_secs(seconds);
            file.set_modified(later).expect("times can be set");
        };
        for beside in ["log", "chat.db", "chat.db-wal", "state.json", ".hidden.py"] {
            write(beside, 1);
            assert_eq!(newest(&sources), before, "{beside}");
        }
        for (seconds, code) in [(2, "other.py"), (3, "host")] {
            let before = newest(&sources);
            write(code, seconds);
            assert!(newest(&sources) > before, "{code}");
        }
    }

    /// Runs a shell's program that leaves the process in its background alone, and writes down which one that is once it has done `first`.
    async fn shell(folder: &Path, first: &str) -> (Program, i32) {
        let file = folder.join("pid");
        let runs = "while :; do sleep 0.01; done";
        let code = format!("sh -c '{first}echo $$ > {0}.new; mv {0}.new {0}; {runs}' & wait", file.display());
        let program = Program::start(&["sh".to_owned(), "-c".to_owned(), code], "unix:/nowhere").expect("it starts");
        loop {
            if let Ok(pid) = fs::read_to_string(&file) {
                return (program, pid.trim().parse().expect("a number"));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    #[tokio::test]
    async fn what_does_not_hand_the_signal_on_leaves_no_orphan_which_has_time_to_drain() {
        let folder = tempfile::tempdir().expect("a folder");
        let drained = folder.path().join("drained");
        let drains = format!("trap \"sleep 0.2; echo > {}; exit\" TERM; ", drained.display());
        let (mut program, pid) = shell(folder.path(), &drains).await;
        program.stop(Duration::from_secs(120)).await.expect("it ends");
        assert!(!is_in(program.group, pid) && !has_any(program.group));
        assert!(drained.exists());
    }

    #[tokio::test]
    async fn what_does_not_listen_is_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut program, pid) = shell(folder.path(), "trap \"\" TERM; ").await;
        program.stop(Duration::from_millis(200)).await.expect("it ends");
        ends(program.group, pid).await;
    }

    #[tokio::test]
    async fn what_its_first_process_leaves_behind_ends_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (program, pid) = shell(folder.path(), "kill -9 $PPID; ").await;
        while !program.has_ended() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let group = program.group;
        assert!(is_in(group, pid));
        drop(program);
        ends(group, pid).await;
    }

    /// Waits until a process that is killed has ended.
    async fn ends(group: i32, pid: i32) {
        let until = tokio::time::Instant::now() + Duration::from_secs(120);
        while is_in(group, pid) {
            assert!(tokio::time::Instant::now() < until, "process {pid} runs on");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}
