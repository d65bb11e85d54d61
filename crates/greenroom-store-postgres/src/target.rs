//! Where to connect, as what, and how.

use std::time::Duration;

use greenroom_store::url::Remote;
use greenroom_store::{Result, StoreError};
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Options;
use crate::schema::Names;
use crate::tls::{self, Mode};

/// Everything that a connection needs to know.
#[derive(Clone)]
pub(crate) struct Target {
    remote: Remote,
    /// The store as its URL names it, without a password.
    pub(crate) name: String,
    pub(crate) tls: MakeRustlsConnect,
    pub(crate) names: Names,
    pub(crate) options: Options,
    mode: Mode,
}

impl Target {
    /// What `remote` and `options` say, checked; connects nowhere.
    pub(crate) fn new(remote: &Remote, options: &Options) -> Result<Self> {
        remote.check_parameters(&PARAMETERS)?;
        let name = remote.to_string();
        let wrong = |reason: String| StoreError::Configuration { store: name.clone(), reason };
        if remote.path.is_empty() {
            let reason = "its URL names no database; write one behind the host: postgres://host/database";
            return Err(wrong(reason.to_owned()));
        }
        let mode = mode(remote).map_err(wrong)?;
        let authorities = remote.parameters.path("sslrootcert").or_else(|| remote.parameters.path("ca"));
        let tls = tls::connector(mode, authorities.as_deref()).map_err(wrong)?;
        let schema = remote.parameters.find("schema").unwrap_or(&options.schema);
        let plain = schema.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if !plain || schema.is_empty() || schema.len() > SCHEMA_BYTES_MAX || schema.starts_with("pg_") {
            let reason = format!(
                "{schema:?} cannot be its schema: name it with 1 to {SCHEMA_BYTES_MAX} letters, digits, _ and -, \
                 and not pg_ in front"
            );
            return Err(wrong(reason));
        }
        let mut options = options.clone();
        if let Some(number) = remote.parameters.find("connections") {
            let number = number.parse().ok().filter(|number| (1..=CONNECTIONS_MAX).contains(number));
            let wrong = || wrong(format!("`connections` is to be a number from 1 to {CONNECTIONS_MAX}"));
            options.connections = number.ok_or_else(wrong)?;
        }
        options.connections = options.connections.clamp(1, CONNECTIONS_MAX);
        let names = Names::within(schema);
        Ok(Self { remote: remote.clone(), name, tls, names, options, mode })
    }

    /// For the client, with the password as it is now.
    pub(crate) fn config(&self) -> Result<Config> {
        let mut config = Config::new();
        for host in &self.remote.hosts {
            config.host(&host.name).port(host.port);
        }
        config.dbname(&self.remote.path).application_name("greenroom");
        config.user(self.remote.user.as_deref().unwrap_or("postgres"));
        if let Some(password) = self.remote.password()? {
            config.password(password.expose());
        }
        config.ssl_mode(match self.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        if self.remote.hosts.len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config.connect_timeout(self.options.connect_timeout).tcp_user_timeout(TCP_SILENCE_MAX);
        config.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL).keepalives_retries(3);
        Ok(config)
    }

    /// Who connects and to what, for messages.
    pub(crate) fn user(&self) -> &str {
        self.remote.user.as_deref().unwrap_or("postgres")
    }

    /// The database's name.
    pub(crate) fn database(&self) -> &str {
        &self.remote.path
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("name", &self.name).field("options", &self.options).finish_non_exhaustive()
    }
}

fn mode(remote: &Remote) -> Result<Mode, String> {
    let named = remote.parameters.find("sslmode");
    match (named, remote.tls) {
        (Some(_), Some(_)) => Err("its URL has both `tls` and `sslmode`; keep one".to_owned()),
        (Some(name), None) => {
            let known = || format!("there is no sslmode {name:?}; there are: {}", tls::NAMES.join(", "));
            Mode::named(name).ok_or_else(known)
        }
        (None, Some(true)) => Ok(Mode::VerifyFull),
        (None, Some(false)) => Ok(Mode::Disable),
        (None, None) => Ok(Mode::Prefer),
    }
}

/// What may stand behind the `?` of the URL, beside what every engine's URL may have.
const PARAMETERS: [&str; 5] = ["ca", "connections", "schema", "sslmode", "sslrootcert"];

/// A longer name would be cut by PostgreSQL.
const SCHEMA_BYTES_MAX: usize = 63;

/// Most connections for writes, and as many for reads: the server has 100 for everybody unless it is told otherwise.
const CONNECTIONS_MAX: usize = 16;

/// Silence of the peer after which the kernel gives up a connection on which something was sent.
const TCP_SILENCE_MAX: Duration = Duration::from_secs(30);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
