//! What the server says of itself: above all, what an acknowledged write survives.

use std::fmt;

use greenroom_store::{Result, StoreError};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{RedisError, Value};

use crate::fault;
use crate::script::text;
use crate::target::Target;

/// The server, as it was when the store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Its version, as it says; empty if it may not be asked.
    pub version: String,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// Its connected replicas.
    pub replicas: u32,
}

/// What an acknowledged write survives. `Display` says what may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The loss of power: `appendonly yes`, `appendfsync always`.
    Full,
    /// Most often the death of the server's process (not while a sync is slow); a loss of power takes about the last
    /// second, or two: `appendfsync everysec`.
    LastSecond,
    /// The death of the server's process; a loss of power takes what the system had not written: `appendfsync no`.
    ProcessCrash,
    /// Any end of the server takes what was written since its last snapshot, or everything if it makes none:
    /// `appendonly no`.
    Snapshots,
    /// Not known: the user may not ask (`CONFIG GET`).
    Unknown,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "nothing acknowledged is lost with this server",
            Self::LastSecond => {
                "a loss of power (or a crash while a sync is slow) takes a second or two of acknowledged writes"
            }
            Self::ProcessCrash => "a loss of power takes acknowledged writes that the system had not written yet",
            Self::Snapshots => "a restart or crash takes the acknowledged writes since the last snapshot, or all",
            Self::Unknown => "the user may not ask the server (CONFIG GET) whether acknowledged writes are kept",
        })
    }
}

impl Status {
    /// Asks, and refuses a server that cannot carry a store.
    pub(crate) async fn ask(connection: &mut MultiplexedConnection, target: &Target) -> Result<Self> {
        let fault = |error: RedisError| fault::of_opening(target, &error);
        let mut info = redis::cmd("INFO");
        let info = connection.req_packed_command(&info.take()).await.map_err(fault)?;
        let info = text(&info).unwrap_or_default();
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_default().trim_end().to_owned()
        };
        if field("redis_mode") == "cluster" || field("cluster_enabled") == "1" {
            return Err(fault::cluster(target));
        }
        if field("role") == "slave" {
            let reason = "it is a replica, which may be behind; name the primary".to_owned();
            return Err(StoreError::Unavailable { store: target.name.clone(), reason });
        }
        let mut settings = Vec::new();
        for pattern in ["append*", "maxmemory*"] {
            let mut config = redis::cmd("CONFIG");
            let answer = connection.req_packed_command(config.arg("GET").arg(pattern)).await.map_err(fault)?;
            if let Value::Array(pairs) = answer {
                settings.extend(pairs.iter().map(|part| text(part).unwrap_or_default()));
            }
        }
        let setting = |name: &str| {
            let pair = settings.chunks_exact(2).find(|pair| pair[0] == name)?;
            Some(pair[1].as_str())
        };
        let policy = setting("maxmemory-policy").unwrap_or_default();
        if policy.starts_with("allkeys") && setting("maxmemory") != Some("0") {
            let reason = format!(
                "its maxmemory-policy {policy} throws acknowledged values away when memory is short; \
                 set maxmemory-policy noeviction"
            );
            return Err(StoreError::Configuration { store: target.name.clone(), reason });
        }
        let durability = match (setting("appendonly"), setting("appendfsync")) {
            (Some("yes"), Some("always")) => Durability::Full,
            (Some("yes"), Some("everysec")) => Durability::LastSecond,
            (Some("yes"), _) => Durability::ProcessCrash,
            (Some(_), _) => Durability::Snapshots,
            (None, _) => Durability::Unknown,
        };
        let replicas = field("connected_slaves").parse().unwrap_or_default();
        Ok(Self { version: field("redis_version"), durability, replicas })
    }
}
