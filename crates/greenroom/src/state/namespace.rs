//! Namespaces: the clusters whose states are in one store do not see each other's.
//!
//! A store that holds states has one record, [`RECORD`], with its [`NamespaceList`]: each namespace's root, which the names of all
//! its states begin with, and the clusters that use it. A node enters its namespace there by a conditional write before it reads or
//! writes a state, or refuses the store. A namespace whose states may be older than the record has the root of that time,
//! `state/`, so that nothing is moved, and nodes of an earlier build go on with the same names (decision 136).

mod list;

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom_store::{Store, StoreError, Versioned};

pub use self::list::{NamespaceEntry, NamespaceList};
use self::list::{PLAIN_ROOT, decode, encode, marked_root};
use crate::actor::key::{CLUSTER_LEN_MAX, check_within};
use crate::node::config::Config;

/// The namespace that a node's states are in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Namespace {
    name: String,
    /// True if the configuration names it, false if it is the default.
    is_configured: bool,
    /// The node's cluster.
    cluster: String,
    /// True if the cluster is one of a multi-cluster.
    is_together: bool,
    /// The clusters of the multi-cluster that the node's configuration lists.
    listed: BTreeSet<String>,
    /// True if nodes of an earlier build may use the store under plain names that it does not show yet.
    may_have_older_nodes: bool,
}

/// The root of a namespace in a store, and the list that must be written there first, if it is not entered yet.
#[derive(PartialEq, Eq, Debug)]
struct Placement {
    root: String,
    unwritten: Option<NamespaceList>,
}

/// Reasons why a node cannot use a store in its namespace.
#[derive(Debug)]
pub(crate) enum NamespaceError {
    /// The store's list has no place for it; the text has the remedy.
    Refused(String),
    /// The store cannot be read or written.
    Store(StoreError),
}

impl NamespaceError {
    /// True if no later attempt helps.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Store(error) => error.is_permanent(),
        }
    }
}

impl std::fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Store(error) => write!(f, "its list of namespaces ({RECORD}): {error}"),
        }
    }
}

impl From<StoreError> for NamespaceError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Namespace {
    /// Returns the namespace of a node: `namespace` of its configuration; or else the cluster's name, and one name for all
    /// clusters of a multi-cluster. `is_cluster_known` says that the cluster's table was there before the node started.
    pub(crate) fn of(config: &Config, is_cluster_known: bool) -> Self {
        let listed: BTreeSet<String> = config.geo.iter().flat_map(|geo| geo.clusters.keys().cloned()).collect();
        let default = if config.geo.is_some() { MULTI_CLUSTER } else { &config.cluster };
        let is_configured = !config.namespace.is_empty();
        Self {
            name: if is_configured { config.namespace.clone() } else { default.to_owned() },
            is_configured,
            cluster: config.cluster.clone(),
            is_together: config.geo.is_some(),
            listed,
            // Another cluster of the system may run an earlier build.
            may_have_older_nodes: is_cluster_known || config.geo.is_some(),
        }
    }

    /// Enters the namespace in the store's list, if it is not there yet, and returns the root of its names.
    ///
    /// # Errors
    /// [`NamespaceError`]; nothing was written if it is [`Refused`](NamespaceError::Refused).
    ///
    /// # Cancel safety
    /// Dropping it may leave the namespace entered, which is as good as done.
    pub(crate) async fn enter(&self, store: &dyn Store, timeout: Duration) -> Result<String, NamespaceError> {
        for _ in 0..TRIES {
            let found = store.read(RECORD, timeout).await?;
            let Placement { root, unwritten } = self.placed(found.as_ref(), store, timeout).await?;
            let Some(list) = unwritten else { return Ok(root) };
            let written = match &found {
                None => store.create(RECORD, encode(&list), timeout).await,
                Some(found) => store.replace(RECORD, encode(&list), &found.version, timeout).await,
            };
            match written {
                Ok(_) => return Ok(root),
                // Another node has written it meanwhile, or this write may be there: the next read shows it.
                Err(StoreError::Conflict { .. } | StoreError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(NamespaceError::Refused(format!("record {RECORD:?} changes all the time; start the node again")))
    }

    /// Returns the root that the namespace has in the store, or would have, and writes nothing.
    ///
    /// # Errors
    /// As for [`enter`](Self::enter).
    pub(crate) async fn look_up(&self, store: &dyn Store, timeout: Duration) -> Result<String, NamespaceError> {
        let found = store.read(RECORD, timeout).await?;
        Ok(self.placed(found.as_ref(), store, timeout).await?.root)
    }

    async fn placed(
        &self,
        found: Option<&Versioned>,
        store: &dyn Store,
        timeout: Duration,
    ) -> Result<Placement, NamespaceError> {
        let list = found.map_or_else(|| Ok(NamespaceList::default()), |found| decode(&found.value));
        let list = list.map_err(NamespaceError::Refused)?;
        let is_open = !list.namespaces.contains_key(&self.name) && list.find_root(PLAIN_ROOT).is_none();
        let may_be_older = is_open && (self.may_have_older_nodes || has_plain_names(store, timeout).await?);
        self.place(list, may_be_older).map_err(NamespaceError::Refused)
    }

    /// Decides the root. `may_be_older` says that states from before the list are there, or may come, and are nobody's yet.
    fn place(&self, mut list: NamespaceList, may_be_older: bool) -> Result<Placement, String> {
        let Self { name, cluster, .. } = self;
        self.check_alone(&list)?;
        if let Some(entry) = list.namespaces.get_mut(name) {
            let root = entry.root.clone();
            if entry.clusters.contains(cluster) {
                return Ok(Placement { root, unwritten: None });
            }
            self.check_shared(entry)?;
            entry.clusters.insert(cluster.clone());
            return Ok(Placement { root, unwritten: Some(list) });
        }
        self.check_chosen(&list)?;
        let root = if may_be_older { PLAIN_ROOT.to_owned() } else { marked_root(name) };
        if let Some(other) = list.find_root(&root) {
            return Err(format!("namespace {other:?} has the names {root}… there; write another `namespace`"));
        }
        let clusters = BTreeSet::from([cluster.clone()]);
        list.namespaces.insert(name.clone(), NamespaceEntry { root: root.clone(), clusters });
        Ok(Placement { root, unwritten: Some(list) })
    }

    /// Refuses a list in which the node's cluster, or another one of its multi-cluster, has another namespace.
    fn check_alone(&self, list: &NamespaceList) -> Result<(), String> {
        let Self { name, cluster, listed, .. } = self;
        for (other, entry) in list.namespaces.iter().filter(|(other, _)| *other != name) {
            if let Some(own) = listed.iter().chain([cluster]).find(|own| entry.clusters.contains(*own)) {
                return Err(format!(
                    "cluster {own:?} keeps its states there in namespace {other:?}, and this node's are in {name:?}; write \
                     `namespace = {other:?}` (--namespace) on all nodes of cluster {cluster:?}, or, while none of them runs, rename \
                     it: `greenroom state namespaces rename {other} {name} --store URL`"
                ));
            }
        }
        Ok(())
    }

    /// Refuses to share the states of other clusters only because their namespace is called as this cluster.
    fn check_shared(&self, entry: &NamespaceEntry) -> Result<(), String> {
        if self.is_configured || self.is_together {
            return Ok(());
        }
        let Self { name, cluster, .. } = self;
        let using = in_words(&entry.clusters);
        Err(format!(
            "namespace {name:?} is that of cluster {using} there; write `namespace = {name:?}` (--namespace) if cluster {cluster:?} is \
             to share its states, or give it another name"
        ))
    }

    /// Refuses a default beside other namespaces: earlier builds showed their states to this cluster too, and nobody has said
    /// whether they are to stay shared.
    fn check_chosen(&self, list: &NamespaceList) -> Result<(), String> {
        let Self { name, cluster, .. } = self;
        if list.namespaces.len() >= NAMESPACES_MAX {
            return Err(format!("{NAMESPACES_MAX} namespaces are there, which is the most; name another store"));
        }
        let Some(one) = list.namespaces.keys().next().filter(|_| !self.is_configured) else { return Ok(()) };
        let shown =
            |(other, entry): (&String, &NamespaceEntry)| format!("{other:?} (cluster {})", in_words(&entry.clusters));
        let others = list.namespaces.iter().map(shown).collect::<Vec<_>>().join(", ");
        Err(format!(
            "states of namespace {others} are there, and none of namespace {name:?}, which is the default of cluster {cluster:?}; write \
             `namespace = {one:?}` (--namespace) to share those states, as earlier builds did, or `namespace = {name:?}` for states of \
             its own in the same store, or name another store"
        ))
    }
}

/// Refuses a namespace for which the names in stores have no room.
///
/// # Errors
/// What is wrong with it, and what helps.
pub(crate) fn check_namespace(name: &str) -> Result<(), String> {
    if name.is_empty() { Ok(()) } else { check_within(name, CLUSTER_LEN_MAX) }
}

/// Reads the namespaces with states in a store; none if no node has entered one yet.
///
/// # Errors
/// The store's error, or that the list cannot be read.
#[doc(hidden)]
pub async fn read_namespaces(store: &dyn Store, timeout: Duration) -> Result<NamespaceList, String> {
    let found = store.read(RECORD, timeout).await.map_err(|error| error.to_string())?;
    found.map_or_else(|| Ok(NamespaceList::default()), |found| decode(&found.value))
}

/// Gives a namespace another name. Its states keep theirs, so the nodes that use it must not run meanwhile.
///
/// # Errors
/// Why it was not renamed. Nothing has changed, unless the text says that nobody knows.
#[doc(hidden)]
pub async fn rename_namespace(store: &dyn Store, old: &str, new: &str, timeout: Duration) -> Result<(), String> {
    check_within(new, CLUSTER_LEN_MAX).map_err(|why| format!("namespace {new:?} cannot be called so: {why}"))?;
    let found = store.read(RECORD, timeout).await.map_err(|error| error.to_string())?;
    let found = found.ok_or_else(|| "no namespace is there".to_owned())?;
    let mut list = decode(&found.value)?;
    if list.namespaces.contains_key(new) {
        return Err(format!("namespace {new:?} is there already; two cannot become one"));
    }
    let Some(entry) = list.namespaces.remove(old) else {
        let known = list.namespaces.keys().map(|known| format!("{known:?}")).collect::<Vec<_>>().join(", ");
        return Err(format!("there is no namespace {old:?}; there are: {known}"));
    };
    list.namespaces.insert(new.to_owned(), entry);
    store.replace(RECORD, encode(&list), &found.version, timeout).await.map(|_| ()).map_err(|error| error.to_string())
}

/// Returns true if the store has states under names without a namespace.
async fn has_plain_names(store: &dyn Store, timeout: Duration) -> Result<bool, StoreError> {
    let first = store.scan(PLAIN_ROOT, None, 1, timeout).await?;
    match first.items.first() {
        Some(item) if item.key.starts_with(MARKED) => {
            // Those of namespaces lie together.
            Ok(!store.scan(PLAIN_ROOT, Some(MARKED_END), 1, timeout).await?.items.is_empty())
        }
        found => Ok(found.is_some()),
    }
}

fn in_words(clusters: &BTreeSet<String>) -> String {
    clusters.iter().map(|cluster| format!("{cluster:?}")).collect::<Vec<_>>().join(", ")
}

/// The record with the list, in each store that holds states.
const RECORD: &str = "greenroom/namespaces";
/// The default namespace of a multi-cluster.
const MULTI_CLUSTER: &str = "multi-cluster";
/// The beginning of names with a namespace: no kind is called so.
const MARKED: &str = "state/@";
/// A key behind all of those.
const MARKED_END: &str = "state/@\u{10ffff}";
/// Namespaces of one store.
const NAMESPACES_MAX: usize = 1024;
/// Attempts to enter a namespace while others write the list.
const TRIES: usize = 16;

#[cfg(test)]
mod tests;
