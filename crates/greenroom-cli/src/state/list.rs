//! Many keys, page by page: listed, or exported with their values.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use greenroom_store::Item;
use serde_json::json;

use super::line::Line;
use super::{Failure, Location, Opened, keys, unwritten};

/// Which keys to list, and how.
#[derive(Args)]
pub(super) struct List {
    /// What the keys begin with; all keys without it
    #[arg(default_value = "")]
    prefix: String,
    #[command(flatten)]
    location: Location,
    /// Stop after so many keys
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Begin behind this key
    #[arg(long, value_name = "KEY")]
    after: Option<String>,
    /// Show versions and sizes too, apart by tabs
    #[arg(long)]
    long: bool,
    /// Print a line of JSON for each key, with its version and size
    #[arg(long, conflicts_with = "long")]
    json: bool,
}

impl List {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let opened = self.location.open().await?;
        let mut out = BufWriter::new(io::stdout().lock());
        let mut left = self.limit.unwrap_or(u64::MAX);
        let mut last = None;
        let more = each(&opened, &self.prefix, self.after.clone(), |item| {
            if left == 0 {
                return Ok(false);
            }
            left -= 1;
            writeln!(out, "{}", self.shown(&item))?;
            last = Some(item.key);
            Ok(true)
        });
        let more = more.await?;
        out.flush().map_err(unwritten)?;
        if let (true, Some(last)) = (more, last) {
            eprintln!("there are more; go on with --after {}", keys::shown(&last));
        }
        Ok(())
    }

    fn shown(&self, Item { key, versioned }: &Item) -> String {
        let (version, bytes) = (versioned.version.as_str(), versioned.value.len());
        if self.json {
            json!({ "key": key, "version": version, "bytes": bytes }).to_string()
        } else if self.long {
            format!("{}\t{version}\t{bytes}", keys::shown(key))
        } else {
            keys::shown(key).into_owned()
        }
    }
}

/// Which keys to export, and where to.
#[derive(Args)]
pub(super) struct Export {
    /// What the keys begin with; all keys without it
    #[arg(default_value = "")]
    prefix: String,
    #[command(flatten)]
    location: Location,
    /// Write into this file, which is there only when all is in it; standard output without it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let opened = self.location.open().await?;
        let Some(output) = &self.output else {
            let mut out = BufWriter::new(io::stdout().lock());
            self.write(&opened, &mut out).await?;
            return out.flush().map_err(unwritten);
        };
        let failed = |error: io::Error| Failure::Other(format!("cannot write {}: {error}", output.display()));
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        let mut out = BufWriter::new(file.as_file_mut());
        let count = self.write(&opened, &mut out).await?;
        out.flush().map_err(failed)?;
        drop(out);
        file.as_file().sync_all().map_err(failed)?;
        file.persist(output).map_err(|error| failed(error.error))?;
        eprintln!("exported {count} keys");
        Ok(())
    }

    async fn write(&self, opened: &Opened, out: &mut impl Write) -> Result<u64, Failure> {
        let mut count = 0;
        each(opened, &self.prefix, None, |item| {
            writeln!(out, "{}", Line::new(item.key, &item.versioned.value).json())?;
            count += 1;
            Ok(true)
        })
        .await?;
        Ok(count)
    }
}

/// Gives every item to `take` until it has enough; whether there was one that it did not want.
async fn each(
    opened: &Opened,
    prefix: &str,
    mut after: Option<String>,
    mut take: impl FnMut(Item) -> io::Result<bool>,
) -> Result<bool, Failure> {
    loop {
        let page = opened.store.scan(prefix, after.as_deref(), PAGE_LEN, opened.timeout).await?;
        after = page.next.as_ref().map(ToString::to_string);
        for item in page.items {
            if !take(item).map_err(unwritten)? {
                return Ok(true);
            }
        }
        if after.is_none() {
            return Ok(false);
        }
    }
}

/// Items asked for at once.
const PAGE_LEN: usize = 500;
