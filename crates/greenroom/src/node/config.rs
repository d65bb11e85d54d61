//! What a node can be told.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_protocols::checks::Checks;
use greenroom_protocols::membership::LeaseTimes;
use greenroom_security::auth::Auth;
use greenroom_security::files::{DoorTls, NodeTls};
use greenroom_security::rules::Rule;
use serde::{Deserialize, Serialize};

use crate::blocking::settings::Threads;
use crate::geo::config::{GeoConfig, GeoHome};
use crate::hosts::settings::HostsConfig;
use crate::locality::settings::Optimiser;
use crate::reliable::settings::Reliability;

/// How a node runs. Every field has a default that suits a cluster on one network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// The node's name, unique in its cluster; it survives restarts. Made from the address when empty.
    pub name: String,
    /// The cluster's name: nodes of another one are refused.
    pub cluster: String,
    /// Where other nodes reach this one, as `host:port`; port 0 lets the system choose.
    pub listen: String,
    /// What other nodes are told to dial, if it is not the address that the node listens at.
    pub advertise: Option<String>,
    /// Where the HTTP door listens; `None` for no door.
    pub http: Option<String>,
    /// Where the gRPC door listens, which has the certificates, credentials, rules and bounds of the HTTP door; `None` for no door.
    pub grpc: Option<String>,
    /// Names by which clients ask for the HTTP door, besides its addresses, `localhost` and its advertised name: those that a
    /// proxy or a load balancer in front of it has. A `*` stands for any text. Requests for other names are refused, as
    /// other sites can have theirs lead here.
    pub http_hosts: Vec<String>,
    /// The origins of other sites whose pages may call actors, and follow topics, from browsers, as `https://app.example.org`; a host
    /// may begin with `*.`. Without them only pages that the door's own site has may, as those behind a proxy of one name.
    pub http_origins: Vec<String>,
    /// Whether there is a proxy on the node's own machine in front of the HTTP door: then whoever seems to come from this
    /// machine may be anybody, and the `/-/` pages take credentials.
    pub http_proxied: bool,
    /// What the pages of the console may do: `off` for none, `look`, or `change` for who may by their role. Without it `change` at a
    /// door on loopback that asks nobody for credentials, and else `look`.
    pub console: Option<ConsoleMode>,
    /// Kinds whose actors' keys are hidden from viewers: wherever one would be told them, a hash stands in its place.
    pub hide_keys: Vec<String>,
    /// The membership table: `memory:` for a node alone, `sqlite:PATH` for several on one machine, or the URL of an engine
    /// whose feature is on.
    pub table: String,
    /// How long the node may start turns after it last reached the membership table, in seconds in files; 1 s to 5 min, and
    /// renewed four times as often. A table on a slow or busy disk wants a longer one; the actors of a node that died
    /// wait for its lease to run out.
    #[serde(with = "seconds")]
    pub lease: Duration,
    /// Where actors keep their states, unless their kind names another store; the membership table's store when empty.
    pub store: String,
    /// The namespace of the cluster's states in those stores: clusters of different namespaces do not see each other's. The same on all
    /// nodes, also of all clusters of a multi-cluster. The cluster's name when empty, and one name for all multi-clusters.
    pub namespace: String,
    /// Other stores for states, by the names that kinds say: `#[actor(persistent, store = "name")]`.
    pub stores: BTreeMap<String, String>,
    /// Where reliable actors are kept.
    pub reliable: Reliability,
    /// Whether the node finds out which actors talk with each other.
    pub optimiser: Optimiser,
    /// How hosts come in: processes in any language that run turns of kinds of their own.
    pub hosts: HostsConfig,
    /// The threads beside the shards.
    pub threads: Threads,
    /// What this node says of kinds, by their names; it covers what they say themselves.
    pub kinds: BTreeMap<String, KindConfig>,
    /// Time that saving or loading a state may take, in seconds in files.
    #[serde(with = "seconds")]
    pub store_timeout: Duration,
    /// What this node is for: `role:NAME` placements choose among the nodes that have it.
    pub roles: Vec<String>,
    /// Threads that run actors; 0 for one a core.
    pub shards: usize,
    /// Time that a call may take unless it says otherwise, in seconds in files.
    #[serde(with = "seconds")]
    pub call_timeout: Duration,
    /// Time without a message after which activations end, unless their kind says otherwise.
    #[serde(with = "seconds")]
    pub idle: Duration,
    /// Messages that may wait at one activation, unless its kind says otherwise.
    pub mailbox_len_max: u32,
    /// Messages that may wait and run at once on this node, by kind: more are refused. It covers what kinds say themselves
    /// with `#[actor(in_flight = N)]`.
    pub in_flight_max: BTreeMap<String, u32>,
    /// Last turns of each actor that are kept for who [inspects](crate::Node::inspect) it, by kind, at most 1000 each, of the 4096 actors
    /// of a kind that were last called. Kinds that are not named pay nothing.
    pub history: BTreeMap<String, u32>,
    /// Time that work may wait on a thread, in seconds in files, before the node turns away calls from outside; half a second
    /// more or less does not matter. 0 for never.
    #[serde(with = "seconds")]
    pub shed_after: Duration,
    /// Time after which a turn is reported in the log, in seconds in files. 0 for never.
    #[serde(with = "seconds")]
    pub long_turn: Duration,
    /// Time for an activation to end: what its `deactivating` hook has not done by then is given up; and for all of them, when
    /// the node stops.
    #[serde(with = "seconds")]
    pub stop_timeout: Duration,
    /// Time for which a node that gets Ctrl-C or SIGTERM goes on serving before it drains, in seconds in files; 0 by default. `/readyz`
    /// answers 503 from the start of it, so that load balancers that hear late send nothing to a node that refuses. A second signal
    /// ends it.
    #[serde(with = "seconds")]
    pub drain_delay: Duration,
    /// Time for a drain: to hand activations over, to end what runs, and to answer who waits. What is left is cut.
    #[serde(with = "seconds")]
    pub drain_timeout: Duration,
    /// Time for one `deactivating` hook. After that the activation ends without it, so that who waits for the actor is
    /// served by its next one.
    #[serde(with = "seconds")]
    pub deactivating_timeout: Duration,
    /// Largest body that the HTTP door takes, in bytes.
    pub http_body_len_max: usize,
    /// Requests that the HTTP door works on at once.
    pub http_requests_max: usize,
    /// Connections that the HTTP door keeps open; at most half of the files that the process may open. For a newer one, the
    /// one that has been silent longest is closed.
    pub http_connections_max: usize,
    /// Time for a client of the HTTP or gRPC endpoint to send the head of a request, from its first byte on, and to say anything
    /// at all once it has connected; in seconds in files.
    #[serde(with = "seconds")]
    pub http_head_timeout: Duration,
    /// Time for a client to send a request's body, in seconds in files.
    #[serde(with = "seconds")]
    pub http_body_timeout: Duration,
    /// Time for which a client may keep a connection without a request, in seconds in files. Answers announce it as
    /// `Keep-Alive: timeout=75`; the node itself waits a little longer.
    #[serde(with = "seconds")]
    pub http_idle_timeout: Duration,
    /// Time for clients to finish the bodies that they are sending when the node drains, in seconds in files.
    #[serde(with = "seconds")]
    pub http_drain_timeout: Duration,
    /// Bytes that may wait for slow watchers, of all topics and streams of this node together. Beyond it, those clients of
    /// the HTTP door that have taken nothing for longest are let go, at the earliest after a second.
    pub backlog_len_max: usize,
    /// Allows listening beyond loopback without TLS and credentials: anybody who reaches the port can call every actor.
    pub insecure_listen: bool,
    /// Mutual TLS between nodes: they speak nothing else then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<NodeTls>,
    /// TLS at the HTTP door; the files of `tls` if there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_tls: Option<DoorTls>,
    /// Keeps the HTTP door plain though there is `tls`: for a door on loopback, behind a proxy.
    pub http_plain: bool,
    /// The credentials that the HTTP door takes. Once it names any, or `allow` any rule, nobody may do what no rule allows.
    pub auth: Auth,
    /// Who may call what through the HTTP door.
    pub allow: Vec<Rule>,
    /// How often the files of certificates and credentials are looked at for changes, in seconds in files.
    #[serde(with = "seconds")]
    pub reload_every: Duration,
    /// The multi-cluster that this node's cluster is in; `None` for a cluster that is alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geo: Option<GeoConfig>,
    /// The safety checks in force. Tests take one out to show that it matters.
    #[doc(hidden)]
    #[serde(skip)]
    pub checks: Checks,
}

/// What a node says of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct KindConfig {
    /// How the instances of its versioned states agree: `bcas`, `vlb`, `log`, or a [protocol](crate::Builder::protocol) of
    /// the program's own.
    pub protocol: Option<String>,
    /// Updates between two snapshots of a state whose protocol is `log`; 1000 by default, 0 for none.
    pub snapshot_every: Option<u64>,
    /// The cluster whose instances lead, if the protocol has leaders as `vlb` does; by the actor's key if nobody says it.
    pub leader: Option<String>,
    /// Where its actors are at home in a multi-cluster: `lease`, `lease:CLUSTER`, or `none`.
    pub home: Option<GeoHome>,
    /// Whether the optimiser moves its actors. If nobody says it, those that travel and are placed freely: `balanced`, `random`,
    /// `local` or by a role.
    pub optimise: Option<bool>,
    /// Attempts of a reminder's tick whose turns fail by an exception, the first one included; 3 by default.
    pub retry: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: String::new(),
            cluster: "greenroom".into(),
            listen: "127.0.0.1:0".into(),
            advertise: None,
            http: None,
            grpc: None,
            http_hosts: Vec::new(),
            http_origins: Vec::new(),
            http_proxied: false,
            console: None,
            hide_keys: Vec::new(),
            table: "memory:".into(),
            lease: LeaseTimes::default().length,
            store: String::new(),
            namespace: String::new(),
            stores: BTreeMap::new(),
            reliable: Reliability::default(),
            optimiser: Optimiser::default(),
            hosts: HostsConfig::default(),
            threads: Threads::default(),
            kinds: BTreeMap::new(),
            store_timeout: Duration::from_secs(5),
            roles: Vec::new(),
            shards: 0,
            call_timeout: Duration::from_secs(10),
            idle: Duration::from_secs(600),
            mailbox_len_max: 4096,
            in_flight_max: BTreeMap::new(),
            history: BTreeMap::new(),
            shed_after: Duration::from_secs(5),
            long_turn: Duration::from_secs(30),
            stop_timeout: Duration::from_secs(5),
            drain_delay: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
            deactivating_timeout: Duration::from_secs(10),
            http_body_len_max: 1 << 20,
            http_requests_max: 1024,
            http_connections_max: 2048,
            http_head_timeout: Duration::from_secs(15),
            http_body_timeout: Duration::from_secs(15),
            http_idle_timeout: Duration::from_secs(75),
            http_drain_timeout: Duration::from_secs(2),
            backlog_len_max: 64 << 20,
            insecure_listen: false,
            tls: None,
            http_tls: None,
            http_plain: false,
            auth: Auth::default(),
            allow: Vec::new(),
            reload_every: Duration::from_secs(5),
            geo: None,
            checks: Checks::default(),
        }
    }
}

/// What the pages of the console may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsoleMode {
    /// There are none; what they show is still there as JSON.
    Off,
    /// They show, and the door lets no page change anything.
    #[default]
    Look,
    /// They change what who looks may change by their role, and call actors.
    Change,
}

impl ConsoleMode {
    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Look => "look",
            Self::Change => "change",
        }
    }
}

/// Durations as seconds, whole or not.
pub(crate) mod seconds {
    use std::fmt;
    use std::time::Duration;

    use serde::de::{Error, Unexpected, Visitor};
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        deserializer.deserialize_f64(Seconds)
    }

    /// Reads them.
    struct Seconds;

    impl Visitor<'_> for Seconds {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of seconds, such as 4 or 0.5, or a text with its unit, such as \"500ms\"")
        }

        fn visit_f64<E: Error>(self, seconds: f64) -> Result<Duration, E> {
            Duration::try_from_secs_f64(seconds)
                .map_err(|error| E::custom(format_args!("{seconds} is no number of seconds: {error}")))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
            crate::duration::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }

        fn visit_i64<E: Error>(self, seconds: i64) -> Result<Duration, E> {
            self.visit_f64(seconds as f64)
        }

        fn visit_u64<E: Error>(self, seconds: u64) -> Result<Duration, E> {
            Ok(Duration::from_secs(seconds))
        }
    }
}

/// Attempts of a reminder's tick whose turns fail by an exception, for kinds that do not say otherwise.
const TICK_ATTEMPTS_DEFAULT: u32 = 3;

impl Config {
    /// What other nodes are told to dial, for a node that listens at `bound`.
    pub(super) fn advertised(&self, bound: &str) -> String {
        match &self.advertise {
            // Port 0 in what is advertised means the one that the system chose.
            Some(advertise) => match (advertise.strip_suffix(":0"), bound.rsplit_once(':')) {
                (Some(host), Some((_, port))) => format!("{host}:{port}"),
                _ => advertise.clone(),
            },
            None => bound.to_owned(),
        }
    }

    /// Where clients are told to find an HTTP door that listens at `bound`: an address of all interfaces is none to dial.
    #[cfg(feature = "http")]
    pub(crate) fn advertised_http(&self, bound: &str) -> String {
        let everywhere = bound.parse::<std::net::SocketAddr>().is_ok_and(|bound| bound.ip().is_unspecified());
        match (&self.advertise, bound.rsplit_once(':')) {
            (Some(advertise), Some((_, port))) if everywhere => {
                let host = advertise.rsplit_once(':').map_or(advertise.as_str(), |(host, _)| host);
                format!("{host}:{port}")
            }
            _ => bound.to_owned(),
        }
    }

    /// The name of the protocol of a kind that itself says `own`.
    pub(crate) fn protocol_of(&self, kind: &str, own: &str) -> String {
        let said = self.kinds.get(kind).and_then(|said| said.protocol.as_deref());
        let own = if own.is_empty() { PROTOCOL_DEFAULT } else { own };
        said.unwrap_or(own).to_owned()
    }

    /// Returns the attempts that the tick of a reminder of `kind` has whose turns fail by an exception, at least one.
    pub(crate) fn tick_attempts(&self, kind: &str) -> u32 {
        self.kinds.get(kind).and_then(|kind| kind.retry).unwrap_or(TICK_ATTEMPTS_DEFAULT).max(1)
    }

    /// The files of TLS at the HTTP door; `None` for a plain one.
    pub(crate) fn door_tls(&self) -> Option<DoorTls> {
        let own = || self.http_tls.clone().or_else(|| self.tls.as_ref().map(NodeTls::for_door));
        if self.http_plain { None } else { own() }
    }

    /// The scheme of the HTTP door's address.
    pub(crate) fn door_scheme(&self) -> &'static str {
        if self.door_tls().is_some() { "https" } else { "http" }
    }

    /// Threads that run actors.
    pub(crate) fn shard_count(&self) -> usize {
        match self.shards {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            shards => shards,
        }
        .min(SHARDS_MAX)
    }
}

/// Whether only this machine can reach `address`. Names other than `localhost` are not trusted to stay what they are.
pub(crate) fn is_loopback(address: &str) -> bool {
    greenroom_store::url::is_on_this_machine(address)
}

/// The host of an address, without its port and the brackets of IPv6.
pub(super) fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']'])
}

/// Shards of one node: their numbers travel in 16 bits, and more cores than this want more nodes.
const SHARDS_MAX: usize = 256;

/// The protocol of versioned states of kinds that say nothing.
pub(crate) const PROTOCOL_DEFAULT: &str = "bcas";
