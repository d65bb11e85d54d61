//! A node's command-line flags and configuration file, for the users' own programs.
//!
//! One line makes a program of a node:
//!
//! ```no_run
//! # use greenroom::prelude::*;
//! # #[derive(Default, Actor)] struct ChatRoom;
//! # #[actor] impl ChatRoom { pub async fn read(&self) -> u32 { 0 } }
//! #[tokio::main]
//! async fn main() -> greenroom::Result<()> {
//!     Node::builder().register::<ChatRoom>().run_from_args().await
//! }
//! ```
//!
//! What a flag says wins over what its environment variable says, that over the file, and that over the program.

mod empty;
mod field_names;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser};
use futures_util::FutureExt;
use greenroom_protocols::names::near_names;
use greenroom_security::files::NodeTls;

pub use self::empty::ignore_empty_variables;
use self::field_names::field_names;
use crate::locality::settings::OptimiserMode;
use crate::node::builder::Builder;
use crate::node::config::ConsoleMode;
use crate::node::signals::StopSignals;
use crate::node::{Config, Error, Node, Result};

/// How to run a node. A part of any clap command: `#[command(flatten)] node: NodeFlags`.
#[derive(Args, Clone, Debug, Default)]
pub struct NodeFlags {
    /// TOML file with any of the configuration's fields
    #[arg(long, value_name = "FILE", env = "GREENROOM_CONFIG")]
    pub config: Option<PathBuf>,
    /// The node's name, unique in its cluster; its address by default
    #[arg(long, env = "GREENROOM_NAME")]
    pub name: Option<String>,
    /// The cluster's name; nodes of another one are refused [default: greenroom]
    #[arg(long, env = "GREENROOM_CLUSTER")]
    pub cluster: Option<String>,
    /// Where other nodes reach this one; port 0 for a free one [default: 127.0.0.1:0]
    #[arg(long, value_name = "HOST:PORT", env = "GREENROOM_LISTEN")]
    pub listen: Option<String>,
    /// What other nodes are told to dial, if not the address that the node listens at
    #[arg(long, value_name = "HOST:PORT", env = "GREENROOM_ADVERTISE")]
    pub advertise: Option<String>,
    /// Where the HTTP door listens [default: no door]
    #[arg(long, value_name = "HOST:PORT", env = "GREENROOM_HTTP")]
    pub http: Option<String>,
    /// Where the gRPC door listens [default: no door]
    #[arg(long, value_name = "HOST:PORT", env = "GREENROOM_GRPC")]
    pub grpc: Option<String>,
    /// A name by which clients ask for the HTTP door, besides its addresses, localhost and its advertised name; may be
    /// repeated
    #[arg(long = "http-host", value_name = "NAME", env = "GREENROOM_HTTP_HOSTS", value_delimiter = ',')]
    pub http_hosts: Vec<String>,
    /// The origin of another site whose pages may call actors from browsers, as `https://app.example.org`; may be repeated
    #[arg(long = "http-origin", value_name = "ORIGIN", env = "GREENROOM_HTTP_ORIGINS", value_delimiter = ',')]
    pub http_origins: Vec<String>,
    /// What the pages of the console may do: off, look or change [default: change on loopback without credentials, else look]
    #[arg(long, value_name = "WHAT", env = "GREENROOM_CONSOLE", value_parser = console)]
    pub console: Option<ConsoleMode>,
    /// A kind whose actors' keys viewers do not see; may be repeated
    #[arg(long = "hide-keys", value_name = "KIND", env = "GREENROOM_HIDE_KEYS", value_delimiter = ',')]
    pub hide_keys: Vec<String>,
    /// The membership table: `memory:` for a node alone, `sqlite:PATH` for several on one machine, or an engine's URL that
    /// this program was built with, as `postgres://user@host/database` [default: memory:]
    #[arg(long, value_name = "URL", env = "GREENROOM_TABLE")]
    pub table: Option<String>,
    /// The namespace of the cluster's states in their stores, the same on all its nodes [default: the cluster's name; with
    /// clusters beside it one name for all]
    #[arg(long, env = "GREENROOM_NAMESPACE")]
    pub namespace: Option<String>,
    /// Time that the node may go on without the membership table; longer where its disk is slow [default: 4s]
    #[arg(long, value_name = "TIME", env = "GREENROOM_LEASE", value_parser = duration)]
    pub lease: Option<Duration>,
    /// The journal of reliable actors, the same for all nodes that host them: `sqlite:PATH` on one machine, an engine's URL,
    /// or `memory:`, which survives nothing
    #[arg(long, value_name = "URL", env = "GREENROOM_JOURNAL")]
    pub journal: Option<String>,
    /// Run each turn of reliable actors a second time before its commit, and let it fail if it comes to something else: for tests
    #[arg(long, env = "GREENROOM_RERUN")]
    pub rerun: bool,
    /// Whether the node finds out which actors talk with each other, says who would do better elsewhere, and moves them there [default: on]
    #[arg(long, value_name = "off|advise|on", env = "GREENROOM_OPTIMISER")]
    pub optimiser: Option<OptimiserMode>,
    /// Where hosts come in, processes in any language that run kinds of their own: `auto` for a socket named after the node in the
    /// user's runtime directory, `unix:PATH`, or `off` [default: auto]
    #[arg(long, value_name = "auto|off|unix:PATH", env = "GREENROOM_HOSTS")]
    pub hosts: Option<String>,
    /// What this node is for; may be repeated
    #[arg(long = "role", value_name = "ROLE", env = "GREENROOM_ROLE", value_delimiter = ',')]
    pub roles: Vec<String>,
    /// Threads that run actors [default: one a core]
    #[arg(long, value_name = "N", env = "GREENROOM_SHARDS")]
    pub shards: Option<usize>,
    /// Kinds to host, of those that the program has [default: all]
    #[arg(long, value_name = "KIND,..", env = "GREENROOM_KINDS", value_delimiter = ',')]
    pub kinds: Vec<String>,
    /// Time that a call may take unless it says otherwise [default: 10s]
    #[arg(long, value_name = "TIME", env = "GREENROOM_CALL_TIMEOUT", value_parser = duration)]
    pub call_timeout: Option<Duration>,
    /// Time without a message after which activations end [default: 10m]
    #[arg(long, value_name = "TIME", env = "GREENROOM_IDLE", value_parser = duration)]
    pub idle: Option<Duration>,
    /// Time for activations to end when the node stops [default: 5s]
    #[arg(long, value_name = "TIME", env = "GREENROOM_STOP_TIMEOUT", value_parser = duration)]
    pub stop_timeout: Option<Duration>,
    /// Time for which the node goes on serving after SIGTERM, while /readyz answers 503, before it drains: for load balancers
    /// that hear late [default: 0s]
    #[arg(long, value_name = "TIME", env = "GREENROOM_DRAIN_DELAY", value_parser = duration)]
    pub drain_delay: Option<Duration>,
    /// Folder with ca.pem, node.pem and node.key: TLS between nodes, and at the HTTP door
    #[arg(long, value_name = "DIR", env = "GREENROOM_TLS_DIR")]
    pub tls_dir: Option<PathBuf>,
    /// PEM file of the authorities that the nodes' certificates come from [default: ca.pem of --tls-dir]
    #[arg(long, value_name = "FILE", env = "GREENROOM_TLS_CA")]
    pub tls_ca: Option<PathBuf>,
    /// PEM file of this node's certificate [default: node.pem of --tls-dir]
    #[arg(long, value_name = "FILE", env = "GREENROOM_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file of this node's private key [default: node.key of --tls-dir]
    #[arg(long, value_name = "FILE", env = "GREENROOM_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// TOML file of the static tokens that the HTTP door takes
    #[arg(long, value_name = "FILE", env = "GREENROOM_TOKENS")]
    pub tokens: Option<PathBuf>,
    /// Keep the HTTP door plain though there are certificates: for a door on loopback
    #[arg(long, env = "GREENROOM_HTTP_PLAIN")]
    pub http_plain: bool,
    /// There is a proxy on this machine in front of the HTTP door: nobody counts as being on this machine
    #[arg(long, env = "GREENROOM_HTTP_PROXIED")]
    pub http_proxied: bool,
    /// Listen beyond loopback, though anybody who reaches the ports can call every actor
    #[arg(long, env = "GREENROOM_INSECURE_LISTEN")]
    pub insecure_listen: bool,
}

impl NodeFlags {
    /// The node that `builder` describes, changed as the flags and their file say.
    ///
    /// # Errors
    /// [`Error::Config`]: the file cannot be used, or a kind is not one of the program's. Nothing was started.
    pub fn apply(&self, builder: Builder) -> Result<Builder> {
        let flags = self.clone().without_empty();
        let mut read = Ok(());
        let builder = builder.configure(|config| {
            if let Some(path) = &flags.config {
                read = overlay(config, path);
            }
            flags.override_fields(config);
        });
        read?;
        flags.choose_kinds(builder)
    }

    /// Starts the node, says where it listens, and runs it until Ctrl-C, SIGTERM or SIGHUP.
    ///
    /// # Errors
    /// Those of [`NodeFlags::apply`], [`Builder::start`] and [`Node::run_until_ctrl_c`].
    pub fn run(&self, builder: Builder) -> impl Future<Output = Result<()>> + Send {
        let starting = self.start(builder);
        async move {
            let node = starting.await?;
            let signals = StopSignals::listen()?;
            announce(&node);
            node.run_until(signals).await
        }
        .boxed()
    }

    /// Starts the node, for programs that have more to do than to run it.
    ///
    /// # Errors
    /// Those of [`NodeFlags::apply`] and [`Builder::start`].
    pub fn start(&self, builder: Builder) -> impl Future<Output = Result<Node>> + Send {
        async move {
            raise_open_files();
            self.apply(builder)?.start().await
        }
        .boxed()
    }

    fn override_fields(&self, config: &mut Config) {
        fn set<T: Clone>(field: &mut T, flag: &Option<T>) {
            if let Some(value) = flag {
                field.clone_from(value);
            }
        }
        set(&mut config.name, &self.name);
        set(&mut config.cluster, &self.cluster);
        set(&mut config.listen, &self.listen);
        set(&mut config.table, &self.table);
        set(&mut config.namespace, &self.namespace);
        set(&mut config.lease, &self.lease);
        set(&mut config.reliable.journal, &self.journal);
        config.reliable.rerun |= self.rerun;
        set(&mut config.optimiser.mode, &self.optimiser);
        set(&mut config.hosts.listen, &self.hosts);
        if config.hosts.listen.is_empty() {
            config.hosts.listen = "auto".to_owned();
        }
        set(&mut config.shards, &self.shards);
        set(&mut config.call_timeout, &self.call_timeout);
        set(&mut config.idle, &self.idle);
        set(&mut config.stop_timeout, &self.stop_timeout);
        set(&mut config.drain_delay, &self.drain_delay);
        // An address that is empty in a file is none, too.
        for (address, flag) in
            [(&mut config.advertise, &self.advertise), (&mut config.http, &self.http), (&mut config.grpc, &self.grpc)]
        {
            *address = flag.clone().or(address.take()).filter(|address| !address.is_empty());
        }
        if !self.roles.is_empty() {
            config.roles.clone_from(&self.roles);
        }
        if !self.http_hosts.is_empty() {
            config.http_hosts.clone_from(&self.http_hosts);
        }
        if !self.http_origins.is_empty() {
            config.http_origins.clone_from(&self.http_origins);
        }
        config.insecure_listen |= self.insecure_listen;
        config.http_plain |= self.http_plain;
        config.http_proxied |= self.http_proxied;
        config.console = self.console.or(config.console);
        if !self.hide_keys.is_empty() {
            config.hide_keys.clone_from(&self.hide_keys);
        }
        config.auth.tokens = self.tokens.clone().or(config.auth.tokens.take());
        if let Some(folder) = &self.tls_dir {
            config.tls = Some(NodeTls::in_folder(folder));
            let clusters = folder.join("clusters.pem");
            if let Some(geo) = config.geo.as_mut().filter(|geo| geo.ca.is_none() && clusters.exists()) {
                geo.ca = Some(clusters);
            }
        }
        if self.tls_ca.is_some() || self.tls_cert.is_some() || self.tls_key.is_some() {
            let files = config.tls.get_or_insert_default();
            set(&mut files.ca, &self.tls_ca);
            set(&mut files.cert, &self.tls_cert);
            set(&mut files.key, &self.tls_key);
        }
    }

    fn choose_kinds(&self, builder: Builder) -> Result<Builder> {
        if self.kinds.is_empty() {
            return Ok(builder);
        }
        let known: Vec<&str> = builder.kinds().collect();
        if let Some(unknown) = self.kinds.iter().find(|kind| !known.contains(&kind.as_str())) {
            let near = did_you_mean(unknown, known.iter().copied());
            let reason = format!("this program has no kind {unknown:?}{near}; it has: {}", known.join(", "));
            return Err(Error::Config { path: "--kinds".to_owned(), reason });
        }
        Ok(builder.retain_kinds(|kind| self.kinds.iter().any(|wanted| wanted == kind)))
    }
}

impl Builder {
    /// Runs the node as the program's arguments say (see [`NodeFlags`]) until Ctrl-C, SIGTERM or SIGHUP. `--help` and arguments
    /// that are none end the process, with what there is to say.
    ///
    /// # Errors
    /// Those of [`NodeFlags::run`].
    pub fn run_from_args(self) -> impl Future<Output = Result<()>> + Send {
        async move {
            let mut matches = ignore_empty_variables(NodeProgram::command()).get_matches();
            let program = NodeProgram::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit());
            program.flags.run(self).await
        }
        .boxed()
    }
}

/// A program that is a node and nothing else.
#[derive(Parser)]
#[command(about = "A Greenroom node")]
struct NodeProgram {
    #[command(flatten)]
    flags: NodeFlags,
}

/// Says where `node` listens.
fn announce(node: &Node) {
    let mut lines = format!("node {} listens at {}\n", node.name(), node.address());
    if let Some(http) = node.http_address() {
        lines.push_str(&format!("its HTTP door is at {}://{http}\n", node.http_scheme()));
    }
    if let Some(grpc) = node.grpc_address() {
        lines.push_str(&format!("its gRPC door is at {grpc}\n"));
    }
    // A node goes on where nobody can read this, as on a full disk.
    let _ = std::io::stdout().lock().write_all(lines.as_bytes());
}

/// Takes the fields that the file at `path` has over into `config`.
fn overlay(config: &mut Config, path: &Path) -> Result<()> {
    let error = |reason: String| Error::Config { path: path.display().to_string(), reason };
    let text = std::fs::read_to_string(path).map_err(|why| error(why.to_string()))?;
    let read: toml::Table = text.parse().map_err(|why: toml::de::Error| error(why.to_string()))?;
    let known = field_names::<Config>();
    if let Some(unknown) = read.keys().find(|name| !known.contains(&name.as_str())) {
        let near = did_you_mean(unknown, known.iter().copied());
        return Err(error(format!("there is no setting {unknown:?}{near}")));
    }
    // On its own first, as only this says the line of a value that does not fit.
    toml::from_str::<Config>(&text).map_err(|why| error(why.to_string()))?;
    let mut merged = toml::Table::try_from(&*config).map_err(|why| error(why.to_string()))?;
    merged.extend(read);
    let checks = config.checks;
    *config = merged.try_into().map_err(|why: toml::de::Error| error(why.to_string()))?;
    config.checks = checks;
    Ok(())
}

fn did_you_mean<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    match near_names(wanted, names).first() {
        Some(near) => format!("; did you mean {near:?}?"),
        None => String::new(),
    }
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    let seconds = || text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    crate::duration::parse(text)
        .or_else(seconds)
        .ok_or("a time is a number and its unit, such as 500ms, 2s or 1m, or seconds")
}

fn console(text: &str) -> Result<ConsoleMode, &'static str> {
    let known = [ConsoleMode::Off, ConsoleMode::Look, ConsoleMode::Change];
    known.into_iter().find(|mode| mode.name() == text).ok_or("it is off, look or change")
}

/// Lets the process open as many files as the system allows it: the usual first limit is for programs of a past age.
fn raise_open_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit to write to and to read from.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(args: &[&str]) -> NodeFlags {
        NodeProgram::try_parse_from([&["node"], args].concat()).unwrap_or_else(|error| panic!("{error}")).flags
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn configured(flags: &NodeFlags, program: Config) -> Result<Config> {
        let mut found = None;
        let builder = flags.apply(Builder::default().config(program))?;
        drop(builder.configure(|config| found = Some(config.clone())));
        Ok(found.expect("the closure has run"))
    }

    #[test]
    fn every_field_of_the_configuration_is_accepted_by_its_name() {
        let names = field_names::<Config>();
        assert!(names.len() > 50 && names.contains(&"console") && names.contains(&"geo"), "{names:?}");
        for name in names {
            // No field is a date: what is refused is the value.
            let file = file(&format!("{name} = 1979-05-27\n"));
            let refused = configured(&flags(&["--config", file.path().to_str().unwrap()]), Config::default());
            let refused = refused.expect_err("a date is no value").to_string();
            assert!(!refused.contains("there is no setting"), "{refused}");
        }
        let file = file("console = \"look\"\n");
        let read = configured(&flags(&["--config", file.path().to_str().unwrap()]), Config::default()).unwrap();
        assert_eq!(read.console, Some(ConsoleMode::Look));
    }

    #[test]
    fn what_is_empty_counts_as_not_set() {
        let file = file("advertise = \"\"\nhttp = \"\"\n");
        let path = file.path().to_str().unwrap();
        let given = flags(&["--config", path, "--name", "", "--listen", "", "--role", "", "--journal", ""]);
        let read = configured(&given, Config::default()).unwrap();
        let plain = Config::default();
        assert_eq!((read.name, read.listen, read.roles), (plain.name, plain.listen, plain.roles));
        assert_eq!((read.advertise, read.http), (None, None));
    }

    #[test]
    fn a_file_may_name_a_multi_cluster() {
        let file = file(
            "cluster = \"eu\"\n[geo.clusters.eu]\ngateways = [\"a:1\"]\n[geo.kinds.room]\ninstances = \"per_cluster\"\n",
        );
        let read = configured(&flags(&["--config", file.path().to_str().unwrap()]), Config::default()).unwrap();
        assert_eq!(read.geo.unwrap().clusters["eu"].gateways, ["a:1"]);
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_program() {
        let file = file("cluster = \"from-file\"\nlisten = \"127.0.0.1:7000\"\ncall_timeout = 3\n");
        let path = file.path().to_str().unwrap();
        let flags = flags(&[
            "--config",
            path,
            "--cluster",
            "from-flag",
            "--role",
            "a",
            "--role",
            "b",
            "--idle",
            "90s",
            "--lease",
            "20s",
        ]);
        let program =
            Config { cluster: "from-program".into(), table: "sqlite:from-program.db".into(), ..Config::default() };
        let config = configured(&flags, program).unwrap();
        assert_eq!(config.cluster, "from-flag");
        assert_eq!(config.listen, "127.0.0.1:7000");
        assert_eq!(config.table, "sqlite:from-program.db");
        assert_eq!(config.call_timeout, Duration::from_secs(3));
        assert_eq!(config.idle, Duration::from_secs(90));
        assert_eq!(config.lease, Duration::from_secs(20));
        assert_eq!(config.roles, ["a", "b"]);
    }

    #[test]
    fn a_setting_that_is_none_is_refused_with_the_near_name() {
        for (text, said) in [
            ("clustr = \"x\"", "did you mean \"cluster\""),
            ("call_timeout = \"soon\"", "call_timeout"),
            ("call_timeout = -1", "no number of seconds"),
            ("cluster = ", "line 1"),
        ] {
            let file = file(text);
            let flags = flags(&["--config", file.path().to_str().unwrap()]);
            let error = configured(&flags, Config::default()).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let missing = configured(&flags(&["--config", "/no/such/file"]), Config::default()).unwrap_err();
        assert!(missing.to_string().contains("/no/such/file"));
    }

    #[test]
    fn a_kind_that_the_program_does_not_have_is_refused() {
        let error = configured(&flags(&["--kinds", "chat_room"]), Config::default()).unwrap_err();
        assert!(error.to_string().contains("no kind \"chat_room\""));
    }

    #[test]
    fn a_time_without_a_unit_is_in_seconds_as_in_files() {
        assert_eq!(flags(&["--idle", "90"]).idle, flags(&["--idle", "90s"]).idle);
        assert!(NodeProgram::try_parse_from(["node", "--idle", "soon"]).is_err());
    }
}
