//! What a node opens and checks before it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::membership::{self, LeaseTimes};
use greenroom_protocols::names::near_names;
#[cfg(feature = "tls")]
use greenroom_security::access::Access;
use greenroom_security::files::NodeTls;
use greenroom_security::link::Links;
use greenroom_store::Store;
use greenroom_store::url::redact;
use greenroom_world::{Listener, World};

use super::Result;
use super::config::{Config, host_of};
use super::error::Error;
use super::security;
use super::settings::{check_settings, is_host_and_port};
use crate::actor::interface::Options;
use crate::actor::key::{CLUSTER_LEN_MAX, KIND_LEN_MAX, check_within};
use crate::cluster;
use crate::geo::reliable_kinds::check_reliable_kinds;
use crate::geo::{AcceptedList, Clusters, Geo, Listing};
use crate::here::kinds::Kinds;
use crate::here::stores::{StateStore, Stores, open_store};
use crate::shard::ShardPort;
use crate::state::namespace::{Namespace, check_namespace};
use crate::versioned::protocols::LOG;
use crate::versioned::registry::Registry;

/// How a node takes part in its cluster.
pub(super) fn membership_config(config: &Config) -> Result<membership::Config> {
    let lease = config.lease;
    if !(LEASE_MIN..=LEASE_MAX).contains(&lease) {
        return Err(Error::Lease { lease });
    }
    Ok(membership::Config {
        lease: Some(LeaseTimes::of(lease)),
        store_timeout: lease / 2,
        checks: config.checks,
        ..membership::Config::default()
    })
}

/// Refuses a configuration and kinds that a node does not start with, as far as that can be told without opening anything.
pub(super) fn check_all<'a>(config: &Config, kinds: impl Iterator<Item = (&'a str, &'a Options)>) -> Result<()> {
    check_addresses(config)?;
    check_settings(config)?;
    security::check_exposure(config)?;
    check_dialled(config)?;
    check_cluster(config)?;
    check_namespace(&config.namespace).map_err(|reason| Error::Name {
        what: "namespace",
        name: config.namespace.clone(),
        reason,
    })?;
    membership_config(config)?;
    #[cfg(feature = "tls")]
    Access::check(&config.auth, &config.allow)?;
    if let Some(told) = &config.geo {
        Clusters::given(told, &config.cluster).map_err(|reason| Error::Geo { reason })?;
    }
    check_reliable_kinds(config, kinds).map_err(|reason| Error::Geo { reason })
}

/// Refuses to tell other nodes an address that they cannot dial.
fn check_dialled(config: &Config) -> Result<()> {
    let address = config.advertise.as_ref().unwrap_or(&config.listen);
    if !is_host_and_port(address) {
        let reason = format!(
            "{address:?} is no HOST:PORT that other nodes can dial; port 0 stands for the one that the system chooses"
        );
        return Err(Error::Config { path: "advertise".to_owned(), reason });
    }
    match host_of(address).parse::<IpAddr>() {
        Ok(ip) if ip.is_unspecified() => Err(Error::Undialable { address: address.clone() }),
        _ => Ok(()),
    }
}

/// Refuses addresses that are none.
fn check_addresses(config: &Config) -> Result<()> {
    let gateway = config.geo.as_ref().and_then(|geo| geo.gateway.as_ref());
    let doors = [("other nodes", Some(&config.listen)), ("HTTP", config.http.as_ref())];
    let others = [("gRPC", config.grpc.as_ref()), ("other clusters", gateway)];
    for (what, address) in doors.into_iter().chain(others) {
        let Some(address) = address else { continue };
        if !is_host_and_port(address) {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "it is no HOST:PORT, with a port up to 65535");
            return Err(Error::Listen { what, address: address.clone(), error });
        }
    }
    Ok(())
}

/// The node's part in the multi-cluster that its configuration names, and the listener of its gateway.
pub(super) async fn open_geo(
    world: &Arc<dyn World>,
    config: &Config,
    shards: &[ShardPort],
    orders: &cluster::Orders,
    (table, stores): (&Arc<dyn Store>, &Stores),
) -> Result<(Option<Arc<Geo>>, Option<Box<dyn Listener>>)> {
    let Some(told) = &config.geo else { return Ok((None, None)) };
    let mut clusters = Clusters::given(told, &config.cluster).map_err(|reason| Error::Geo { reason })?;
    let mut listing = None;
    if let Some(name) = &told.store {
        let unknown = || Error::Geo { reason: format!("no store is called {name:?}; name it in `stores`") };
        let store = stores.find(name).ok_or_else(unknown)?;
        let found = Listing::new(store.clone(), name, config.store_timeout);
        clusters = found.first(clusters, &config.cluster).await.map_err(|reason| Error::Geo { reason })?;
        listing = Some(found);
    }
    let accepted = AcceptedList::new(table.clone(), &config.cluster, config.store_timeout);
    let (clusters, in_force) = accepted.first(clusters).await.map_err(|reason| Error::Geo { reason })?;
    let links = match (&told.ca, &config.tls) {
        (None, _) => None,
        (Some(ca), Some(tls)) => Some(Links::secure(&NodeTls { ca: ca.clone(), ..tls.clone() }, &config.cluster)?),
        (Some(_), None) => {
            let reason = "`geo.ca` wants a certificate of this node, too; name one in `tls` (--tls-dir)".to_owned();
            return Err(Error::Geo { reason });
        }
    };
    let gateway = match &told.gateway {
        None => None,
        Some(address) => {
            let failed = |error| Error::Listen { what: "other clusters", address: address.clone(), error };
            Some(world.listen(address).await.map_err(failed)?)
        }
    };
    let list = (clusters, in_force, listing, links);
    let geo = Geo::new(told, &config.cluster, list, accepted, world.clone(), shards.to_vec(), orders.clone());
    Ok((Some(geo), gateway))
}

/// The stores that actors keep their states in.
pub(super) async fn open_stores(
    world: &Arc<dyn World>,
    config: &Config,
    table: &StateStore,
    mut stores: BTreeMap<String, StateStore>,
) -> Result<Stores> {
    let named = config.stores.iter().map(|(name, url)| (name.as_str(), url.as_str()));
    for (name, url) in named.chain([("", config.store.as_str())]) {
        if stores.contains_key(name) {
            continue;
        }
        let store = if url.is_empty() || url == config.table {
            table.clone()
        } else {
            let failed = |reason| Error::Store { name: name.to_owned(), url: redact(url), reason };
            open_store(world, url).await.map_err(failed)?.into()
        };
        stores.insert(name.to_owned(), store);
    }
    Ok(Stores::new(stores, Namespace::of(config, true), config.store_timeout))
}

/// Refuses a cluster's name for which stores have no room.
fn check_cluster(config: &Config) -> Result<()> {
    let named = |reason| Error::Name { what: "cluster", name: config.cluster.clone(), reason };
    check_within(&config.cluster, CLUSTER_LEN_MAX).map_err(named)
}

/// Refuses names for which stores have no room, and warns of those that are nearly the name of a kind.
pub(super) fn check_names(kinds: &Kinds, config: &Config) -> Result<()> {
    check_cluster(config)?;
    warn_of_misspelt(config, kinds.options().map(|(kind, _)| kind));
    for kind in kinds.options().map(|(kind, _)| kind) {
        check_within(kind, KIND_LEN_MAX).map_err(|reason| Error::Name {
            what: "actor kind",
            name: kind.to_owned(),
            reason,
        })?;
    }
    Ok(())
}

/// Warns of settings for a kind of which there is none, where there is one with nearly that name. Others may come with a host.
pub(super) fn warn_of_misspelt<'a>(config: &Config, kinds: impl Iterator<Item = &'a str>) {
    for (setting, kind, near) in misspelt(config, kinds.collect()) {
        tracing::warn!(setting, kind, did_you_mean = near, "a setting is for a kind that this program does not have");
    }
}

/// The settings that are for none of the kinds, and for which of them they may be meant.
fn misspelt(config: &Config, kinds: BTreeSet<&str>) -> Vec<(&'static str, String, String)> {
    let named = config.kinds.keys().map(|kind| ("kinds", kind));
    let named = named.chain(config.history.keys().map(|kind| ("history", kind)));
    let named = named.chain(config.hide_keys.iter().map(|kind| ("hide_keys", kind)));
    let unknown = named.filter(|(_, kind)| !kinds.contains(kind.as_str()));
    unknown
        .filter_map(|(setting, kind)| {
            let near = near_names(kind, kinds.iter().copied()).into_iter().next()?;
            Some((setting, kind.clone(), near))
        })
        .collect()
}

/// Refuses kinds whose store nobody has named.
pub(super) fn check_stores(kinds: &Kinds, stores: &Stores) -> Result<()> {
    match kinds.stores().find(|(_, store)| stores.find(store).is_none()) {
        Some((kind, store)) => {
            let near = near_names(store, stores.names());
            Err(Error::NoStore { kind, store: store.to_owned(), near })
        }
        None => Ok(()),
    }
}

/// Enters the node's namespace in the stores that its kinds keep states in, and refuses those that have no place for it. A store that
/// does not answer is asked again for as long as a node may take to join.
pub(super) async fn enter_namespaces(
    world: &Arc<dyn World>,
    kinds: &Kinds,
    stores: &Stores,
    config: &Config,
) -> Result<()> {
    let until = world.now() + ENTERED_WITHIN;
    for name in kinds.stores_of_states() {
        while let Err(error) = stores.enter(name).await {
            if error.is_final() || world.now() >= until {
                let url = config.stores.get(name).unwrap_or(&config.store);
                let url = if url.is_empty() { &config.table } else { url };
                return Err(Error::Store { name: name.to_owned(), url: redact(url), reason: error.to_string() });
            }
            world.sleep_until(world.now() + ENTER_AGAIN_AFTER).await;
        }
    }
    Ok(())
}

/// Refuses kinds whose protocol nobody knows, or cannot work in their store.
pub(super) fn check_protocols(kinds: &Kinds, config: &Config, stores: &Stores, known: &Registry) -> Result<()> {
    for (kind, options) in kinds.options() {
        let protocol = config.protocol_of(kind, options.protocol);
        if !known.names().any(|name| name == protocol) {
            let near = near_names(&protocol, known.names());
            return Err(Error::NoProtocol { kind, protocol, near });
        }
        if protocol == LOG && stores.journal(options.store).is_none() {
            return Err(Error::NoLogs { kind, store: options.store });
        }
    }
    Ok(())
}

/// A shorter lease would not outlast the ordinary hiccups of a machine.
const LEASE_MIN: Duration = Duration::from_secs(1);

/// Time for a store to answer when a node enters its namespace.
const ENTERED_WITHIN: Duration = Duration::from_secs(30);

/// Time between two attempts to enter it.
const ENTER_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// So long do the actors of a node that died wait.
const LEASE_MAX: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::config::KindConfig;

    #[test]
    fn settings_for_kinds_that_are_nearly_there_are_told_and_those_that_may_come_are_not() {
        let mut config = Config::default();
        for kind in ["chat_rom", "chat_room", "sensor"] {
            config.kinds.insert(kind.to_owned(), KindConfig::default());
        }
        config.hide_keys = vec!["acount".to_owned()];
        let told = misspelt(&config, BTreeSet::from(["chat_room", "account"]));
        let told: Vec<_> = told.iter().map(|(setting, kind, near)| (*setting, &**kind, &**near)).collect();
        assert_eq!(told, [("kinds", "chat_rom", "chat_room"), ("hide_keys", "acount", "account")]);
    }
}
