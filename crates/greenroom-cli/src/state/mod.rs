//! `greenroom state`: what is in a store, read and changed beside the nodes that use it.
//!
//! Every write is conditional, as the nodes' own are: it replaces exactly what was read before, or says that somebody
//! else has written. An actor whose state was changed so meets a conflict at its next save.

mod import;
mod keys;
mod line;
mod list;
mod log;
mod namespaces;
mod one;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use greenroom_store::url::StoreUrl;
use greenroom_store::{Journal, Store, StoreError};

/// What to do with which store.
#[derive(Args)]
pub(crate) struct StateCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Print a key's value
    Get(one::Get),
    /// Write a key's value, if nobody else has written it since
    Put(one::Put),
    /// Remove a key, if nobody else has written it since
    Delete(one::Delete),
    /// List keys in the order of their bytes
    List(list::List),
    /// Print the history of a state that is kept as a log of its updates
    Log(log::Log),
    /// List or rename the namespaces whose states are in a store
    Namespaces(namespaces::Namespaces),
    /// Print keys and values as JSON lines
    Export(list::Export),
    /// Write keys and values from JSON lines
    Import(import::Import),
}

/// Which store, and how long to wait for it.
#[derive(Args)]
struct Location {
    /// The store's URL: sqlite:PATH, postgres://.., redis://.., etcd://.., s3://.., kube:..
    #[arg(long, value_name = "URL", env = "GREENROOM_STORE")]
    store: String,
    /// Seconds that each operation may take
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

/// An open store.
struct Opened {
    store: Arc<dyn Store>,
    /// The same store, if it has logs.
    journal: Option<Arc<dyn Journal>>,
    timeout: Duration,
}

/// What ended the command, sorted by the exit status that says so.
enum Failure {
    /// There is no such key: status 3.
    Missing(String),
    /// Somebody else has written: status 4. Nothing of what is named was changed.
    Conflict(String),
    /// A write may or may not have been applied: status 5.
    Unknown(String),
    /// Anything else: status 1.
    Other(String),
    /// Whoever read the output has gone: nothing to say.
    Unheard,
}

/// Does it, and tells by the exit status what came of it.
pub(crate) fn run(command: &StateCommand) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return told(Failure::Other(format!("cannot start a runtime: {error}"))),
    };
    let done = runtime.block_on(async {
        match &command.action {
            Action::Get(get) => get.run().await,
            Action::Put(put) => put.run().await,
            Action::Delete(delete) => delete.run().await,
            Action::List(list) => list.run().await,
            Action::Log(log) => log.run().await,
            Action::Namespaces(namespaces) => namespaces.run().await,
            Action::Export(export) => export.run().await,
            Action::Import(import) => import.run().await,
        }
    });
    done.map_or_else(told, |()| ExitCode::SUCCESS)
}

fn told(failure: Failure) -> ExitCode {
    let (status, message) = match failure {
        Failure::Unheard => return ExitCode::SUCCESS,
        Failure::Other(message) => (1, message),
        Failure::Missing(message) => (3, message),
        Failure::Conflict(message) => (4, message),
        Failure::Unknown(message) => (5, message),
    };
    eprintln!("greenroom state: {message}");
    ExitCode::from(status)
}

impl Location {
    /// Opens a store that is there; a file is not made.
    async fn open(&self) -> Result<Opened, Failure> {
        if let Ok(StoreUrl::Sqlite { path }) = self.store.parse()
            && !path.exists()
        {
            let path = path.display();
            return Err(Failure::Other(format!("there is no file {path}; name the store that the nodes use")));
        }
        self.open_or_create().await
    }

    /// Opens a store, and makes the file of one that is a file.
    async fn open_or_create(&self) -> Result<Opened, Failure> {
        let opened = greenroom_stores::open(&self.store).await?;
        if !opened.shared {
            let message = "memory: would be gone when this command ends; name the store that the nodes use";
            return Err(Failure::Other(message.to_owned()));
        }
        Ok(Opened { store: opened.store, journal: opened.journal, timeout: Duration::from_secs(self.timeout) })
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Conflict { .. } => Self::Conflict(message),
            StoreError::Unknown { .. } => Self::Unknown(message),
            _ => Self::Other(message),
        }
    }
}

/// A failure to write the output.
fn unwritten(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Unheard,
        _ => Failure::Other(crate::output::unwritten(&error)),
    }
}

/// Prints a line.
fn say(line: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(unwritten)
}
