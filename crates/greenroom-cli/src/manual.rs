//! `greenroom completions` and `greenroom manual`: what shells and `man` know of this program.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

/// For which shell.
#[derive(Args)]
pub(crate) struct CompletionsCommand {
    /// The shell that is to read them, as `source <(greenroom completions bash)`
    #[arg(value_enum)]
    shell: Shell,
}

/// Where to.
#[derive(Args)]
pub(crate) struct ManualCommand {
    /// The folder; what it has of these pages is written anew
    folder: PathBuf,
}

/// Prints a script for the shell.
pub(crate) fn complete(command: &CompletionsCommand, mut program: Command) -> Result<(), String> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut program, "greenroom", &mut script);
    io::stdout().lock().write_all(&script).map_err(|error| format!("cannot write: {error}"))
}

/// Writes one page for the program, and one for each of its commands.
pub(crate) fn write(command: &ManualCommand, program: Command) -> Result<(), String> {
    let folder = &command.folder;
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(program, folder));
    written.map_err(|error| format!("cannot write into {}: {error}", folder.display()))
}
