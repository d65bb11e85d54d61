//! The kinds that a node hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use greenroom_describe::Description;
#[cfg(feature = "http")]
use greenroom_describe::Digest;
use greenroom_protocols::directory::Epoch;
use greenroom_protocols::names::near_names;
use greenroom_protocols::node::{Instances, KindInfo};
use greenroom_protocols::state_versions::StateVersions;
use greenroom_protocols::versions::Offer;
use greenroom_world::Timestamp;

use super::built_in::{RELIABLE, WORKERS, is_built_in, is_internal};
use super::descriptions;
use super::foreign::{Entry, Foreign, ForeignKind};
use super::gate::Gate;
use super::history::History;
use super::meter::Place;
use crate::actor::cx::Cx;
use crate::actor::error::Refusal;
use crate::actor::interface::{Behaviour, Interface, MethodInfo, Options, Travels};
use crate::actor::key::{ActorId, Kind};
use crate::actor::signature::Declared;
use crate::geo::config::{GeoConfig, GeoHome};
use crate::intercept::{Given, Interceptor};
use crate::node::config::{Config, KindConfig};
use crate::shard::activation::{Activation, AnyActivation};
use crate::shard::inspect::PastTurn;
use crate::shard::raw::RouteTarget;
use crate::shard::{Shard, Slot};
use crate::state::{Saving, WHOLE, Written, updates_of};

pub(crate) type Factory<A> = Box<dyn Fn(&Cx) -> Result<A, String> + Send + Sync>;

/// A kind and how its actors are made.
pub(crate) struct KindEntry<A: Behaviour> {
    factory: Factory<A>,
    idle: Duration,
    mailbox_len_max: usize,
    interceptors: OnceLock<Arc<[Arc<dyn Interceptor>]>>,
    gate: Option<Gate>,
    /// Where its turns are counted.
    place: Place,
    /// Whether its actors are spawned: each has an entry of its own.
    spawned: bool,
    /// What is said of it, if it is a foreign one.
    foreign: Option<Arc<ForeignKind>>,
}

impl<A: Behaviour> KindEntry<A> {
    pub(crate) fn new(factory: Factory<A>, config: &Config) -> Self {
        let Options { idle, mailbox, in_flight, .. } = A::OPTIONS;
        let in_flight = config.in_flight_max.get(<A::Interface as Interface>::KIND).copied().or(in_flight);
        Self {
            factory,
            idle: idle.unwrap_or(config.idle),
            mailbox_len_max: mailbox.unwrap_or(config.mailbox_len_max) as usize,
            interceptors: OnceLock::new(),
            gate: in_flight.map(Gate::new),
            place: Place::new(<A::Interface as Interface>::METHODS.len()),
            spawned: false,
            foreign: None,
        }
    }

    /// Of a kind that hosts offer.
    pub(crate) fn foreign(factory: Factory<A>, kind: Arc<ForeignKind>, config: &Config) -> Self {
        let in_flight = config.in_flight_max.get(kind.name()).copied().or(kind.said().options.in_flight);
        let mailbox = kind.said().options.mailbox.unwrap_or(config.mailbox_len_max);
        let (gate, mailbox_len_max) = (in_flight.map(Gate::new), mailbox as usize);
        Self { gate, mailbox_len_max, place: Place::none(), foreign: Some(kind), ..Self::new(factory, config) }
    }

    /// For one spawned actor.
    pub(crate) fn spawned(factory: Factory<A>, config: &Config) -> Self {
        Self { spawned: true, ..Self::new(factory, config) }
    }

    pub(crate) fn is_spawned(&self) -> bool {
        self.spawned
    }

    pub(crate) fn create(&self, cx: &Cx) -> Result<A, String> {
        (self.factory)(cx)
    }

    pub(crate) fn mailbox_len_max(&self) -> usize {
        self.mailbox_len_max
    }

    /// Who sees the calls that come in; `None` for most kinds.
    #[inline]
    pub(crate) fn interceptors(&self) -> Option<&Arc<[Arc<dyn Interceptor>]>> {
        self.interceptors.get()
    }

    /// `None` for most kinds: they have no bound.
    #[inline]
    pub(crate) fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }

    #[inline]
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn workers(&self) -> u16 {
        A::OPTIONS.workers
    }

    pub(crate) fn idle(&self) -> Duration {
        match self.spoken() {
            Some(kind) => kind.said().options.idle.unwrap_or(self.idle),
            None => self.idle,
        }
    }

    /// The methods of its actors, by their numbers.
    #[inline(always)]
    pub(crate) fn methods(&self) -> &'static [MethodInfo] {
        match self.spoken() {
            Some(kind) => kind.said().methods,
            None => <A::Interface as Interface>::METHODS,
        }
    }

    /// What hosts say of it; of a kind that is compiled in nothing, as the compiler knows.
    #[inline(always)]
    fn spoken(&self) -> Option<&ForeignKind> {
        if A::FOREIGN { self.foreign.as_deref() } else { None }
    }
}

/// A kind whose actors' type is not known.
pub(crate) trait AnyKind: Send + Sync {
    fn activation(self: Arc<Self>, shard: &Shard, id: ActorId, epoch: Epoch, slot: Slot) -> Rc<dyn AnyActivation>;
    fn idle(&self) -> Duration;
    fn options(&self) -> Options;
    /// Whether its actors have versioned states.
    fn is_versioned(&self) -> bool;
    /// How activations go to another node.
    fn travels(&self) -> Travels;
    /// Whether an activation could take what is carried.
    fn takes(&self, carried: &[u8]) -> Result<(), String>;
    fn methods(&self) -> &'static [MethodInfo];
    /// True for a kind without an external entry.
    fn is_internal(&self) -> bool;
    /// The names of the states in the store that its activations load, and whether each is versioned.
    fn states(&self) -> Vec<(&'static str, bool)>;
    /// What somebody has written as JSON for a state, as its record's payload; `None` if it has no such state that is written as a whole.
    fn written(&self, state: &str, json: &[u8], in_force: u8) -> Option<Result<Bytes, String>>;
    /// The versions of those of them that are not versioned.
    fn state_versions(&self) -> BTreeMap<String, StateVersions>;
    /// Which callers its interface serves.
    fn offer(&self) -> Offer;
    /// What is said of it to people and to other languages.
    fn declared(&self) -> Declared;
    /// Lets `chain` see all calls that come in; said once, before there are any.
    fn intercept(&self, chain: Arc<[Arc<dyn Interceptor>]>);
}

impl<A: Behaviour> AnyKind for KindEntry<A> {
    fn activation(self: Arc<Self>, shard: &Shard, id: ActorId, epoch: Epoch, slot: Slot) -> Rc<dyn AnyActivation> {
        let Options { persistent, reliable, saving, .. } = AnyKind::options(&*self);
        let state = (persistent || reliable || saving != Saving::Explicit).then(Arc::default);
        let cx = Cx { port: shard.port().clone(), id, epoch, state };
        Activation::<A>::new(cx, self, slot, shard.now())
    }

    fn idle(&self) -> Duration {
        self.idle
    }

    fn options(&self) -> Options {
        self.spoken().map_or(A::OPTIONS, |kind| kind.said().options)
    }

    fn is_versioned(&self) -> bool {
        A::FIELDS.iter().any(|(_, versioned)| *versioned)
    }

    fn travels(&self) -> Travels {
        self.spoken().map_or(A::TRAVELS, |kind| kind.said().travels())
    }

    fn takes(&self, carried: &[u8]) -> Result<(), String> {
        A::takes(carried)
    }

    fn methods(&self) -> &'static [MethodInfo] {
        KindEntry::methods(self)
    }

    fn is_internal(&self) -> bool {
        <A::Interface as Interface>::INTERNAL
    }

    fn states(&self) -> Vec<(&'static str, bool)> {
        let whole = A::OPTIONS.persistent.then_some((WHOLE, false));
        whole.into_iter().chain(A::FIELDS.iter().copied()).collect()
    }

    fn written(&self, state: &str, json: &[u8], in_force: u8) -> Option<Result<Bytes, String>> {
        A::written(state, json, in_force).map(|written| written.map(Written::into_bytes))
    }

    fn state_versions(&self) -> BTreeMap<String, StateVersions> {
        let said = A::FIELD_VERSIONS.iter().copied().chain(std::iter::repeat((StateVersions::FIRST, None)));
        let fields = A::FIELDS.iter().zip(said).flat_map(|((name, _), (versions, updates))| {
            let updates = updates.map(|updates| (updates_of(name), updates));
            [((*name).to_owned(), versions)].into_iter().chain(updates)
        });
        let whole = A::OPTIONS.persistent.then(|| (WHOLE.to_owned(), A::VERSIONS));
        whole.into_iter().chain(fields).collect()
    }

    fn offer(&self) -> Offer {
        self.spoken().map_or_else(offer::<A::Interface>, |kind| kind.said().offer)
    }

    fn declared(&self) -> Declared {
        Declared { doc: A::DOC, signatures: <A::Interface as Interface>::SIGNATURES, states: A::STATES }
    }

    fn intercept(&self, chain: Arc<[Arc<dyn Interceptor>]>) {
        // It is said once.
        let _ = self.interceptors.set(chain);
    }
}

/// The kinds of a node.
#[derive(Default)]
pub(crate) struct Kinds {
    by_name: BTreeMap<&'static str, Arc<dyn AnyKind>>,
    /// The same, by the kind's number in this process.
    by_kind: Vec<Option<Hosted>>,
    /// Those that hosts offer, or have offered.
    foreign: Foreign,
    interceptors: Given,
    /// Descriptions of the kinds that are compiled in, once somebody has asked for them.
    described: Mutex<BTreeMap<&'static str, Option<Arc<Description>>>>,
    /// The last turns of actors, for kinds whose history is kept.
    histories: BTreeMap<&'static str, Arc<History>>,
    /// The methods of kinds that are not hosted, but of which actors have been spawned, and which callers they serve.
    spawned: RwLock<BTreeMap<&'static str, (&'static [MethodInfo], Offer)>>,
}

#[derive(Clone)]
struct Hosted {
    kind: Arc<dyn AnyKind>,
    workers: u16,
    offer: Offer,
    reliable: bool,
}

impl Kinds {
    pub(crate) fn insert(&mut self, name: &'static str, entry: Arc<dyn AnyKind>) {
        let at = Kind::intern(name).index();
        if self.by_kind.len() <= at {
            self.by_kind.resize(at + 1, None);
        }
        let Options { workers, reliable, .. } = entry.options();
        self.by_kind[at] = Some(Hosted { kind: entry.clone(), workers, offer: entry.offer(), reliable });
        self.by_name.insert(name, entry);
    }

    /// Lets the kinds' interceptors see the calls that come in, and keeps so many turns of each actor of those that
    /// `histories` names.
    pub(crate) fn intercept(&mut self, given: Given, histories: &BTreeMap<String, u32>) {
        for (name, kind) in &self.by_name {
            let len_max = histories.get(*name).copied().filter(|len_max| *len_max > 0);
            let history = len_max.map(|len_max| Arc::new(History::new(len_max)));
            // The first that is given hears last how a turn ended.
            let first = history.iter().map(|history| history.clone() as Arc<dyn Interceptor>);
            let chain: Vec<_> = first.chain(given.of(name).iter().flat_map(|chain| chain.iter().cloned())).collect();
            if !chain.is_empty() {
                kind.intercept(chain.into());
            }
            if let Some(history) = history {
                self.histories.insert(name, history);
            }
        }
        self.interceptors = given;
    }

    /// All that the node was given.
    #[inline]
    pub(crate) fn interceptors(&self) -> &Given {
        &self.interceptors
    }

    /// Takes in a kind that a host offers, and that is new here: it is never taken out.
    pub(crate) fn insert_foreign(&self, number: Kind, kind: Arc<ForeignKind>, entry: Arc<dyn AnyKind>) {
        if let Some(chain) = self.interceptors.of(kind.name()) {
            entry.intercept(chain);
        }
        self.foreign.insert(number, Entry { kind, entry });
    }

    /// What hosts say of a kind, or have said.
    pub(crate) fn foreign(&self, kind: Kind) -> Option<&Arc<ForeignKind>> {
        self.foreign.find(kind).map(|entry| &entry.kind)
    }

    /// Whether the program itself has the kind.
    pub(crate) fn has_linked(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Whether the node has the kind, or hosts have offered it here.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.named(name).is_some()
    }

    pub(crate) fn find(&self, kind: Kind) -> Option<&Arc<dyn AnyKind>> {
        match self.by_kind.get(kind.index()) {
            Some(Some(hosted)) => Some(&hosted.kind),
            _ => self.foreign.find(kind).map(|foreign| &foreign.entry),
        }
    }

    fn named(&self, name: &str) -> Option<&Arc<dyn AnyKind>> {
        self.by_name.get(name).or_else(|| Some(&self.foreign.find(Kind::known(name)?)?.entry))
    }

    /// How many stateless workers a key of `kind` may have here; 0 for ordinary kinds and those not hosted here.
    pub(crate) fn workers(&self, kind: Kind) -> u16 {
        self.by_kind.get(kind.index()).and_then(|hosted| hosted.as_ref()).map_or(0, |hosted| hosted.workers)
    }

    /// Whether actors of `kind` are reliable, if it is hosted here.
    pub(crate) fn is_reliable(&self, kind: Kind) -> bool {
        match self.by_kind.get(kind.index()) {
            Some(Some(hosted)) => hosted.reliable,
            _ => self.foreign.find(kind).is_some_and(|foreign| foreign.kind.said().options.reliable),
        }
    }

    /// The reliable kinds.
    pub(crate) fn reliable(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.by_name.iter().filter(|(_, kind)| kind.options().reliable).map(|(name, _)| *name)
    }

    /// Whether callers of version `wanted` may be served here, as far as the kind is hosted at all.
    pub(crate) fn serves(&self, kind: Kind, wanted: u16) -> bool {
        match self.by_kind.get(kind.index()) {
            Some(Some(hosted)) => hosted.offer.serves(wanted),
            _ => self.foreign.find(kind).is_none_or(|foreign| foreign.kind.said().offer.serves(wanted)),
        }
    }

    /// Which callers are served of a kind whose messages come as bytes, by a route that was resolved perhaps long ago, and
    /// which method it is: `None` for one that there is not.
    pub(crate) fn meant(&self, kind: Kind, route: &RouteTarget) -> (Offer, Option<u16>) {
        if let (Some(offer), Some(_)) = (route.offer, route.index) {
            return (offer, route.index);
        }
        match self.foreign.find(kind) {
            Some(Entry { kind, .. }) => {
                let said = kind.said();
                (said.offer, said.numbered(route.index, &route.method))
            }
            None => (
                route.offer.unwrap_or_else(|| self.offer(&route.kind_name)),
                route.index.or_else(|| self.index(&route.kind_name, &route.method)),
            ),
        }
    }

    /// Which callers of a kind that is hosted or has been spawned here are served.
    pub(crate) fn offer(&self, kind: &str) -> Offer {
        self.known(kind).map_or(Offer::FIRST, |(_, offer)| offer)
    }

    /// How many turns of `id` are kept, and those that are.
    pub(crate) fn history_of(&self, id: &ActorId, now: Timestamp) -> (usize, Vec<PastTurn>) {
        self.histories.get(id.kind.name()).map(|history| history.of(id, now)).unwrap_or_default()
    }

    /// How activations of `kind` go to another node, if it is hosted here.
    pub(crate) fn travels(&self, kind: Kind) -> Travels {
        self.find(kind).map_or(Travels::Not, |kind| kind.travels())
    }

    /// What the kind says of itself, if it is hosted here, or has been offered by hosts.
    pub(crate) fn describe(&self, name: &str) -> Option<Arc<Description>> {
        match self.by_name.get_key_value(name) {
            Some((name, kind)) => {
                let mut described = self.described.lock().unwrap_or_else(PoisonError::into_inner);
                // A kind that is compiled in says the same for as long as the process lives.
                described.entry(name).or_insert_with(|| descriptions::of(name, &**kind).map(Arc::new)).clone()
            }
            None => Some(Arc::new(self.foreign(Kind::known(name)?)?.said().description.clone())),
        }
    }

    /// Returns the digest of what [`describe`](Self::describe) returns.
    #[cfg(feature = "http")]
    pub(crate) fn digest(&self, name: &str) -> Option<Digest> {
        match self.by_name.contains_key(name) {
            true => self.describe(name).map(|description| description.digest()),
            false => Some(self.foreign(Kind::known(name)?)?.said().description.digest()),
        }
    }

    /// Names and methods, by name.
    pub(crate) fn methods(&self) -> impl Iterator<Item = (&'static str, &'static [MethodInfo])> + '_ {
        let foreign = self.foreign.iter().map(|foreign| (foreign.kind.name(), foreign.entry.methods()));
        self.by_name.iter().map(|(name, kind)| (*name, kind.methods())).chain(foreign)
    }

    /// The stores that kinds name, with the kinds.
    pub(crate) fn stores(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        self.by_name.iter().map(|(name, kind)| (*name, kind.options().store))
    }

    /// The names of the stores that hold states of kinds, each once.
    pub(crate) fn stores_of_states(&self) -> BTreeSet<&'static str> {
        self.by_name.values().filter(|kind| !kind.states().is_empty()).map(|kind| kind.options().store).collect()
    }

    /// What kinds say, by name.
    pub(crate) fn options(&self) -> impl Iterator<Item = (&'static str, Options)> + '_ {
        self.by_name.iter().map(|(name, kind)| (*name, kind.options()))
    }

    /// Whether actors of the kind have versioned states.
    pub(crate) fn is_versioned(&self, kind: &str) -> bool {
        self.by_name.get(kind).is_some_and(|kind| kind.is_versioned())
    }

    /// What other nodes are told.
    pub(crate) fn infos(&self, geo: Option<&GeoConfig>, configured: &BTreeMap<String, KindConfig>) -> Vec<KindInfo> {
        self.by_name
            .iter()
            .map(|(name, kind)| {
                let options = kind.options();
                let placement = match options {
                    Options { workers: 1.., .. } => WORKERS,
                    Options { reliable: true, .. } => RELIABLE,
                    _ => options.placement,
                };
                let Offer { version, compatible } = kind.offer();
                // The built-in kinds are each cluster's own.
                let said = if is_built_in(name) { Instances::PerCluster } else { options.instances };
                let instances = geo.map_or(said, |geo| geo.instances(name, said));
                let adaptive = geo.map_or(options.adaptive, |geo| geo.is_adaptive(name, options.adaptive));
                let home = configured.get(*name).and_then(|kind| kind.home.as_ref());
                let home = home.map_or_else(|| options.home.to_owned(), GeoHome::to_string);
                let (name, placement, states) = ((*name).to_owned(), placement.to_owned(), kind.state_versions());
                let digest = String::new();
                KindInfo { name, placement, version, compatible, instances, adaptive, home, digest, states }
            })
            .collect()
    }

    /// Notes the methods of actors that are spawned.
    pub(crate) fn learn<I: Interface>(&self) {
        if self.known(I::KIND).is_none() {
            let mut spawned = self.spawned.write().unwrap_or_else(PoisonError::into_inner);
            spawned.insert(I::KIND, (I::METHODS, offer::<I>()));
        }
    }

    /// The methods of a kind that is hosted or has been spawned here, and which callers they serve.
    fn known(&self, kind: &str) -> Option<(&'static [MethodInfo], Offer)> {
        self.named(kind).map(|kind| (kind.methods(), kind.offer())).or_else(|| {
            let spawned = self.spawned.read().unwrap_or_else(PoisonError::into_inner);
            spawned.get(kind).copied()
        })
    }

    /// How many methods a kind has whose actors are met here; those that hosts offer may get more.
    pub(crate) fn methods_met(&self, kind: Kind) -> usize {
        let known = self.methods_of(kind.name()).len();
        if self.is_foreign(kind) { known.max(FOREIGN_METHODS) } else { known }
    }

    /// Whether hosts offer a kind, or have offered it.
    pub(crate) fn is_foreign(&self, kind: Kind) -> bool {
        self.foreign.find(kind).is_some()
    }

    /// The methods of a kind that is hosted or has been spawned here, by their numbers.
    pub(crate) fn methods_of(&self, kind: &str) -> &'static [MethodInfo] {
        self.known(kind).map_or(&[], |(methods, _)| methods)
    }

    /// A method's place among those of its kind, if that is hosted or has been spawned here.
    pub(crate) fn index(&self, kind: &str, method: &str) -> Option<u16> {
        if let Some(foreign) = Kind::known(kind).and_then(|kind| self.foreign.find(kind)) {
            return foreign.kind.said().number(method);
        }
        let at = self.known(kind)?.0.iter().position(|known| known.name == method)?;
        u16::try_from(at).ok()
    }

    /// Refuses a kind without an external entry. Whatever is named outside of the cluster's nodes passes here: by clients, hosts,
    /// operators, other clusters and stored records. Where this node does not have the kind, its name decides.
    ///
    /// # Errors
    /// [`Refusal::UnknownKind`], as for a kind that does not exist.
    pub(crate) fn check_external(&self, kind: &str) -> Result<(), Refusal> {
        match self.named(kind).map_or_else(|| is_internal(kind), |entry| entry.is_internal()) {
            true => Err(Refusal::UnknownKind { kind: kind.to_owned(), near: Vec::new() }),
            false => Ok(()),
        }
    }

    /// Returns the meaning of a method that something outside of the cluster's nodes names.
    ///
    /// # Errors
    /// As [`check_external`](Self::check_external).
    pub(crate) fn external_route(&self, kind: &str, method: &str) -> Result<RouteTarget, Refusal> {
        self.check_external(kind)?;
        Ok(self.route(kind, method))
    }

    /// Returns the meaning of a method that a node of the cluster names; for all others there is
    /// [`external_route`](Self::external_route).
    pub(crate) fn route(&self, kind: &str, method: &str) -> RouteTarget {
        let known = Kind::known(kind);
        // What is offered of a foreign kind may change while the route is in use.
        let lasts = known.is_none_or(|known| self.foreign.find(known).is_none());
        let offer = self.known(kind).map(|(_, offer)| offer).filter(|_| lasts);
        let index = self.index(kind, method);
        RouteTarget { kind: known, kind_name: kind.to_owned(), method: method.to_owned(), index, offer }
    }

    /// The refusal for a method that its kind does not have.
    pub(crate) fn unknown_method(&self, route: &RouteTarget) -> Refusal {
        let near = self.near_methods(route);
        Refusal::UnknownMethod { kind: route.kind_name.clone(), method: route.method.clone(), near }
    }

    /// Methods of its kind with names like the one that is called.
    pub(crate) fn near_methods(&self, route: &RouteTarget) -> Vec<String> {
        near_names(&route.method, self.methods_of(&route.kind_name).iter().map(|method| method.name))
    }
}

/// Methods of a kind of hosts that may be told apart, at least.
const FOREIGN_METHODS: usize = 64;

fn offer<I: Interface>() -> Offer {
    Offer { version: I::VERSION, compatible: I::COMPATIBLE }
}

/// Makes the factory of a kind that makes itself.
pub(crate) fn factory<A: Behaviour>() -> Factory<A> {
    Box::new(|cx| A::create(cx))
}
