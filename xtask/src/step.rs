//! A step: one command, named, timed and judged by its exit status.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

/// Runs `command` at the root of the repository, with its output left as it is; [`beside`] other steps it is kept.
///
/// # Errors
/// A sentence that names the step and the command to repeat, when it cannot start or ends with another status than 0.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<(), String> {
    say(&format!("==> {name}: {}", shown(command)));
    let started = Instant::now();
    command.current_dir(root());
    let status = match KEPT.with_borrow(Option::is_some) {
        true => heard(command).map(|(status, text)| {
            KEPT.with_borrow_mut(|kept| kept.get_or_insert_default().extend(text));
            status
        }),
        false => command.status(),
    };
    let status =
        status.map_err(|error| format!("{name} could not start: {error}\n  the command was: {}", shown(command)))?;
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("{name} failed after {seconds:.1} s ({status})\n  to repeat it: {}", shown(command)));
    }
    say(&format!("==> {name}: done in {seconds:.1} s"));
    took(name, seconds);
    Ok(())
}

/// Steps that run one after the other.
pub(crate) type Steps<'a> = Box<dyn FnOnce() -> Result<(), String> + Send + 'a>;

/// Runs `computing` on this thread, and beside it each of `waiting`, steps that wait more than they compute, on a thread of its own.
/// The output of these comes at the end, one after the other.
///
/// # Errors
/// The error of `computing`, else the first of `waiting`.
pub(crate) fn beside(waiting: Vec<Steps>, computing: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let (waited, computed) = thread::scope(|scope| {
        let waiting: Vec<_> = waiting
            .into_iter()
            .map(|steps| {
                scope.spawn(|| {
                    KEPT.set(Some(Vec::new()));
                    let waited = steps();
                    (waited, KEPT.take().unwrap_or_default())
                })
            })
            .collect();
        let computed = computing();
        let panicked = |_| (Err("a thread of steps has panicked".into()), Vec::new());
        let waited: Vec<_> = waiting.into_iter().map(|steps| steps.join().unwrap_or_else(panicked)).collect();
        (waited, computed)
    });
    for (_, text) in &waited {
        // A closed standard output is no reason to stop testing.
        let _ = io::stdout().write_all(text);
    }
    waited.into_iter().fold(computed, |all, (one, _)| all.and(one))
}

/// Runs `command` to its end; all that it says, in order.
pub(crate) fn heard(command: &mut Command) -> io::Result<(ExitStatus, Vec<u8>)> {
    let (mut output, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stderr(writer.try_clone()?).stdout(writer);
    let child = command.spawn();
    // It holds the writing ends, without which the output does not end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut text = Vec::new();
    output.read_to_end(&mut text)?;
    Ok((child?.wait()?, text))
}

/// Prints a line, or keeps it if this thread's output is kept.
pub(crate) fn say(line: &str) {
    KEPT.with_borrow_mut(|kept| match kept {
        Some(text) => text.extend(format!("{line}\n").bytes()),
        None => println!("{line}"),
    });
}

thread_local! {
    /// What this thread's steps have said, if that is kept.
    static KEPT: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Notes that something that belongs to the whole took so long.
pub(crate) fn took(name: &str, seconds: f64) {
    // Only who panics while noting leaves it poisoned.
    let mut times = TIMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    times.push((name.to_owned(), seconds));
}

/// The steps so far, with their seconds.
pub(crate) fn times() -> Vec<(String, f64)> {
    TIMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

/// Prints how long each step took.
pub(crate) fn say_times() {
    println!("==> seconds of each step:");
    for (name, seconds) in times() {
        println!("{seconds:9.1}  {name}");
    }
}

/// The steps so far, with their seconds.
static TIMES: Mutex<Vec<(String, f64)>> = Mutex::new(Vec::new());

/// The folder that cargo builds into: this program lies in it.
pub(crate) fn target() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("cannot say where this program is: {error}"))?;
    let target = this.parent().and_then(Path::parent).ok_or("this program is not in a target folder")?;
    Ok(target.to_owned())
}

/// The cargo that runs this program, so that a step uses the same toolchain.
pub(crate) fn cargo() -> Command {
    plain(Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())))
}

/// `command` without what the cargo that runs this program says of this package: build scripts look at such variables (ring's
/// does), and all that stands on them would be built anew whenever a chore follows a cargo of one's own.
pub(crate) fn plain(mut command: Command) -> Command {
    let told = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME"
    });
    told.for_each(|name| _ = command.env_remove(name));
    command
}

/// The root of the repository. Asked when the program runs, because checkouts that share a target folder share it too.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&manifest).parent().map(Path::to_owned).unwrap_or_default()
}

/// `command` as one would type it.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut words: Vec<String> =
        variables.map(|(name, value)| format!("{}={}", name.display(), quoted(&value.to_string_lossy()))).collect();
    words.push(program.to_string_lossy().into_owned());
    words.extend(command.get_args().map(|argument| quoted(&argument.to_string_lossy())));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_names_itself_and_the_command_to_repeat() {
        let why = run("lints", Command::new("false").arg("a b").env("SEEDS", "3")).unwrap_err();
        assert!(why.starts_with("lints failed"), "{why}");
        assert!(why.ends_with("to repeat it: SEEDS=3 false 'a b'"), "{why}");
    }

    #[test]
    fn what_goes_beside_is_heard_and_judged_too() {
        let mut order = String::new();
        let waits = |script| Box::new(move || run("waits", Command::new("sh").args(["-c", script]))) as Steps<'static>;
        let failed = beside(vec![waits("echo said"), waits("echo said; false")], || {
            order.push_str("computed");
            Ok(())
        });
        assert!(failed.unwrap_err().starts_with("waits failed"));
        assert_eq!(order, "computed");
        assert_eq!(beside(vec![waits("true")], || Err("none".to_owned())), Err("none".to_owned()));
        let (status, text) = heard(Command::new("sh").args(["-c", "echo out; echo err >&2"])).unwrap();
        assert_eq!((status.success(), &text[..]), (true, &b"out\nerr\n"[..]));
    }
}
