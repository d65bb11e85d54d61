//! `greenroom new`: a project to begin with.

mod files;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

/// What to make.
#[derive(Args)]
pub(crate) struct NewCommand {
    /// The project's name, and that of the folder in which it is made
    name: String,
    /// What its actor is to show; for projects in Rust
    #[arg(long, value_enum, conflicts_with = "lang")]
    with: Option<With>,
    /// The language of its actor; Rust if not said
    #[arg(long, value_enum)]
    lang: Option<Language>,
    /// Greenroom's sources, which the project is to build against; the release of this version, once published, if not said
    #[arg(long, value_name = "DIR")]
    checkout: Option<PathBuf>,
}

/// What an actor can have beside memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum With {
    /// State in a store: an account
    Persistent,
    /// Turns and messages exactly once: a wallet
    Reliable,
    /// One instance in several clusters: an auction
    Geo,
}

/// Languages of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Language {
    /// Python 3.11
    Python,
    /// TypeScript for Node 20
    #[value(alias = "ts")]
    Typescript,
    /// Go 1.26
    Go,
}

/// Makes the folder and all that is in it.
pub(crate) fn run(command: &NewCommand) -> Result<(), String> {
    let name = checked(&command.name)?;
    let checkout = command.checkout.as_deref().map(sources).transpose()?;
    let files = match command.lang {
        None => files::rust(name, command.with, checkout.as_deref()),
        Some(language) => files::host(name, language, checkout.as_deref()),
    };
    let folder = Path::new(name);
    fs::create_dir(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => format!("{name} is there already; choose another name, or take it away"),
        _ => format!("cannot make the folder {name}: {error}"),
    })?;
    for (path, text) in &files {
        let file = folder.join(path);
        let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, text));
        written.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    println!("{name} is made; see {name}/README.md");
    if checkout.is_none() {
        println!("{UNPUBLISHED}");
    }
    Ok(())
}

/// A name that is one of a package in each language, of a cluster and of a file.
fn checked(name: &str) -> Result<&str, String> {
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if !letters || !begins || name.ends_with('-') || name.len() > NAME_LEN_MAX {
        return Err(format!(
            "{name:?} is no name for a project: a letter first, then letters a-z, digits and `-`, at most {NAME_LEN_MAX}"
        ));
    }
    if TAKEN.contains(&name) {
        return Err(format!("a project cannot be called {name}: something else has that name; try my-{name}"));
    }
    Ok(name)
}

/// The checkout's absolute path, if it is one.
fn sources(folder: &Path) -> Result<PathBuf, String> {
    let found = fs::canonicalize(folder).map_err(|error| format!("cannot find {}: {error}", folder.display()))?;
    match found.join("crates/greenroom-test").is_dir() {
        true => Ok(found),
        false => {
            Err(format!("{} has no crates/greenroom-test; --checkout names Greenroom's sources", folder.display()))
        }
    }
}

const NAME_LEN_MAX: usize = 40;

/// What is said of a project that depends on a release.
const UNPUBLISHED: &str =
    "it wants a published release; until there is one, make it with --checkout DIR, Greenroom's sources";

/// What a package's manifest, an import or the language itself would confuse it with.
const TAKEN: &[&str] = &[
    "alloc",
    "async",
    "await",
    "class",
    "core",
    "crate",
    "enum",
    "extern",
    "fn",
    "for",
    "go",
    "greenroom",
    "impl",
    "main",
    "mod",
    "pub",
    "room",
    "self",
    "serde",
    "static",
    "std",
    "struct",
    "test",
    "tokio",
    "trait",
    "type",
    "use",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_every_language_takes() {
        for name in ["shop", "shop-2", "a"] {
            assert_eq!(checked(name), Ok(name));
        }
        for name in ["", "Shop", "2shop", "shop-", "../shop", "a b", "sh_op", "std", "greenroom", &"a".repeat(41)] {
            assert!(checked(name).is_err(), "{name}");
        }
    }
}
