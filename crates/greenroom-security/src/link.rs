//! Connections between nodes: plain, or by mutual TLS.

use std::io;
use std::sync::{Mutex, PoisonError};

use greenroom_world::Stream;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::AsyncReadExt;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::certificates::NodeCertificates;
use crate::error::Error;
use crate::explain;
use crate::files::NodeTls;
use crate::identity::Identity;
use crate::stream::{Socket, Wrapped};
use crate::watched::Watched;

/// How a node's connections to others are made.
#[derive(Default)]
pub struct Links {
    tls: Option<Tls>,
    /// Why a node could not be reached the last time that one could not.
    failure: Mutex<Option<String>>,
}

struct Tls {
    certificates: Watched<NodeCertificates>,
    cluster: String,
}

/// What a connection has shown of who is at its other end.
#[derive(Debug)]
pub struct Peer {
    /// `None` on a plain connection.
    shown: Option<Result<Identity, String>>,
    /// Why its certificate's authority is not one for its cluster.
    misissued: Option<String>,
    cluster: String,
}

/// Why no connection was made of one that came in.
pub struct NotAccepted {
    /// What is wrong, and what helps.
    pub why: io::Error,
    /// Whether who dialled speaks plain, and can be told so.
    pub plain: bool,
    /// What it came on. Closed while bytes are unread, it would take back what was said last.
    pub stream: Option<Box<dyn Stream>>,
}

impl Links {
    /// Mutual TLS by `files`, for a node of `cluster`.
    ///
    /// # Errors
    /// Which file cannot be used, and what helps.
    pub fn secure(files: &NodeTls, cluster: &str) -> Result<Self, Error> {
        let (read, name) = (files.clone(), cluster.to_owned());
        let make = move |contents: &[Vec<u8>]| NodeCertificates::read(&read, &name, contents);
        let certificates = Watched::open(files.sources(), make)?;
        Ok(Self { tls: Some(Tls { certificates, cluster: cluster.to_owned() }), failure: Mutex::default() })
    }

    /// The certificates, for who looks after them; `None` for plain connections.
    pub fn certificates(&self) -> Option<&Watched<NodeCertificates>> {
        self.tls.as_ref().map(|tls| &tls.certificates)
    }

    /// Remembers why a node could not be reached.
    pub fn failed(&self, why: String) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Why a node could not be reached the last time that one could not.
    pub fn last_failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a connection of `stream`, which this node has dialled.
    ///
    /// # Errors
    /// Why the other side is not trusted, or does not trust us, and what helps.
    ///
    /// # Cancel safety
    /// Dropping the future closes the stream.
    pub async fn dialled(&self, stream: Box<dyn Stream>) -> io::Result<(Box<dyn Stream>, Peer)> {
        let Some(tls) = &self.tls else { return Ok((stream, Peer::plain())) };
        let connector = TlsConnector::from(tls.certificates.current().dialling.clone());
        // Nodes are told apart by their certificates: no name is sent, and none is looked at.
        let nobody = ServerName::try_from("node.greenroom").map_err(io::Error::other)?;
        let secured = connector.connect(nobody, Socket::new(stream)).await.map_err(explained)?;
        let peer = tls.peer(secured.get_ref().1.peer_certificates());
        Ok((Box::new(Wrapped::new(TlsStream::Client(secured))), peer))
    }

    /// Makes a connection of `stream`, which another node has dialled.
    ///
    /// # Errors
    /// Why who dialled is not trusted, or does not trust us, and what helps.
    ///
    /// # Cancel safety
    /// Dropping the future closes the stream.
    pub async fn accepted(&self, mut stream: Box<dyn Stream>) -> Result<(Box<dyn Stream>, Peer), NotAccepted> {
        let Some(tls) = &self.tls else { return Ok((stream, Peer::plain())) };
        let mut first = [0; 1];
        if let Err(why) = stream.read_exact(&mut first).await {
            return Err(NotAccepted { why, plain: false, stream: None });
        }
        if first[0] != HANDSHAKE {
            return Err(NotAccepted { why: io::Error::other(TLS_WANTED), plain: true, stream: Some(stream) });
        }
        let acceptor = TlsAcceptor::from(tls.certificates.current().answering.clone());
        let socket = Socket::behind(first[0], stream);
        let secured = acceptor.accept(socket).into_fallible().await.map_err(|(error, socket)| NotAccepted {
            why: explained(error),
            plain: false,
            stream: socket.into_stream(),
        })?;
        let peer = tls.peer(secured.get_ref().1.peer_certificates());
        Ok((Box::new(Wrapped::new(TlsStream::Server(secured))), peer))
    }
}

impl Tls {
    fn peer(&self, chain: Option<&[CertificateDer<'_>]>) -> Peer {
        let chain = chain.unwrap_or_default();
        let shown = match chain.first() {
            Some(certificate) => Identity::of(certificate),
            None => Err("it has no certificate".to_owned()),
        };
        let authorities = &self.certificates.current().authorities;
        let misissued = shown.as_ref().ok().and_then(|identity| authorities.not_for(&identity.cluster, chain));
        Peer { shown: Some(shown), misissued, cluster: self.cluster.clone() }
    }
}

impl Peer {
    fn plain() -> Self {
        Self { shown: None, misissued: None, cluster: String::new() }
    }

    /// Why who is at the other end is not the node called `name` of `cluster`, which may be another one; `None` if it is, or if
    /// the connection is plain.
    pub fn not_node_of(&self, cluster: &str, name: &str) -> Option<String> {
        match self.shown.as_ref()? {
            Ok(identity) => identity.not_node(cluster, name).or_else(|| self.misissued.clone()),
            Err(reason) => Some(format!("its certificate names no node: {reason}")),
        }
    }

    /// Why who is at the other end is not the node called `name`; `None` if it is, or if the connection is plain.
    pub fn not_node(&self, name: &str) -> Option<String> {
        self.not_node_of(&self.cluster, name)
    }
}

/// Whether these are the first bytes of a TLS handshake: no frame of ours begins so, as it would be 64 KiB long.
pub fn is_tls(first: &[u8]) -> bool {
    matches!(first, [HANDSHAKE, 3, 1..=4, ..])
}

fn explained(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), explain::handshake(&error))
}

/// The type of the record that a TLS connection begins with.
const HANDSHAKE: u8 = 22;
/// Told to who dials a node with TLS in plain.
pub const TLS_WANTED: &str =
    "this node takes only TLS connections; start the node that dials with certificates of the cluster (--tls-dir)";
/// Told to who dials a plain node with TLS.
pub const PLAIN_WANTED: &str =
    "the node that dials speaks TLS, but this one has no certificates; start it with --tls-dir too";
