//! One key: read, written, removed.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use greenroom_store::Version;

use super::line::Line;
use super::{Failure, Location, Opened, say, unwritten};

/// Which key to print, and how.
#[derive(Args)]
pub(super) struct Get {
    /// The key
    key: String,
    #[command(flatten)]
    location: Location,
    /// Print a line of JSON with key, version and value
    #[arg(long)]
    json: bool,
}

impl Get {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let Opened { store, timeout, .. } = self.location.open().await?;
        let found = store.read(&self.key, timeout).await?.ok_or_else(|| missing(&self.key))?;
        if self.json {
            return say(Line::new(self.key.clone(), &found.value).at(&found.version).json());
        }
        let mut out = io::stdout().lock();
        out.write_all(&found.value).and_then(|()| out.flush()).map_err(unwritten)
    }
}

/// What to write where, and on which condition.
#[derive(Args)]
pub(super) struct Put {
    /// The key
    key: String,
    /// The value, as text
    #[arg(required_unless_present = "file")]
    value: Option<String>,
    #[command(flatten)]
    location: Location,
    /// Take the value from this file; `-` for standard input
    #[arg(long, conflicts_with = "value")]
    file: Option<PathBuf>,
    /// Replace only this version, which `get --json` and `list --long` tell
    #[arg(long, value_name = "VERSION")]
    expect: Option<String>,
    /// Write only if nothing is there
    #[arg(long, conflicts_with = "expect")]
    create: bool,
}

impl Put {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let value = match &self.file {
            Some(file) => contents(file)?,
            None => self.value.clone().unwrap_or_default().into(),
        };
        let Opened { store, timeout, .. } = self.location.open_or_create().await?;
        let expected = match &self.expect {
            Some(version) => Some(Version::new(version.as_str())),
            None if self.create => None,
            None => store.read(&self.key, timeout).await?.map(|found| found.version),
        };
        let version = match expected {
            Some(expected) => store.replace(&self.key, value, &expected, timeout).await?,
            None => store.create(&self.key, value, timeout).await?,
        };
        say(version)
    }
}

/// What to remove, and on which condition.
#[derive(Args)]
pub(super) struct Delete {
    /// The key
    key: String,
    #[command(flatten)]
    location: Location,
    /// Remove only this version, which `get --json` and `list --long` tell
    #[arg(long, value_name = "VERSION")]
    expect: Option<String>,
}

impl Delete {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let Opened { store, timeout, .. } = self.location.open().await?;
        let expected = match &self.expect {
            Some(version) => Version::new(version.as_str()),
            None => store.read(&self.key, timeout).await?.ok_or_else(|| missing(&self.key))?.version,
        };
        Ok(store.delete(&self.key, &expected, timeout).await?)
    }
}

fn missing(key: &str) -> Failure {
    Failure::Missing(format!("there is no key {key:?}; `greenroom state list` shows which there are"))
}

fn contents(file: &Path) -> Result<Bytes, Failure> {
    let mut bytes = Vec::new();
    let read = match file.to_str() {
        Some("-") => io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes),
        _ => fs::read(file),
    };
    let read = read.map_err(|error| Failure::Other(format!("cannot read {}: {error}", file.display())));
    Ok(read?.into())
}
