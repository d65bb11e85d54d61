//! The program's output. The macros stand in the place of the standard library's, whose callers panic when the disk is full.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;

/// The kind of the command that runs. Until it is set, output that cannot be written is dropped.
static COMMAND: OnceLock<CommandKind> = OnceLock::new();

/// Kinds of commands, by what they do when their output cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandKind {
    /// Its output is all that it does: it ends when that cannot be written.
    Tells,
    /// It goes on without its output, as a node does.
    Works,
}

macro_rules! print {
    ($($arguments:tt)*) => { $crate::output::write(format_args!($($arguments)*)) };
}

macro_rules! println {
    () => { $crate::output::write(format_args!("\n")) };
    ($($arguments:tt)*) => { $crate::output::write(format_args!("{}\n", format_args!($($arguments)*))) };
}

macro_rules! eprint {
    ($($arguments:tt)*) => { $crate::output::complain(format_args!($($arguments)*)) };
}

macro_rules! eprintln {
    ($($arguments:tt)*) => { $crate::output::complain(format_args!("{}\n", format_args!($($arguments)*))) };
}

/// Says what the command is for, once.
pub(crate) fn begin(command: CommandKind) {
    let _ = COMMAND.set(command);
}

/// Writes to standard output. A command that only tells ends with exit code 1 if that fails.
pub(crate) fn write(arguments: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    let written = out.write_fmt(arguments);
    drop(out);
    judge(written);
}

/// Writes to standard error, as far as that takes it.
pub(crate) fn complain(arguments: fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(arguments);
}

/// Writes what standard output holds back of a line without an end.
pub(crate) fn finish() {
    judge(io::stdout().flush());
}

/// Describes why output could not be written.
pub(crate) fn unwritten(error: &io::Error) -> String {
    format!("the output cannot be written: {error}")
}

fn judge(written: io::Result<()>) {
    let Err(error) = written else { return };
    if COMMAND.get() == Some(&CommandKind::Tells) {
        complain(format_args!("greenroom: {}\n", unwritten(&error)));
        // Only what could not be written is lost: such a command has changed nothing that it has not finished.
        std::process::exit(1);
    }
}
