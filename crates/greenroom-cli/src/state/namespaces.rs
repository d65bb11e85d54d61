//! The namespaces of the states in a store: listed, and renamed.

use clap::{Args, Subcommand};
use greenroom::state::{read_namespaces, rename_namespace};

use super::{Failure, Location, Opened, keys, say};

/// What to do with a store's namespaces.
#[derive(Args)]
pub(super) struct Namespaces {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List namespaces, what the names of their states begin with, and the clusters that have used them
    List {
        #[command(flatten)]
        location: Location,
    },
    /// Give a namespace another name, while no node uses it; the names of its states stay as they are
    Rename {
        /// Its name
        old: String,
        /// Its name from now on, which no other one has
        new: String,
        #[command(flatten)]
        location: Location,
    },
}

impl Namespaces {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        match &self.action {
            Action::List { location } => {
                let Opened { store, timeout, .. } = location.open().await?;
                let list = read_namespaces(&*store, timeout).await.map_err(Failure::Other)?;
                list.namespaces.iter().try_for_each(|(name, entry)| {
                    let clusters: Vec<_> = entry.clusters.iter().map(|cluster| keys::shown(cluster)).collect();
                    say(format_args!("{}\t{}\t{}", keys::shown(name), keys::shown(&entry.root), clusters.join(",")))
                })
            }
            Action::Rename { old, new, location } => {
                let Opened { store, timeout, .. } = location.open().await?;
                rename_namespace(&*store, old, new, timeout).await.map_err(Failure::Other)
            }
        }
    }
}

/// The full name of a state that is given as `list` shows it, or as KIND/FIELD/KEY with or without `state/` before it. Then it is in
/// the one namespace of the store, if there are not several.
pub(super) async fn full_name(opened: &Opened, state: &str) -> Result<String, Failure> {
    if state.starts_with("state/@") {
        return Ok(state.to_owned());
    }
    let list = read_namespaces(&*opened.store, opened.timeout).await.map_err(Failure::Other)?;
    let roots: Vec<&str> = list.namespaces.values().map(|entry| entry.root.as_str()).collect();
    if state.starts_with("state/") && roots.contains(&"state/") {
        return Ok(state.to_owned());
    }
    let state = state.strip_prefix("state/").unwrap_or(state);
    match roots[..] {
        [] => Ok(format!("state/{state}")),
        [root] => Ok(format!("{root}{state}")),
        [root, ..] => Err(Failure::Other(format!(
            "this store has states of several namespaces; write the full name, such as {root}{state}: `greenroom state namespaces list` \
             shows what the names begin with"
        ))),
    }
}
