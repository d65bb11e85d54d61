//! Putting a node together.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use greenroom_protocols::node::Member;
use greenroom_store::url::redact;
use greenroom_store::{Journal, Outlet, Store};
use greenroom_world::real::RealWorld;
use greenroom_world::{LocalFuture, World};
use tokio::sync::mpsc;

#[cfg(feature = "tls")]
use super::certificates;
use super::config::Config;
use super::disks::StoreDisks;
use super::drain::Drains;
use super::error::Error;
use super::opening::{
    check_all, check_names, check_protocols, check_stores, enter_namespaces, membership_config, open_geo, open_stores,
};
use super::reachability::{self, Reachability};
use super::{Node, Result, facts, security};
use crate::actor::call::Call;
use crate::actor::cx::Cx;
use crate::actor::interface::{Behaviour, Interface, Method, Options};
use crate::actor::key::{Key, Kind};
use crate::blocking::BlockingPool;
use crate::cluster::directory::Border;
use crate::cluster::placement::{Placement, Placements};
use crate::cluster::table::{Health, TableStore};
use crate::cluster::{self, InCluster};
#[cfg(feature = "http")]
use crate::gateway;
use crate::geo::{self, States, check_kinds};
use crate::here::Here;
use crate::here::built_in::is_built_in;
use crate::here::kinds::{AnyKind, KindEntry, Kinds, factory};
use crate::here::parts::Parts;
use crate::here::port::Port;
use crate::here::stores::{StateStore, Stores, open_store};
use crate::hosts::Hosts;
use crate::intercept::{Given, Interceptor};
use crate::locality::Locality;
use crate::observe::Observed;
use crate::observe::findings::Findings;
use crate::observe::look::Look;
use crate::pids::{KeeperInterface, Spawnable, Spawners};
use crate::reliable::{self, Partitions};
use crate::shard::{self, ShardPort};
use crate::state::namespace::Namespace;
use crate::time::Calendar;
use crate::topic::actor::Topics;
use crate::topic::kinds::{ByCall, KindSubscriptions};
use crate::versioned::elsewhere::Elsewhere;
use crate::versioned::protocol::{ConsistencyProtocol, Make, Place};
use crate::versioned::registry::Registry;

type Register = Box<dyn FnOnce(&mut Kinds, &Config) + Send>;

/// A kind that the node will host: its options, and the step that enters it among the node's kinds.
struct RegisteredKind {
    options: Options,
    register: Register,
}

/// A node to be.
#[must_use = "a builder does nothing until it is started"]
#[derive(Default)]
pub struct Builder {
    config: Config,
    kinds: BTreeMap<&'static str, RegisteredKind>,
    /// Kinds that others may spawn, for those that are not registered otherwise.
    spawned_kinds: BTreeMap<&'static str, RegisteredKind>,
    spawners: Spawners,
    repeated: Option<&'static str>,
    placements: Placements,
    world: Option<Arc<dyn World>>,
    store: Option<Arc<dyn Store>>,
    state_stores: BTreeMap<String, StateStore>,
    journal: Option<Arc<dyn Journal>>,
    outlets: BTreeMap<String, Arc<dyn Outlet>>,
    interceptors: Given,
    topics: KindSubscriptions,
    protocols: BTreeMap<String, Make>,
    elsewhere: Option<Arc<dyn Elsewhere>>,
    #[cfg(feature = "http")]
    grpc: Option<Arc<dyn gateway::Protocol>>,
}

impl Node {
    /// A node to be put together.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Takes over all of `config`.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Changes the configuration in place.
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// The node's name, unique in its cluster.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.configure(|config| config.name = name.into())
    }

    /// Where other nodes reach this one: `host:port`.
    pub fn listen(self, address: impl Into<String>) -> Self {
        self.configure(|config| config.listen = address.into())
    }

    /// Opens the HTTP door at `address`.
    pub fn http(self, address: impl Into<String>) -> Self {
        self.configure(|config| config.http = Some(address.into()))
    }

    /// What the door at the configuration's `grpc` speaks: `greenroom_grpc::Grpc`.
    #[cfg(feature = "http")]
    pub fn grpc_door(mut self, protocol: impl crate::door::Protocol) -> Self {
        self.grpc = Some(Arc::new(protocol));
        self
    }

    /// The membership table that the nodes of the cluster share: `memory:`, `sqlite:PATH`, or the URL of an engine whose
    /// feature is on.
    pub fn table(self, url: impl Into<String>) -> Self {
        self.configure(|config| config.table = url.into())
    }

    /// Hosts actors of type `A`.
    ///
    /// Stateless workers have no `Stored` or `Versioned` fields, as several activations of one actor would overwrite each
    /// other's records. The compiler refuses this:
    ///
    /// ```compile_fail
    /// # use greenroom::prelude::*;
    /// #[derive(Default, Actor)]
    /// struct Counter { count: Stored<u64> }
    ///
    /// #[actor(workers = 2)]
    /// impl Counter { pub async fn count(&self) -> u64 { *self.count } }
    ///
    /// greenroom::Node::builder().register::<Counter>();
    /// ```
    ///
    /// Reliable actors have none either, as such fields are not written with the turn's commit:
    ///
    /// ```compile_fail
    /// # use greenroom::prelude::*;
    /// #[derive(Default, Actor)]
    /// struct Account { balance: Stored<u64> }
    ///
    /// #[actor(reliable)]
    /// impl Account { pub async fn balance(&self) -> u64 { *self.balance } }
    ///
    /// greenroom::Node::builder().register::<Account>();
    /// ```
    pub fn register<A: Behaviour>(self) -> Self {
        const {
            assert!(
                A::OPTIONS.workers == 0 || !(A::OPTIONS.persistent || A::STORED),
                "stateless workers keep no states in stores, as several activations of one actor would overwrite each other's \
                 records; leave `workers` out"
            );
        }
        self.add::<A>(Box::new(|kinds, config| {
            insert(kinds, KindEntry::<A>::new(factory::<A>(), config));
        }))
    }

    /// Hosts actors of type `A` that `create` makes: for those that need more than their key.
    pub fn register_with<A: Behaviour>(self, create: impl Fn(&Cx) -> A + Send + Sync + 'static) -> Self {
        self.add::<A>(Box::new(move |kinds, config| {
            insert(kinds, KindEntry::<A>::new(Box::new(move |cx| Ok(create(cx))), config));
        }))
    }

    /// Lets other nodes, and callers on this one, spawn actors of type `A` here by
    /// [`spawn_on`](Cx::spawn_on). The kind is then also known to the cluster, so that its actors can be called through
    /// every node's door.
    pub fn spawnable<A: Spawnable>(mut self) -> Self {
        let kind = <A::Interface as Interface>::KIND;
        self.spawners.insert::<A>(kind);
        let register: Register = Box::new(|kinds, config| insert(kinds, KindEntry::<A>::new(factory::<A>(), config)));
        self.spawned_kinds.insert(kind, RegisteredKind { options: A::OPTIONS, register });
        self
    }

    fn add<A: Behaviour>(mut self, register: Register) -> Self {
        let name = <A::Interface as Interface>::KIND;
        let registered = RegisteredKind { options: A::OPTIONS, register };
        if self.kinds.insert(name, registered).is_some() {
            self.repeated = Some(name);
        }
        self
    }

    /// Leaves out the registered kinds that `keep` does not name: nodes may host different sets of kinds.
    pub fn retain_kinds(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.kinds.retain(|name, _| keep(name));
        self
    }

    /// The names of the registered kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.kinds.keys().copied()
    }

    /// Subscribes a kind to all topics whose names begin with `namespace` and a slash: for each event of the topic
    /// `namespace/key`, `call` says which call of the actor `key` tells it. The call is made until it is acknowledged, for up to
    /// 30 s, one after the other for each actor; it activates the actor.
    ///
    /// All nodes of the cluster must say the same, as any of them may have the topic.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # #[derive(Default, Actor)]
    /// # struct Ticker { last: f64 }
    /// # #[actor]
    /// # impl Ticker { pub async fn on_price(&mut self, price: f64) { self.last = price } }
    /// let builder = Node::builder()
    ///     .register::<Ticker>()
    ///     .subscribe("prices", |node, key, price: f64| TickerRef::of(node, key).on_price(price));
    /// # drop(builder);
    /// ```
    pub fn subscribe<E, M>(
        mut self,
        namespace: impl Into<String>,
        call: impl Fn(&Node, Key, E) -> Call<M> + Send + Sync + 'static,
    ) -> Self
    where
        E: serde::de::DeserializeOwned + 'static,
        M: Method,
    {
        self.topics.insert(namespace.into(), ByCall::<E, _>::new(call));
        self
    }

    /// Makes `placement` known as `name`, for kinds that say `#[actor(placement = "name")]`.
    pub fn placement(mut self, name: impl Into<String>, placement: impl Placement) -> Self {
        self.placements.insert(name.into(), Arc::new(placement));
        self
    }

    /// Runs in `world` instead of the real one.
    pub fn world(mut self, world: Arc<dyn World>) -> Self {
        self.world = Some(world);
        self
    }

    /// Keeps the membership table in `store` instead of where the configuration says.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Where actors keep their states, unless their kind names another store: a URL as for [`table`](Self::table).
    pub fn state(self, url: impl Into<String>) -> Self {
        self.configure(|config| config.store = url.into())
    }

    /// The namespace of the cluster's states in their stores: clusters of different namespaces do not see each other's. The cluster's
    /// name unless it is set, and one name for all clusters of a multi-cluster.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        self.configure(|config| config.namespace = namespace.into())
    }

    /// Makes `store` known as `name`, for kinds that say `#[actor(persistent, store = "name")]`; the empty name is for all
    /// kinds that name none.
    pub fn state_store(mut self, name: impl Into<String>, store: Arc<dyn Store>) -> Self {
        self.state_stores.insert(name.into(), store.into());
        self
    }

    /// Makes `journal` known as `name`, as [`state_store`](Self::state_store) does a store, also to kinds that need more than a
    /// store can do.
    pub fn state_journal(mut self, name: impl Into<String>, journal: Arc<dyn Journal>) -> Self {
        self.state_stores.insert(name.into(), journal.into());
        self
    }

    /// Where reliable actors are kept: a URL as for [`table`](Self::table), of an engine that can commit several writes at
    /// once. All nodes of a cluster that host reliable kinds share it.
    pub fn journal(self, url: impl Into<String>) -> Self {
        self.configure(|config| config.reliable.journal = url.into())
    }

    /// Keeps reliable actors in `journal` instead of where the configuration says.
    pub fn journal_store(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Where [outputs](Cx::output) to `name` of reliable actors go, for outlets that are more than a URL. All nodes of a
    /// cluster know the same ones.
    pub fn outlet(mut self, name: impl Into<String>, outlet: Arc<dyn Outlet>) -> Self {
        self.outlets.insert(name.into(), outlet);
        self
    }

    /// What the node will run by, checked as far as that can be without opening anything.
    ///
    /// # Errors
    /// Why [`start`](Self::start) would refuse it.
    pub fn check(&self) -> Result<&Config> {
        check_all(&self.config, options_of(&self.kinds, &self.spawned_kinds))?;
        #[cfg(feature = "http")]
        gateway::check_names(&self.config)?;
        super::opening::warn_of_misspelt(&self.config, self.kinds.keys().copied());
        Ok(&self.config)
    }

    /// Whether it says where reliable actors are kept.
    pub fn has_journal(&self) -> bool {
        self.journal.is_some() || !self.config.reliable.journal.is_empty()
    }

    /// Makes a protocol of your own known as `name`, for kinds that say `#[actor(protocol = "name")]`: `make` gives the part of
    /// one new instance of a versioned state.
    pub fn protocol<P: ConsistencyProtocol>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(Place) -> P + Send + Sync + 'static,
    ) -> Self {
        self.protocols.insert(name.into(), Box::new(move |place| Box::new(make(place))));
        self
    }

    /// Brings the messages of versioned states to other clusters by `elsewhere`; what comes from there goes to
    /// [`Node::post`](super::Node::post).
    #[doc(hidden)]
    pub fn elsewhere(mut self, elsewhere: Arc<dyn Elsewhere>) -> Self {
        self.elsewhere = Some(elsewhere);
        self
    }

    /// Lets `interceptor` see the calls of all kinds.
    pub fn intercept(mut self, interceptor: impl Interceptor) -> Self {
        self.interceptors.add(None, Arc::new(interceptor));
        self
    }

    /// Lets `interceptor` see the calls of actors of `kind`: those that come in if this node hosts it, and those that go
    /// out wherever it is hosted.
    pub fn intercept_kind(mut self, kind: impl Into<String>, interceptor: impl Interceptor) -> Self {
        self.interceptors.add(Some(kind.into()), Arc::new(interceptor));
        self
    }

    /// Starts the node: returns once it is in the cluster and answers.
    ///
    /// # Errors
    /// [`Error`]: what could not be had, and what to do about it. Nothing keeps running then.
    ///
    /// # Cancel safety
    /// Dropping the future stops what has been started.
    pub fn start(self) -> impl Future<Output = Result<Node>> + Send {
        self.open().boxed()
    }

    async fn open(self) -> Result<Node> {
        let Builder {
            config,
            kinds: registers,
            spawned_kinds,
            spawners,
            repeated,
            placements,
            world,
            store,
            state_stores,
            journal,
            outlets,
            interceptors,
            topics,
            protocols,
            elsewhere,
            #[cfg(feature = "http")]
            grpc,
        } = self;
        if let Some(kind) = repeated {
            return Err(Error::Repeated { kind });
        }
        if let Some(&kind) = registers.keys().chain(spawned_kinds.keys()).find(|kind| is_built_in(kind)) {
            return Err(Error::Reserved { kind });
        }
        check_all(&config, options_of(&registers, &spawned_kinds))?;
        #[cfg(feature = "http")]
        gateway::check_names(&config)?;
        let mut membership = membership_config(&config)?;
        let links = security::links(&config)?;
        let world: Arc<dyn World> = match world {
            Some(world) => world,
            None => RealWorld::start().map_err(|error| Error::System { what: "start threads", error })?,
        };
        let (store, store_name, lease) = match store {
            Some(store) => (StateStore::from(store), "opened by the program".to_owned(), true),
            None => {
                let failed = |reason| Error::Table { url: redact(&config.table), reason };
                let opened = open_store(&world, &config.table).await.map_err(failed)?;
                let (name, shared) = (opened.name.clone(), opened.shared);
                (opened.into(), name, shared)
            }
        };
        let stores = open_stores(&world, &config, &store, state_stores).await?;
        let listener = world.listen(&config.listen).await.map_err(|error| Error::Listen {
            what: "other nodes",
            address: config.listen.clone(),
            error,
        })?;
        let advertised = config.advertised(&listener.address());
        #[cfg(not(feature = "http"))]
        refuse_door(&config)?;
        #[cfg(feature = "http")]
        let (config, door) = gateway::Bound::take(config, grpc).await?;
        let name = if config.name.is_empty() { advertised.clone() } else { config.name.clone() };
        let hosts = Hosts::bind(&config, &name)?;
        let mut kinds = Kinds::default();
        for (kind, registered) in registers.into_iter().chain(spawned_kinds) {
            if !kinds.contains(kind) {
                (registered.register)(&mut kinds, &config);
            }
        }
        kinds.intercept(interceptors, &config.history);
        Kind::intern(KeeperInterface::KIND);
        kinds.learn::<KeeperInterface>();
        insert(&mut kinds, KindEntry::<Topics>::new(factory::<Topics>(), &config));
        check_names(&kinds, &config)?;
        check_stores(&kinds, &stores)?;
        // A cluster that counts as known keeps the names of earlier builds, which is right for kinds that are only spawned.
        let takes_hosts = !matches!(config.hosts.listen.as_str(), "" | "off");
        let is_known = !takes_hosts && kinds.stores_of_states().is_empty()
            || TableStore::is_begun(&*store.store, &config.cluster, config.store_timeout).await;
        let stores = stores.under(Namespace::of(&config, is_known));
        enter_namespaces(&world, &kinds, &stores, &config).await?;
        let outlets = reliable::Outlets::open(outlets, &config.reliable.outlets).await?;
        let journals = reliable::open(&world, &config, &kinds, &store.store, journal).await?.with(outlets);
        if journals.get().is_some() {
            insert(&mut kinds, KindEntry::<Partitions>::new(factory::<Partitions>(), &config));
        }
        let outlets = journals.get().map(|_| journals.outlets().names());
        let versioned = Registry::new(protocols);
        check_protocols(&kinds, &config, &stores, &versioned)?;
        check_kinds(&kinds, &config, &stores).map_err(|reason| Error::Geo { reason })?;
        if let Some(elsewhere) = elsewhere {
            versioned.post().connect(elsewhere);
        }
        let member = Member {
            name: name.clone(),
            address: advertised.clone(),
            http: config.http.as_ref().map(|address| match config.door_scheme() {
                "http" => address.clone(),
                scheme => format!("{scheme}://{address}"),
            }),
            kinds: kinds.infos(config.geo.as_ref(), &config.kinds),
            roles: config.roles.clone(),
            outlets,
            status: Default::default(),
            draining: false,
        };
        let shards: Vec<ShardPort> = (0..config.shard_count()).map(|_| ShardPort::claim()).collect();
        if !lease {
            membership.lease = None;
        }
        let health = Arc::new(Health::new(world.clone(), store_name));
        let table = TableStore::new(store.store.clone(), &config.cluster, membership.store_timeout, health.clone());
        let (orders, order_queue) = mpsc::channel(ORDERS_LEN_MAX);
        let (geo, gateway) = open_geo(&world, &config, &shards, &orders, (&store.store, &stores)).await?;
        if let (Some(geo), Some(told)) = (&geo, &config.geo) {
            // Unless the program has links of its own.
            versioned.post().connect(Arc::new(States::new(geo.clone(), told, &config.kinds, &kinds)));
        }
        let border = geo.clone().map(|geo| Arc::new(geo) as Arc<dyn Border>);
        let store_disks = disks(&store.store, &stores, journals.get());
        let parts = Parts::default().with(InCluster::new(placements, orders, border)).with(versioned).with(journals);
        let parts = parts
            .with(Calendar::new(&config.cluster))
            .with(spawners)
            .with(topics)
            .with(Drains)
            .with(Observed::default())
            .with(Look::default())
            .with(Findings::default())
            .with(Reachability::default())
            .with(StoreDisks::new(store_disks));
        let parts =
            parts.with(Locality::new(config.optimiser.mode)).with(hosts).with(BlockingPool::new(&config.threads));
        let parts = match geo {
            Some(geo) => parts.with(geo),
            None => parts,
        };
        let here = Arc::new(Here::new(world, config, name, advertised, kinds, shards, stores, links, parts));
        let starting = Starting(Some(here.clone()));
        for (index, at) in here.shards().iter().copied().enumerate() {
            let port = here.clone();
            let name = format!("greenroom-{index}");
            let body = Box::new(move || {
                let life = shard::life(at, index as u16, Arc::new(Port { node: port.clone() }));
                Box::pin(port.vital("a shard", life)) as LocalFuture
            });
            here.world()
                .start_shard(name, body)
                .map_err(|error| Error::System { what: "start a shard's thread", error })?;
        }
        #[cfg(feature = "tls")]
        certificates::watch(&here);
        cluster::start(&here, listener, order_queue, table, membership, member);
        here.parts().for_each(|part| part.start(&here));
        facts::watch(&here, health.clone());
        reachability::watch(&here);
        #[cfg(feature = "http")]
        if let Some(door) = door {
            door.open(&here, health.clone());
        }
        here.joined(&health).await?;
        if let Some(geo) = here.geo() {
            geo::start(&here, geo, gateway);
        }
        let node = Node::new(here);
        starting.done();
        Ok(node)
    }
}

/// The options of all kinds that the node will host, by their names.
fn options_of<'a>(
    kinds: &'a BTreeMap<&'static str, RegisteredKind>,
    spawned: &'a BTreeMap<&'static str, RegisteredKind>,
) -> impl Iterator<Item = (&'a str, &'a Options)> {
    kinds.iter().chain(spawned).map(|(kind, registered)| (*kind, &registered.options))
}

/// The node's stores, by what they are for.
fn disks(table: &Arc<dyn Store>, stores: &Stores, journal: Option<&Arc<dyn Journal>>) -> Vec<(String, Arc<dyn Store>)> {
    let mut all = vec![("table".to_owned(), table.clone())];
    all.extend(journal.map(|journal| ("journal".to_owned(), journal.clone() as Arc<dyn Store>)));
    all.extend(stores.find("").map(|store| ("states".to_owned(), store.clone())));
    all.extend(stores.names().filter_map(|name| Some((name.to_owned(), stores.find(name)?.clone()))));
    all
}

fn insert<A: Behaviour>(kinds: &mut Kinds, entry: KindEntry<A>) {
    let entry: Arc<dyn AnyKind> = Arc::new(entry);
    kinds.insert(<A::Interface as Interface>::KIND, entry);
}

/// Stops a node whose start was given up.
struct Starting(Option<Arc<Here>>);

impl Starting {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(node) = self.0.take() {
            node.halt("its start was given up");
        }
    }
}

/// Refuses a door that this build does not have.
#[cfg(not(feature = "http"))]
fn refuse_door(config: &Config) -> Result<()> {
    let asked = [("HTTP", &config.http), ("gRPC", &config.grpc)];
    let Some((what, Some(address))) = asked.into_iter().find(|(_, address)| address.is_some()) else { return Ok(()) };
    let error = std::io::Error::other("this program is built without the feature `http`");
    Err(Error::Listen { what, address: address.clone(), error })
}

/// Orders to the control plane that may wait.
const ORDERS_LEN_MAX: usize = 65_536;
