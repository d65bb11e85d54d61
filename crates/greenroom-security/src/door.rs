//! TLS at the doors, and to where keys are fetched from.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::chain::provider;
use crate::error::Error;
use crate::explain;
use crate::files::DoorTls;
use crate::identity::{Identity, Who};
use crate::pem::Pem;
use crate::watched::Watched;

/// What a door needs to speak TLS.
pub struct DoorCertificates {
    answering: Arc<ServerConfig>,
}

impl DoorCertificates {
    /// Makes sense of the contents of `files`.
    ///
    /// # Errors
    /// Which file is at fault, and what helps.
    pub fn read(files: &DoorTls, contents: &[Vec<u8>]) -> Result<Self, Error> {
        let sources = files.sources();
        let pem = |index: usize| -> Pem<'_> {
            Pem { what: sources[index].what, path: &sources[index].path, content: &contents[index] }
        };
        let (cert, key) = (pem(0), pem(1));
        let (chain, private): (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) = (cert.chain()?, key.key()?);
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| cert.unusable(error.to_string()))?;
        let builder = match files.clients.as_deref().map(|_| pem(2)) {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authority.roots()?), provider())
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| authority.unusable(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut answering =
            builder.with_single_cert(chain, private).map_err(|error| key.unusable(explain::own(&error)))?;
        answering.session_storage = Arc::new(NoServerSessionStorage {});
        answering.send_tls13_tickets = 0;
        Ok(Self { answering: Arc::new(answering) })
    }

    /// Keeps an eye on `files`.
    ///
    /// # Errors
    /// Which file is at fault, and what helps.
    pub fn watch(files: &DoorTls) -> Result<Watched<Self>, Error> {
        let read = files.clone();
        Watched::open(files.sources(), move |contents| Self::read(&read, contents))
    }

    /// Answers a client's handshake on `stream`, which is to speak `protocol` (its name in ALPN); the name of the client, if it has
    /// a certificate of `cluster`.
    ///
    /// # Errors
    /// Why there is no connection.
    ///
    /// # Cancel safety
    /// Dropping the future closes the stream.
    pub async fn accept<S>(
        &self,
        stream: S,
        cluster: &str,
        protocol: &[u8],
    ) -> io::Result<(server::TlsStream<S>, Option<String>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut answering = ServerConfig::clone(&self.answering);
        answering.alpn_protocols = vec![protocol.to_vec()];
        let accepted = TlsAcceptor::from(Arc::new(answering)).accept(stream).await;
        let stream = accepted.map_err(|error| io::Error::new(error.kind(), explain::handshake(&error)))?;
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| Identity::of(chain.first()?).ok());
        let client = shown.filter(|identity| identity.cluster == cluster).and_then(|identity| match identity.who {
            Who::Client(name) => Some(name),
            _ => None,
        });
        Ok((stream, client))
    }
}

/// Whether a client that sends this first byte speaks TLS.
pub fn is_tls(first: u8) -> bool {
    first == HANDSHAKE
}

/// Opens TLS on `stream` to the server called `host`.
///
/// # Errors
/// Why there is no connection.
///
/// # Cancel safety
/// Dropping the future closes the stream.
pub async fn connect<S>(stream: S, host: &str, config: Arc<ClientConfig>) -> io::Result<client::TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    TlsConnector::from(config).connect(name, stream).await
}

/// How a client trusts the authorities in the PEM `content` of the file at `path`, or the system's if there is none.
///
/// # Errors
/// What is wrong with the file.
pub fn client_config(authority: Option<(&Path, &[u8])>) -> Result<Arc<ClientConfig>, Error> {
    let roots = match authority {
        Some((path, content)) => Pem { what: "the authority", path, content }.roots()?,
        None => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        }
    };
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Setting { setting: "TLS".into(), reason: error.to_string() })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The type of the record that a TLS connection begins with.
const HANDSHAKE: u8 = 22;
