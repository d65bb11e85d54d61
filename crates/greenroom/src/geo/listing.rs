//! The list of clusters in a store that all of them reach: any node changes it there, with one conditional write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_store::{Store, StoreError, Version, Versioned};
use greenroom_wire::codec::{self, Codec};
use serde::{Deserialize, Serialize};

use super::clusters::ListedBefore;
use super::config::GeoCluster;
use super::{Clusters, Geo};
use crate::here::Here;

/// The store that the list is in.
pub(crate) struct Listing {
    store: Arc<dyn Store>,
    /// What people call it.
    name: String,
    timeout: Duration,
}

/// A list as a store has it.
#[derive(Clone)]
pub(super) struct Stored {
    /// The list.
    pub(super) list: Clusters,
    /// True if it is known to be in force.
    pub(super) in_force: bool,
}

/// The list as it is stored.
#[derive(Serialize, Deserialize)]
struct Record {
    epoch: u64,
    clusters: BTreeMap<String, Listed>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    joining: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    lost: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<ListedBefore>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    vouched: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    in_force: bool,
}

#[derive(Serialize, Deserialize)]
struct Listed {
    gateways: Vec<String>,
    #[serde(default)]
    draining: bool,
}

/// Why a list was not written.
pub(super) enum Unwritten {
    /// Another one is there by now.
    Overtaken,
    /// What the store said.
    Failed(String),
}

impl Listing {
    pub(crate) fn new(store: Arc<dyn Store>, name: &str, timeout: Duration) -> Self {
        Self { store, name: name.to_owned(), timeout }
    }

    /// The list, and the version to replace it by; `None` if there is none yet.
    ///
    /// # Errors
    /// What the store said, and what helps.
    pub(crate) async fn read(&self) -> Result<Option<(Clusters, Version)>, String> {
        let found = self.store.read(KEY, self.timeout).await.map_err(|error| self.failed(&error))?;
        let Some(Versioned { value, version }) = found else { return Ok(None) };
        let Stored { list, .. } = decoded(&value).map_err(|error| {
            format!("what store {:?} has under {KEY:?} is no list of clusters ({error}); put it right there", self.name)
        })?;
        list.check().map_err(|why| format!("the list of clusters in store {:?} cannot be used: {why}", self.name))?;
        Ok(Some((list, version)))
    }

    /// Puts a list in the place of the one that has this version, or where none is.
    pub(super) async fn write(&self, list: &Clusters, expected: Option<&Version>) -> Result<(), Unwritten> {
        let value = encoded(list, false).map_err(Unwritten::Failed)?;
        let written = match expected {
            None => self.store.create(KEY, value, self.timeout).await,
            Some(version) => self.store.replace(KEY, value, version, self.timeout).await,
        };
        match written {
            Ok(_) => Ok(()),
            Err(StoreError::Conflict { .. }) => Err(Unwritten::Overtaken),
            Err(error) => Err(Unwritten::Failed(self.failed(&error))),
        }
    }

    fn failed(&self, error: &StoreError) -> String {
        format!("the list of clusters in store {:?} is not reached: {error}", self.name)
    }

    /// The list to start with, for a node of the cluster `me` that is told `given`.
    ///
    /// # Errors
    /// What is wrong, and what helps.
    pub(crate) async fn first(&self, given: Clusters, me: &str) -> Result<Clusters, String> {
        let list = match self.read().await {
            Ok(Some((stored, _))) if stored.epoch >= given.epoch => stored,
            Ok(stored) => {
                let version = stored.map(|(_, version)| version);
                if !given.clusters.is_empty()
                    && let Err(Unwritten::Failed(why)) = self.write(&given, version.as_ref()).await
                {
                    tracing::warn!(why, "the list of clusters is not put into its store yet");
                }
                given
            }
            Err(why) if given.clusters.is_empty() => return Err(why),
            Err(why) => {
                tracing::warn!(why, "the node begins with the list of clusters that it is configured with");
                given
            }
        };
        match list.clusters.contains_key(me) {
            true => Ok(list),
            false => Err(format!(
                "cluster {me:?} is not in the list of clusters (epoch {}) in store {:?}; have a node of a listed cluster add it: \
                 `greenroom clusters add {me} HOST:PORT`",
                list.epoch, self.name
            )),
        }
    }
}

impl Geo {
    /// Takes in the list that is in the store, or puts this node's there if that is newer.
    pub(super) async fn look_at_listing(self: &Arc<Self>, node: &Here) {
        let Some(listing) = &self.listing else { return };
        let asked = self.world.now();
        let trouble = match listing.read().await {
            Ok(stored) => {
                let own = self.clusters();
                let version = stored.as_ref().map(|(_, version)| version);
                match &stored {
                    Some((list, _)) if list.epoch >= own.epoch => {
                        if list.clusters.contains_key(self.name()) && !list.lost.contains(self.name()) {
                            self.read_listing(node, asked, list.epoch);
                        }
                        self.hear(node, list.clone(), false);
                        None
                    }
                    // Whoever was faster has put the same there, or a newer one.
                    _ => match listing.write(&own, version).await {
                        Ok(()) | Err(Unwritten::Overtaken) => None,
                        Err(Unwritten::Failed(why)) => Some(why),
                    },
                }
            }
            Err(why) => Some(why),
        };
        let mut known = self.listing_trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if trouble.is_some() && *known != trouble {
            tracing::warn!(why = trouble.as_deref(), "the list of clusters in its store is not looked at");
        }
        *known = trouble;
    }
}

/// A list as it is stored.
///
/// # Errors
/// It cannot be written.
pub(super) fn encoded(list: &Clusters, in_force: bool) -> Result<Bytes, String> {
    let listed = |cluster: &GeoCluster| Listed { gateways: cluster.gateways.clone(), draining: cluster.draining };
    let clusters = list.clusters.iter().map(|(name, cluster)| (name.clone(), listed(cluster))).collect();
    let mut out = BytesMut::new();
    let (joining, lost) = (list.joining.clone(), list.lost.clone());
    let (before, vouched) = (list.before.clone(), list.vouched.clone());
    let record = Record { epoch: list.epoch, clusters, joining, lost, before, vouched, in_force };
    codec::encode(Codec::Json, FORMAT_VERSION, &record, &mut out).map_err(|error| error.to_string())?;
    Ok(out.freeze())
}

/// A list that is stored.
///
/// # Errors
/// The value is none.
pub(super) fn decoded(value: &Bytes) -> Result<Stored, String> {
    let record: Record = codec::decode(value).map_err(|error| error.to_string())?;
    let cluster = |listed: Listed| GeoCluster { gateways: listed.gateways, draining: listed.draining };
    let clusters = record.clusters.into_iter().map(|(name, listed)| (name, cluster(listed))).collect();
    let Record { epoch, joining, lost, before, vouched, in_force, .. } = record;
    Ok(Stored { list: Clusters { epoch, clusters, joining, lost, before, vouched }, in_force })
}

/// Where the list is in its store.
const KEY: &str = "greenroom/clusters";
/// Version of the stored list.
const FORMAT_VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_lists_keep_their_form() {
        let cluster = GeoCluster { gateways: vec!["eu.example:7300".into()], draining: true };
        let clusters = BTreeMap::from([("eu".to_owned(), cluster)]);
        let list = Clusters { epoch: 7, clusters, ..Clusters::default() };
        let golden =
            b"\x02\x01{\"epoch\":7,\"clusters\":{\"eu\":{\"gateways\":[\"eu.example:7300\"],\"draining\":true}}}";
        assert_eq!(encoded(&list, false).unwrap(), Bytes::from_static(golden));
        let list = Clusters { joining: BTreeSet::from(["eu".to_owned()]), ..list };
        let golden = b"\x02\x01{\"epoch\":7,\"clusters\":{\"eu\":{\"gateways\":[\"eu.example:7300\"],\"draining\":true}},\"joining\":[\"eu\"]}";
        assert_eq!(encoded(&list, false).unwrap(), Bytes::from_static(golden));
        let list = Clusters { joining: BTreeSet::new(), lost: BTreeSet::from(["eu".to_owned()]), ..list };
        let golden = b"\x02\x01{\"epoch\":7,\"clusters\":{\"eu\":{\"gateways\":[\"eu.example:7300\"],\"draining\":true}},\"lost\":[\"eu\"]}";
        assert_eq!(encoded(&list, false).unwrap(), Bytes::from_static(golden));
        let before = ListedBefore { epoch: 6, voters: BTreeSet::from(["eu".to_owned()]) };
        let list = Clusters {
            before: Some(before),
            vouched: BTreeSet::from(["us".to_owned()]),
            lost: BTreeSet::new(),
            ..list
        };
        let golden = b"\x02\x01{\"epoch\":7,\"clusters\":{\"eu\":{\"gateways\":[\"eu.example:7300\"],\"draining\":true}},\"before\":{\"epoch\":6,\"voters\":[\"eu\"]},\"vouched\":[\"us\"],\"in_force\":true}";
        let written = encoded(&list, true).unwrap();
        assert_eq!(written, Bytes::from_static(golden));
        let read = decoded(&written).expect("it is one");
        assert_eq!((read.list, read.in_force), (list, true));
        let newer = br#"{"epoch":8,"clusters":{"eu":{"gateways":[],"weight":3}},"by":"ada"}"#;
        let read: Record = codec::decode(&[b"\x02\x02", &newer[..]].concat()).expect("what is new is skipped");
        assert_eq!((read.epoch, read.clusters["eu"].draining), (8, false));
    }
}
