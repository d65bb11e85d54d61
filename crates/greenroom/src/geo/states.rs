//! Letters of versioned states: to the one activation of their actor in another cluster, whichever node has it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::adaptive::Mode;
use greenroom_protocols::gsi::{ClusterId, Standing};
use greenroom_wire::EncodeError;
use greenroom_wire::codec::{self, Codec, DecodeError};
use greenroom_world::Stage;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::clusters::id_of;
use super::config::GeoConfig;
use super::mesh::{Mail, Peer};
use super::{Geo, adaptive};
use crate::actor::key::{ActorId, Kind, check, stable_hash};
use crate::actor::reply::{ReplyForm, WireReply};
use crate::cluster::directory::{Entry, Whereabouts};
use crate::here::Here;
use crate::here::kinds::Kinds;
use crate::here::stores::Stores;
use crate::node::config::{Config, KindConfig};
use crate::pids::key::is_reserved;
use crate::shard::baggage::Baggage;
use crate::shard::chain::{Chain, Link};
use crate::shard::raw::{Journey, RawCall};
use crate::shard::submit::refuse_reply;
use crate::shard::{Item, Shard};
use crate::versioned::elsewhere::{Around, Delivery, Elsewhere, Letter};

/// A letter on its way, as it is on the wire.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StateLetter {
    pub(super) kind: String,
    pub(super) key: String,
    field: String,
    /// The cluster that sends it.
    pub(super) from: ClusterId,
    /// Nodes of the receiving cluster that have passed it on.
    pub(super) hops: u8,
    sort: Sort,
    #[serde(with = "serde_bytes")]
    pub(super) message: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Sort {
    IfActive,
    Asks,
    Wakes,
    /// It comes back: the other cluster has no instance.
    Undelivered,
}

impl StateLetter {
    fn new(from: ClusterId, letter: Letter) -> Self {
        let sort = match letter.delivery {
            Delivery::IfActive => Sort::IfActive,
            Delivery::Asks => Sort::Asks,
            Delivery::Wakes => Sort::Wakes,
        };
        let Letter { kind, key, field, message, .. } = letter;
        Self { kind, key, field, from, hops: 0, sort, message }
    }

    /// A word about an adaptive actor: no field is called as it is.
    pub(super) fn of_word(from: ClusterId, id: &ActorId, message: Vec<u8>) -> Self {
        let (kind, key) = (id.kind.name().to_owned(), id.key.as_str().to_owned());
        Self { kind, key, field: String::new(), from, hops: 0, sort: Sort::IfActive, message }
    }

    /// The same, for another node of its cluster.
    pub(super) fn passed_on(&self) -> Self {
        Self { hops: self.hops + 1, ..self.clone() }
    }

    /// A word that answers it.
    pub(super) fn answered(&self, from: ClusterId, message: Vec<u8>) -> Self {
        Self { from, hops: 0, message, ..self.clone() }
    }

    fn encode(&self) -> Result<Bytes, EncodeError> {
        let mut out = BytesMut::with_capacity(self.message.len() + 128);
        codec::encode(Codec::MessagePack, FORMAT_VERSION, self, &mut out)?;
        Ok(out.freeze())
    }

    /// Reads one.
    ///
    /// # Errors
    /// The sender is at fault.
    pub(super) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(payload)
    }

    /// As the instances know it.
    fn opened(&mut self) -> Letter {
        let (kind, key, field) = (self.kind.clone(), self.key.clone(), self.field.clone());
        Letter { kind, key, field, delivery: Delivery::IfActive, message: std::mem::take(&mut self.message) }
    }

    pub(super) fn is_sound(&self) -> bool {
        check(&self.key).is_ok() && !is_reserved(&self.key) && self.field.len() <= FIELD_LEN_MAX
    }
}

/// The links of a node's versioned states to other clusters.
pub(crate) struct States {
    geo: Arc<Geo>,
    kinds: BTreeMap<&'static str, Said>,
}

/// What is said of a kind.
struct Said {
    leader: Option<ClusterId>,
    near: Option<ClusterId>,
}

impl States {
    pub(crate) fn new(geo: Arc<Geo>, told: &GeoConfig, said: &BTreeMap<String, KindConfig>, kinds: &Kinds) -> Self {
        let kinds = kinds.options().map(|(kind, options)| {
            let leader = leader(said.get(kind), options.leader).map(id_of);
            (kind, Said { leader, near: told.stores.get(shown(options.store)).map(|cluster| id_of(cluster)) })
        });
        Self { kinds: kinds.collect(), geo }
    }
}

impl Elsewhere for States {
    fn around(&self, kind: &str, key: &str) -> Around {
        let here = self.geo.me();
        let list = self.geo.clusters().configuration();
        let others = || list.clusters.keys().copied().filter(|id| *id != here).collect();
        let known = Kind::known(kind);
        let mode = known.filter(|kind| self.geo.is_adaptive(*kind));
        let mode = mode.map(|kind| self.geo.mode(&Entry::new(ActorId::unchecked(kind, key))));
        match mode {
            // It is about to end, and whatever the one instance writes meanwhile, that writes for it, too.
            Some(Mode::Single { home: Some(home) }) if home != here => {
                return Around { here, others: others(), leader: home, near: Some(home) };
            }
            None if known.is_some_and(|kind| !self.geo.is_single(kind)) => {}
            Some(Mode::PerCluster) => {}
            Some(Mode::Single { .. }) | None => return Around { here, leader: here, ..Around::default() },
        }
        let said = self.kinds.get(kind);
        let is_full = |id: &ClusterId| list.clusters.get(id) == Some(&Standing::Full);
        let found = || list.clusters.keys().copied().filter(is_full).max_by_key(|id| (claim(kind, key, *id), *id));
        let leader = said.and_then(|said| said.leader).filter(is_full).or_else(found).unwrap_or(here);
        Around { here, others: others(), leader, near: said.and_then(|said| said.near).filter(is_full) }
    }

    fn apart(&self) -> Vec<ClusterId> {
        let here = self.geo.me();
        self.geo.clusters().configuration().clusters.keys().copied().filter(|id| *id != here).collect()
    }

    fn counts(&self, kind: &str) -> bool {
        Kind::known(kind).is_some_and(|kind| self.geo.is_adaptive(kind))
    }

    fn lost(&self, state: &str, updates: usize) {
        self.geo.counts().updates_lost(state, updates);
    }

    fn send(&self, to: ClusterId, letter: Letter) {
        self.geo.post_state(Peer::Cluster(to), &StateLetter::new(self.geo.me(), letter));
    }
}

impl Geo {
    pub(super) fn post_state(&self, to: Peer, letter: &StateLetter) {
        let Ok(bytes) = letter.encode() else {
            return tracing::error!("a letter of a versioned state cannot be written");
        };
        if bytes.len() > super::LETTER_ROOM {
            let (kind, key, bytes) = (&letter.kind, &letter.key, bytes.len());
            return tracing::warn!(kind, key, bytes, "a versioned state is too large to be sent to other clusters");
        }
        if let Some(mesh) = self.mesh.get()
            && !mesh.send(to, Mail::State(bytes))
        {
            self.counts.dropped();
        }
    }

    /// Takes in a letter: for the instance here, or the node that has it.
    pub(super) fn receive_state(self: &Arc<Self>, node: &Arc<Here>, mut letter: StateLetter) {
        if letter.field.is_empty() {
            return self.receive_word(node, letter);
        }
        let hosted =
            |kind: &Kind| node.view().hosts(*kind).is_some() && node.kinds().check_external(kind.name()).is_ok();
        let kind = Kind::known(&letter.kind).filter(hosted);
        let (Some(kind), true) = (kind, letter.is_sound()) else { return self.bring_back(letter) };
        let single = self.is_single(kind) && !self.is_adaptive(kind);
        // The one instance is told what a second one has that does not stay, and nothing else.
        let yielded = || {
            let own = node.kinds().find(kind).map_or("", |known| known.options().protocol);
            letter.sort != Sort::Wakes && node.protocol_of(kind.name(), own) == VOLATILE
        };
        if single && !yielded() || node.kinds().workers(kind) > 0 || node.is_reliable_kind(kind) {
            return self.bring_back(letter);
        }
        let (post, opened) = (node.versioned().post(), letter.opened());
        let here = match letter.sort {
            Sort::Undelivered => post.undelivered(letter.from, &opened),
            _ => post.deliver(letter.from, &opened),
        };
        let Some(directory) = node.directory().filter(|_| !here) else { return };
        letter.message = opened.message;
        let key = Entry::new(ActorId::unchecked(kind, letter.key.as_str()));
        match directory.whereabouts(self.world.now(), &key) {
            Whereabouts::There(to) if letter.hops < HOPS_MAX => {
                letter.hops += 1;
                self.post_state(Peer::Node(to), &letter);
            }
            // It is being activated.
            Whereabouts::Here { .. } if letter.sort == Sort::Wakes => {
                let from = letter.from;
                post.hold(self.world.now(), from, &letter.opened());
            }
            Whereabouts::NotActive if letter.sort == Sort::Wakes && letter.hops < HOPS_MAX => {
                self.wake(node, key, letter)
            }
            Whereabouts::NotActive | Whereabouts::Here { .. } => self.bring_back(letter),
            Whereabouts::There(_) | Whereabouts::Unknown => {
                tracing::debug!(kind = letter.kind, key = letter.key, "a letter of a versioned state is lost");
            }
        }
    }

    /// Tells the sender that there is no instance here, if it asked that.
    fn bring_back(&self, letter: StateLetter) {
        if letter.sort == Sort::Asks {
            let back = StateLetter { from: self.me, hops: 0, sort: Sort::Undelivered, message: Vec::new(), ..letter };
            self.post_state(Peer::Cluster(letter.from), &back);
        }
    }

    /// Activates the actor, then brings it the letter.
    fn wake(self: &Arc<Self>, node: &Arc<Here>, key: Entry, mut letter: StateLetter) {
        letter.hops += 1;
        let (sender, receiver) = oneshot::channel();
        let port = &self.shards[stable_hash(key.kind().name(), key.key()) as usize % self.shards.len()];
        let wake =
            move |shard: &Shard| shard.wake_for_cluster(&key.id(), WireReply::gateway(sender, 0, ReplyForm::PLAIN));
        if port.push(Item::Run(Box::new(wake))).is_err() {
            return;
        }
        let (geo, node, until) = (self.clone(), node.clone(), self.world.now() + WAKE_FOR);
        let bring = async move {
            tokio::select! {
                biased;
                // However it ends, it is awake, or the letter is lost.
                _ = receiver => geo.receive_state(&node, letter),
                () = geo.world.sleep_until(until) => {}
            }
        };
        self.world.spawn(Stage::Control, Box::pin(bring));
    }
}

impl Shard {
    /// Activates an actor for a letter of another cluster. It has no method for that, and answers so once it is there.
    #[cold]
    fn wake_for_cluster(&self, id: &ActorId, reply: WireReply) {
        let node = &self.port().node;
        let route = match node.kinds().external_route(id.kind.name(), "") {
            Ok(route) => Arc::new(route),
            Err(refusal) => return refuse_reply(reply, refusal),
        };
        let version = route.offer.map(|offer| offer.version);
        let baggage = version.map(|_| Arc::new(Baggage { version, ..Baggage::default() }));
        let journey = Journey::begins_at(node);
        self.submit_raw(RawCall {
            key: &id.key,
            route: &route,
            payload: &[],
            reply,
            deadline: self.now() + WAKE_FOR,
            chain: Chain { link: Link::None, baggage },
            journey,
            sender: None,
        });
    }
}

/// Refuses what is said of kinds that cannot be had.
///
/// # Errors
/// What is wrong, and what helps.
pub(crate) fn check_kinds(kinds: &Kinds, config: &Config, stores: &Stores) -> Result<(), String> {
    adaptive::check_kinds(kinds, config)?;
    let Some(geo) = &config.geo else {
        let led = config.kinds.iter().find_map(|(kind, said)| Some((kind, said.leader.as_ref()?)));
        return led.map_or(Ok(()), |(kind, leader)| {
            Err(format!(
                "`kinds.{kind}.leader` names the cluster {leader:?}, and this node is in no multi-cluster; leave it out, or list \
                 the clusters under `geo.clusters`"
            ))
        });
    };
    let listed = |what: String, name: &str| match geo.clusters.contains_key(name) {
        true => Ok(()),
        false => {
            let names: Vec<&str> = geo.clusters.keys().map(String::as_str).collect();
            Err(format!(
                "{what} names the cluster {name:?}, which `geo.clusters` does not list (it lists {}); correct the name, or add \
                 the cluster there",
                names.join(", ")
            ))
        }
    };
    for (kind, options) in kinds.options() {
        let said = config.kinds.get(kind);
        let Some(name) = leader(said, options.leader) else { continue };
        listed(format!("the leader of actor kind {kind:?}"), name)?;
        let protocol = config.protocol_of(kind, options.protocol);
        if said.is_some_and(|said| said.leader.is_some()) && LEADERLESS.contains(&protocol.as_str()) {
            return Err(format!(
                "`kinds.{kind}.leader` names a leader, and protocol {protocol:?} has none: all its instances write to the store; \
                 leave it out, or say protocol = \"vlb\""
            ));
        }
    }
    for (store, cluster) in &geo.stores {
        listed(format!("`geo.stores.{store}`"), cluster)?;
        if store != DEFAULT_STORE && stores.find(store).is_none() {
            return Err(format!(
                "`geo.stores` names the store {store:?}, which this node has not; name it under `stores`, or correct the name \
                 (`{DEFAULT_STORE}` is the one without a name)"
            ));
        }
    }
    Ok(())
}

/// The cluster that leads, as the configuration or the kind says.
fn leader<'a>(said: Option<&'a KindConfig>, own: &'static str) -> Option<&'a str> {
    let own = (!own.is_empty()).then_some(own);
    said.and_then(|said| said.leader.as_deref()).or(own)
}

/// A cluster's claim to lead an actor: the highest one does (rendezvous hashing).
pub(super) fn claim(kind: &str, key: &str, cluster: ClusterId) -> u64 {
    // SplitMix64 (Steele, Lea, Flood, OOPSLA '14).
    let seed = stable_hash(kind, key) ^ u64::from(cluster.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

pub(super) fn shown(store: &str) -> &str {
    if store.is_empty() { DEFAULT_STORE } else { store }
}

/// What configurations call the store without a name.
const DEFAULT_STORE: &str = "default";
/// Protocols in the box that have no leader.
const LEADERLESS: [&str; 2] = ["bcas", "log"];
/// The protocol in the box that has one.
const VOLATILE: &str = "vlb";
/// Bytes of a field's name.
const FIELD_LEN_MAX: usize = 256;
/// Nodes of one cluster that may pass a letter on.
const HOPS_MAX: u8 = 4;
/// Time that an activation for a letter may take.
const WAKE_FOR: Duration = Duration::from_secs(10);
/// Version of these letters.
const FORMAT_VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn letter() -> StateLetter {
        let letter = Letter {
            kind: "counter".to_owned(),
            key: "hits".to_owned(),
            field: "state".to_owned(),
            delivery: Delivery::Wakes,
            message: vec![1, 2, 3],
        };
        StateLetter::new(ClusterId(9), letter)
    }

    #[test]
    fn letters_keep_their_form() {
        let bytes = letter().encode().unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), GOLDEN.escape_ascii().to_string());
        let read = StateLetter::decode(GOLDEN).unwrap();
        assert_eq!((read.from, read.sort, read.message), (ClusterId(9), Sort::Wakes, vec![1, 2, 3]));
        for end in 0..GOLDEN.len() {
            assert!(StateLetter::decode(&GOLDEN[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn letters_to_what_cannot_be_an_actors_state_are_not_sound() {
        let with = |key: &str, field: &str| StateLetter { key: key.to_owned(), field: field.to_owned(), ..letter() };
        assert!(letter().is_sound());
        let long = "x".repeat(crate::actor::key::KEY_LEN_MAX + 1);
        for unsound in [with("", "state"), with(&long, "state"), with("hits", &long)] {
            assert!(!unsound.is_sound());
        }
    }

    #[test]
    fn each_cluster_leads_some_actors_and_all_agree_on_it() {
        let clusters = ["eu", "us", "asia"].map(id_of);
        let mut led = BTreeMap::<ClusterId, usize>::new();
        for key in 0..300 {
            let leader = clusters.into_iter().max_by_key(|id| claim("counter", &key.to_string(), *id));
            *led.entry(leader.expect("there are some")).or_default() += 1;
        }
        assert!(led.len() == 3 && led.values().all(|led| *led > 60), "{led:?}");
        assert_eq!(claim("counter", "hits", ClusterId(7)), CLAIM, "clusters of different builds find the same leader");
    }

    const GOLDEN: &[u8] =
        b"\x01\x01\x87\xa4kind\xa7counter\xa3key\xa4hits\xa5field\xa5state\xa4from\t\xa4hops\x00\xa4sort\
        \xa5Wakes\xa7message\xc4\x03\x01\x02\x03";
    const CLAIM: u64 = 14_238_583_889_058_919_460;
}
