//! Where to connect, as whom, and how.

use std::sync::Arc;
use std::time::Duration;

use greenroom_store::url::{Host, Remote};
use greenroom_store::{Result, StoreError};
use redis::RedisConnectionInfo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::Options;

/// Everything that a connection needs to know.
#[derive(Clone)]
pub(crate) struct Target {
    remote: Remote,
    /// The store as its URL names it, without a password.
    pub(crate) name: String,
    /// What all its keys in Redis begin with.
    pub(crate) prefix: String,
    pub(crate) tls: Option<(TlsConnector, ServerName<'static>)>,
    pub(crate) options: Options,
    database: i64,
}

impl Target {
    /// What `remote` and `options` say, checked; connects nowhere.
    pub(crate) fn new(remote: &Remote, options: &Options) -> Result<Self> {
        remote.check_parameters(&PARAMETERS)?;
        let name = remote.to_string();
        let wrong = |reason: String| StoreError::Configuration { store: name.clone(), reason };
        let number = match remote.path.as_str() {
            "" => Some(0),
            path => path.parse::<u16>().ok(),
        };
        let database = number.map(i64::from).ok_or_else(|| {
            wrong("what stands behind its host is to be the database's number: redis://host/0".to_owned())
        })?;
        let mut options = options.clone();
        if let Some(replicas) = remote.parameters.find("replicas") {
            let replicas = replicas.parse().ok().filter(|number| *number <= REPLICAS_MAX);
            options.replicas =
                replicas.ok_or_else(|| wrong(format!("`replicas` is to be a number from 0 to {REPLICAS_MAX}")))?;
        }
        let prefix = remote.parameters.find("prefix").unwrap_or(&options.prefix).to_owned();
        if prefix.is_empty() || prefix.len() > PREFIX_BYTES_MAX {
            return Err(wrong(format!("`prefix` is to have 1 to {PREFIX_BYTES_MAX} bytes")));
        }
        let authorities = remote.parameters.path("ca");
        let tls = match remote.tls {
            Some(true) => {
                let roots = roots(authorities.as_deref()).map_err(wrong)?;
                let server = ServerName::try_from(remote.hosts[0].name.clone());
                Some((connector(roots).map_err(wrong)?, server.map_err(|error| wrong(error.to_string()))?))
            }
            _ if authorities.is_some() => {
                return Err(wrong("it names a `ca` without TLS; write rediss:// or leave it out".to_owned()));
            }
            _ => None,
        };
        Ok(Self { remote: remote.clone(), name, prefix, tls, options, database })
    }

    /// The one host.
    pub(crate) fn host(&self) -> &Host {
        &self.remote.hosts[0]
    }

    /// Who logs in, for messages.
    pub(crate) fn user(&self) -> &str {
        self.remote.user.as_deref().unwrap_or("default")
    }

    /// What is said first on a connection, with the password as it is now.
    pub(crate) fn greeting(&self) -> Result<RedisConnectionInfo> {
        let mut info = RedisConnectionInfo::default().set_db(self.database).set_skip_set_lib_name();
        if let Some(user) = &self.remote.user {
            info = info.set_username(user);
        }
        if let Some(password) = self.remote.password()? {
            info = info.set_password(password.expose());
        }
        Ok(info)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("name", &self.name).field("options", &self.options).finish_non_exhaustive()
    }
}

/// The certificates of the file `authorities`, or of the system.
fn roots(authorities: Option<&std::path::Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = authorities else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err("this system trusts no certificate authority; name a file with ca".to_owned());
        }
        return Ok(roots);
    };
    let unreadable = |error: &dyn std::fmt::Display| {
        format!("the certificates of ca={} cannot be read: {error}; it is to be a PEM file", path.display())
    };
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() {
        return Err(unreadable(&"it holds none"));
    }
    Ok(roots)
}

fn connector(roots: RootCertStore) -> Result<TlsConnector, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()).into())
}

/// What may stand behind the `?` of the URL, beside what every engine's URL may have.
const PARAMETERS: [&str; 3] = ["ca", "prefix", "replicas"];

const PREFIX_BYTES_MAX: usize = 100;
const REPLICAS_MAX: u32 = 16;

/// Silence of the peer after which the kernel gives up a connection on which something was sent.
pub(crate) const TCP_SILENCE_MAX: Duration = Duration::from_secs(30);
