//! Real servers for tests: each started on a free loopback port with a directory of its own, and killed when its
//! handle is dropped or the test's process dies.
//!
//! Only tests use this crate. A server that is not installed is an [`Error::Missing`], which names the package to install;
//! tests then [skip loudly](unless_missing), or fail if [`REQUIRED_VARIABLE`] says that every engine must be there.

mod cache;
mod etcd;
mod http;
mod kafka;
mod kube;
mod minio;
mod ports;
mod postgres;
mod process;
mod redis;
mod tls;

pub use cache::{CACHE_VARIABLE, GoEngine};
pub use etcd::{Etcd, EtcdOptions};
pub use kafka::Kafka;
pub use kube::KubeApiserver;
pub use minio::Minio;
pub use ports::{free_address, free_port};
pub use postgres::{Postgres, PostgresOptions};
pub use process::{Process, program, wait_until};
pub use redis::{Redis, RedisOptions};
pub use tls::Certificate;

/// What stops an engine from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is not on this machine.
    #[error("{engine} is not installed: {remedy}")]
    Missing {
        /// The engine.
        engine: &'static str,
        /// The command that installs it.
        remedy: String,
    },
    /// It was started and is not ready.
    #[error("{engine} did not start: {reason}")]
    Start {
        /// The engine.
        engine: &'static str,
        /// What it said.
        reason: String,
    },
}

/// When this environment variable is set, a missing engine fails its tests instead of skipping them.
pub const REQUIRED_VARIABLE: &str = "GREENROOM_ENGINES_REQUIRED";

/// The started engine; `None`, said loudly, if it is not installed and [`REQUIRED_VARIABLE`] is not set.
///
/// # Panics
///
/// If the engine is there and does not start, or is missing though required.
pub fn unless_missing<T>(started: Result<T, Error>) -> Option<T> {
    match started {
        Ok(engine) => Some(engine),
        Err(Error::Missing { engine, remedy }) if std::env::var_os(REQUIRED_VARIABLE).is_none() => {
            eprintln!("SKIPPED: {engine} is not installed, so nothing was checked against it; {remedy}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
