//! What a node's files of certificates come to: how it dials, answers, and who it is.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::UnixTime;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};

use crate::authorities::Authorities;
use crate::chain::{ChainVerifier, provider};
use crate::error::Error;
use crate::explain;
use crate::files::NodeTls;
use crate::identity::Identity;
use crate::pem::Pem;

/// What a node needs to speak with the other nodes of its cluster.
pub struct NodeCertificates {
    pub(crate) dialling: Arc<ClientConfig>,
    pub(crate) answering: Arc<ServerConfig>,
    pub(crate) authorities: Authorities,
    identity: Identity,
    until: UnixTime,
}

impl NodeCertificates {
    /// Makes sense of the contents of `files`, for a node of `cluster`: the key must fit the certificate, which must lead
    /// to the authority, be valid now, for both sides of a connection, and for a node of this cluster.
    ///
    /// # Errors
    /// Which file is at fault, and what helps.
    pub fn read(files: &NodeTls, cluster: &str, contents: &[Vec<u8>]) -> Result<Self, Error> {
        let [ca, cert, key] = pems(files, contents)?;
        let authorities = Authorities::read(&ca)?;
        let roots = authorities.all().clone();
        let (chain, private) = (cert.chain()?, key.key()?);
        let verifier = Arc::new(ChainVerifier { roots: roots.clone(), provider: provider() });
        let now = UnixTime::now();
        let until = verifier.valid_until(&chain, now).map_err(|error| cert.unusable(explain::own(&error)))?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider())
            .build()
            .map_err(|error| ca.unusable(error.to_string()))?;
        clients.verify_client_cert(&chain[0], &chain[1..], now).map_err(|error| cert.unusable(explain::own(&error)))?;
        let identity = Identity::of(&chain[0]).map_err(|reason| cert.unusable(format!("{reason}; {REISSUE}")))?;
        if identity.cluster != cluster {
            let reason =
                format!("it is of cluster {:?}, but this node's cluster is {cluster:?}; {REISSUE}", identity.cluster);
            return Err(cert.unusable(reason));
        }

        let mut answering = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| cert.unusable(error.to_string()))?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain.clone(), private.clone_key())
            .map_err(|error| key.unusable(explain::own(&error)))?;
        // No session is resumed: each connection is judged by the certificates that are in force.
        answering.session_storage = Arc::new(NoServerSessionStorage {});
        answering.send_tls13_tickets = 0;
        let mut dialling = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| cert.unusable(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(chain, private)
            .map_err(|error| key.unusable(explain::own(&error)))?;
        dialling.resumption = Resumption::disabled();
        dialling.enable_sni = false;
        Ok(Self { dialling: Arc::new(dialling), answering: Arc::new(answering), authorities, identity, until })
    }

    /// Who the certificate says that this node is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Seconds until the certificate is no longer valid; 0 once it is not.
    pub fn seconds_left(&self) -> u64 {
        self.until.as_secs().saturating_sub(UnixTime::now().as_secs())
    }
}

fn pems<'a>(files: &'a NodeTls, contents: &'a [Vec<u8>]) -> Result<[Pem<'a>; 3], Error> {
    let [ca, cert, key] = contents else {
        return Err(Error::Setting { setting: "tls".into(), reason: "three files are wanted".into() });
    };
    Ok([
        Pem { what: "the cluster's authority (tls.ca)", path: &files.ca, content: ca },
        Pem { what: "the node's certificate (tls.cert)", path: &files.cert, content: cert },
        Pem { what: "the node's private key (tls.key)", path: &files.key, content: key },
    ])
}

/// What helps against a certificate that is for somebody else.
const REISSUE: &str = "issue one with `greenroom certs node`";
