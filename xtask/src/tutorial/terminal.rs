//! Terminals: shells that run what is typed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::said;
use crate::step::{plain, say, target};

/// The terminals of one page. What still runs in them ends with them.
pub(crate) struct Terminals {
    folder: PathBuf,
    /// Where `greenroom` is found.
    path: OsString,
    /// What goes on running, by the terminal's title.
    running: BTreeMap<String, Running>,
}

struct Running {
    child: Child,
    output: PathBuf,
    /// Lines of its output that the page has told of.
    told: usize,
}

impl Terminals {
    /// Terminals in `folder`, with the programs of this checkout; with `is_built`, cargo is that of [`share_programs`].
    pub(crate) fn open(folder: PathBuf, is_built: bool) -> Result<Self, String> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let first = is_built.then(stand_in).transpose()?;
        let ours = first.into_iter().chain([target()?.join("debug")]);
        let paths = ours.chain(std::env::split_paths(&paths));
        let path = std::env::join_paths(paths).map_err(|error| format!("PATH cannot be added to: {error}"))?;
        Ok(Self { folder, path, running: BTreeMap::new() })
    }

    /// Runs `command` to its end: what comes is what was `said`.
    pub(crate) fn run(&mut self, command: &str, said: &[String]) -> Result<(), String> {
        say(&format!("    $ {command}"));
        let mut running = self.start("", command)?;
        running.child.wait().map_err(|error| format!("`{command}` cannot be waited for: {error}"))?;
        let came = running.came();
        match said::all(said, &lines(&came)) {
            true => Ok(()),
            false => Err(differs(command, said, &came)),
        }
    }

    /// Begins `command` in `terminal`, and waits until what was `said` has come.
    pub(crate) fn begin(&mut self, terminal: &str, command: &str, said: &[String]) -> Result<(), String> {
        say(&format!("    {terminal} $ {command}"));
        let mut running = self.start(terminal, command)?;
        loop {
            let ended = running.child.try_wait().map_err(|error| format!("`{command}` is lost: {error}"))?.is_some();
            let came = running.came();
            if let Some(told) = said::begins(said, &lines(&came)) {
                running.told = told;
                self.running.insert(terminal.to_owned(), running);
                return Ok(());
            }
            if ended {
                return Err(differs(command, said, &came));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Sends `signal` to what runs in `terminal`, and waits for its end: what comes until then is what was `said`.
    pub(crate) fn signal(&mut self, terminal: &str, signal: &str, said: &[String]) -> Result<(), String> {
        say(&format!("    {terminal} SIG{signal}"));
        let Some(mut running) = self.running.remove(terminal) else {
            return Err(format!("nothing runs in a terminal with the title \"{terminal}\""));
        };
        running.send(signal);
        running.child.wait().map_err(|error| format!("what runs in {terminal} cannot be waited for: {error}"))?;
        let came = running.came();
        match said::all(said, lines(&came).get(running.told..).unwrap_or_default()) {
            true => Ok(()),
            false => Err(differs(&format!("the key for SIG{signal}"), said, &came)),
        }
    }

    fn start(&self, terminal: &str, command: &str) -> Result<Running, String> {
        let output = target()?.join(format!("tutorial{}.txt", terminal.replace([' ', '/'], "-")));
        let failed = |error| format!("`{command}` could not start: {error}");
        let file = File::create(&output).map_err(failed)?;
        let mut shell = plain(Command::new("bash"));
        // Who is ended by a key leaves no dump behind.
        shell
            .args(["-c", &format!("ulimit -c 0\n{command}")])
            .current_dir(&self.folder)
            .env("PATH", &self.path)
            .process_group(0);
        shell.stdin(Stdio::null()).stdout(file.try_clone().map_err(failed)?).stderr(file);
        Ok(Running { child: shell.spawn().map_err(failed)?, output, told: 0 })
    }
}

impl Running {
    fn came(&self) -> String {
        read(&self.output)
    }

    /// To all that the shell has started.
    fn send(&self, signal: &str) {
        let group = format!("-{}", self.child.id());
        // It may have ended by itself, and then there is nothing to signal.
        _ = Command::new("kill").args(["-s", signal, "--", &group]).stderr(Stdio::null()).status();
    }
}

/// Makes the cargo of terminals whose programs are built: `cargo run` runs the one of its folder. Building it once more, by
/// itself, would compile the library with other features than all the rest has it with.
pub(crate) fn share_programs() -> Result<(), String> {
    let folder = stand_in()?;
    let program = folder.join("cargo");
    let text = format!(
        "#!/bin/sh\n[ \"$1 $2\" = 'run --quiet' ] || {{ echo \"cargo $*: only cargo run --quiet is typed here\" >&2; exit 1; }}\n\
         shift 2\n[ \"$1\" != -- ] || shift\n\
         exec {}/debug/\"$(sed -n 's/^name = \"\\(.*\\)\"$/\\1/p' Cargo.toml | head -n 1)\" \"$@\"\n",
        target()?.display()
    );
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&program, text));
    let written = written.and_then(|()| fs::set_permissions(&program, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("cannot write {}: {error}", program.display()))
}

/// The folder of that cargo.
fn stand_in() -> Result<PathBuf, String> {
    Ok(target()?.join("tutorial"))
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.send("KILL");
            _ = self.child.wait();
        }
    }
}

/// What a process has written. Its last line may be half of one, which is none yet to compare.
fn read(output: &Path) -> String {
    String::from_utf8_lossy(&fs::read(output).unwrap_or_default()).into_owned()
}

fn lines(came: &str) -> Vec<&str> {
    came.lines().collect()
}

fn differs(command: &str, said: &[String], came: &str) -> String {
    format!("`{command}` does not do what the page says\n--- the page\n{}\n--- what came\n{came}", said.join("\n"))
}

/// Between two looks at what a process has written.
const PAUSE: Duration = Duration::from_millis(20);
