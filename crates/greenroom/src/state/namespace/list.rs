//! The list of a store's namespaces as it is stored: a promise to stores, with golden bytes in the tests.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec};
use serde::{Deserialize, Serialize};

/// The namespaces with states in a store, by their names.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NamespaceList {
    /// By their names.
    pub namespaces: BTreeMap<String, NamespaceEntry>,
}

/// One namespace of a store.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NamespaceEntry {
    /// The beginning of the names of all its states.
    pub root: String,
    /// The clusters that have used it.
    #[serde(default)]
    pub clusters: BTreeSet<String>,
}

impl NamespaceList {
    /// The namespace that has this root.
    pub(super) fn find_root(&self, root: &str) -> Option<&str> {
        self.namespaces.iter().find(|(_, entry)| entry.root == root).map(|(name, _)| name.as_str())
    }
}

/// The root of a namespace whose names carry it: no slash of the namespace is left, so that none begins with another's.
pub(super) fn marked_root(name: &str) -> String {
    format!("{PLAIN_ROOT}@{}/", name.replace('%', "%25").replace('/', "%2F"))
}

pub(super) fn encode(list: &NamespaceList) -> Bytes {
    let mut out = BytesMut::new();
    codec::encode(Codec::Json, FORMAT_VERSION, list, &mut out).expect("names are written as JSON");
    out.freeze()
}

/// Reads a list, and refuses one that no node has written.
pub(super) fn decode(value: &[u8]) -> Result<NamespaceList, String> {
    let list: NamespaceList = codec::decode(value).map_err(|error| {
        format!("what is under \"greenroom/namespaces\" is no list of namespaces ({error}); put it back from a backup")
    })?;
    let is_root = |root: &str| root.starts_with(PLAIN_ROOT) && root.ends_with('/') && root.len() <= ROOT_LEN_MAX;
    match list.namespaces.iter().find(|(_, entry)| !is_root(&entry.root)) {
        None => Ok(list),
        Some((name, entry)) => Err(format!(
            "namespace {name:?} under \"greenroom/namespaces\" has the root {:?}, which is none; put the record back from a backup",
            entry.root
        )),
    }
}

/// The root of states that carry no namespace.
pub(super) const PLAIN_ROOT: &str = "state/";
/// Longest root in bytes: a namespace is as long as a cluster's name at most.
const ROOT_LEN_MAX: usize = 128;
/// Version of the stored list.
const FORMAT_VERSION: u8 = 1;
