//! What a URL says about an etcd.

use std::path::Path;
use std::time::Duration;

use greenroom_store::url::Remote;
use greenroom_store::{Result, StoreError};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// An etcd as its URL describes it.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) endpoints: Vec<Endpoint>,
    /// Before every key of etcd that belongs to this store.
    pub(crate) root: String,
    pub(crate) request_bytes_max: usize,
    pub(crate) operations_max: usize,
}

impl Settings {
    pub(crate) fn of(remote: &Remote) -> Result<Self> {
        remote.check_parameters(&["ca", "cert", "key", "request_bytes_max", "operations_max"])?;
        let tls = tls(remote)?;
        let endpoints = remote.hosts.iter().map(|host| {
            let uri = format!("{}://{host}", if tls.is_some() { "https" } else { "http" });
            let endpoint = Endpoint::from_shared(uri).map_err(|error| bad(remote, &error))?;
            let endpoint = endpoint
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_nodelay(true)
                .initial_stream_window_size(WINDOW_BYTES)
                .initial_connection_window_size(WINDOW_BYTES)
                .http2_keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT)
                .keep_alive_while_idle(false);
            match &tls {
                Some(tls) => endpoint.tls_config(tls.clone()).map_err(|error| bad(remote, &error)),
                None => Ok(endpoint),
            }
        });
        let path = remote.path.trim_matches('/');
        if path.contains('\0') || path.len() > PREFIX_BYTES_MAX {
            let reason = format!("its prefix holds a NUL or has more than {PREFIX_BYTES_MAX} bytes; choose another");
            return Err(StoreError::Configuration { store: remote.to_string(), reason });
        }
        Ok(Self {
            endpoints: endpoints.collect::<Result<_>>()?,
            root: format!("{}/", if path.is_empty() { PREFIX_DEFAULT } else { path }),
            request_bytes_max: number(remote, "request_bytes_max", REQUEST_BYTES_MAX, REQUEST_BYTES_LEAST)?,
            operations_max: number(remote, "operations_max", OPERATIONS_MAX, 4)?,
        })
    }
}

fn tls(remote: &Remote) -> Result<Option<ClientTlsConfig>> {
    let [ca, cert, key] = ["ca", "cert", "key"].map(|name| remote.parameters.path(name));
    let named = ca.is_some() || cert.is_some() || key.is_some();
    match remote.tls {
        Some(true) => {}
        None if named => {}
        Some(false) if named => return Err(bad(remote, &"tls=off, but ca, cert or key is given; leave one out")),
        _ => return Ok(None),
    }
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| {
            bad(remote, &format!("the file {} cannot be read ({error}); let this user read it", path.display()))
        })
    };
    let mut tls = ClientTlsConfig::new().timeout(CONNECT_TIMEOUT);
    tls = match ca {
        Some(ca) => tls.ca_certificate(Certificate::from_pem(read(&ca)?)),
        None => tls.with_native_roots(),
    };
    match (cert, key) {
        (Some(cert), Some(key)) => tls = tls.identity(Identity::from_pem(read(&cert)?, read(&key)?)),
        (None, None) => {}
        _ => return Err(bad(remote, &"a client's certificate needs both cert=FILE and key=FILE")),
    }
    Ok(Some(tls))
}

fn number(remote: &Remote, name: &str, default: usize, least: usize) -> Result<usize> {
    let Some(text) = remote.parameters.find(name) else { return Ok(default) };
    let parsed = text.parse().ok().filter(|number| *number >= least);
    parsed.ok_or_else(|| bad(remote, &format!("{name}={text:?} is not a number of at least {least}")))
}

fn bad(remote: &Remote, reason: &dyn std::fmt::Display) -> StoreError {
    StoreError::Configuration { store: remote.to_string(), reason: reason.to_string() }
}

const PREFIX_DEFAULT: &str = "greenroom";

/// Room for a prefix beside the longest key.
const PREFIX_BYTES_MAX: usize = 100;

/// etcd's `--max-request-bytes`: 1.5 MiB by default.
const REQUEST_BYTES_MAX: usize = 1_536 << 10;

/// Below this no journal could work.
const REQUEST_BYTES_LEAST: usize = 1 << 20;

/// etcd's `--max-txn-ops`: 128 by default.
const OPERATIONS_MAX: usize = 128;

/// To connect to one endpoint; then the next is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// So that the largest value needs no second permission to be sent.
const WINDOW_BYTES: u32 = 4 << 20;

/// Silence on a connection with open calls after which it is tried: twice what etcd allows
/// (`--grpc-keepalive-min-time`, 5 s).
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// Silence after that until it is given up.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
