//! The pages of the reference that are made: from the sources, and from what the program says.

mod errors;
mod events;
mod findings;
mod metrics;
mod paths;
mod rust;
mod settings;
mod table;

use std::path::Path;
use std::process::Command;

use super::{read, write};
use crate::step::root;

/// Writes the pages into `site`, the folder that it is made from. Names them.
///
/// # Errors
/// What a page is made of is not as it was: the page's maker must learn how it is now.
pub(crate) fn make(site: &Path, program: &Path) -> Result<Vec<String>, String> {
    let folder = site.join(FOLDER);
    said(program, &["manual", "--markdown", &folder.display().to_string()])?;
    let pages = [
        ("settings.md", settings::page(program)?),
        ("metrics.md", metrics::page(program)?),
        ("paths.md", paths::page()?),
        ("errors.md", errors::page()?),
        ("events.md", events::page()?),
        ("findings.md", findings::page()?),
    ];
    let mut names = vec![format!("{FOLDER}/commands.md")];
    for (name, text) in pages {
        write(&folder.join(name), &text)?;
        names.push(format!("{FOLDER}/{name}"));
    }
    Ok(names)
}

/// What the program prints.
fn said(program: &Path, words: &[&str]) -> Result<String, String> {
    let output = alone(program).args(words).output();
    let output = output.map_err(|error| format!("{} does not start: {error}", program.display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("greenroom {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr))),
    }
}

/// The program, with nothing of its settings in the environment.
fn alone(program: &Path) -> Command {
    let mut command = Command::new(program);
    let settings = std::env::vars_os().map(|(name, _)| name);
    let settings = settings.filter(|name| name.to_string_lossy().starts_with("GREENROOM_"));
    settings.for_each(|name| _ = command.env_remove(name));
    command
}

/// The source at `path` from the repository's root.
fn source(path: &str) -> Result<String, String> {
    read(&root().join(path))
}

/// Where the pages are in the documentation.
const FOLDER: &str = "reference";
