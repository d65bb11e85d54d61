//! Connections between nodes: plain, or by mutual TLS.

#[cfg(not(feature = "tls"))]
mod plain;
#[cfg(feature = "tls")]
mod secured;

use std::io;
use std::sync::{Mutex, PoisonError};

use greenroom_world::Stream;

#[cfg(not(feature = "tls"))]
use self::plain::{Shown, Tls};
#[cfg(feature = "tls")]
use self::secured::{Shown, Tls};
#[cfg(feature = "tls")]
use crate::certificates::NodeCertificates;
use crate::error::Error;
use crate::files::NodeTls;
#[cfg(feature = "tls")]
use crate::watched::Watched;

/// How a node's connections to others are made.
#[derive(Default)]
pub struct Links {
    tls: Option<Tls>,
    /// Why a node could not be reached the last time that one could not.
    failure: Mutex<Option<String>>,
}

/// What a connection has shown of who is at its other end.
#[derive(Debug)]
pub struct Peer {
    /// `None` on a plain connection.
    shown: Option<Shown>,
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
    /// Which file cannot be used, and what helps; without the feature `tls`, that it is wanted.
    pub fn secure(files: &NodeTls, cluster: &str) -> Result<Self, Error> {
        Ok(Self { tls: Some(Tls::open(files, cluster)?), failure: Mutex::default() })
    }

    /// The certificates, for who looks after them; `None` for plain connections.
    #[cfg(feature = "tls")]
    pub fn certificates(&self) -> Option<&Watched<NodeCertificates>> {
        self.tls.as_ref().map(Tls::certificates)
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
        match &self.tls {
            None => Ok((stream, Peer { shown: None })),
            Some(tls) => tls.dialled(stream).await.map(|(stream, shown)| (stream, Peer { shown: Some(shown) })),
        }
    }

    /// Makes a connection of `stream`, which another node has dialled.
    ///
    /// # Errors
    /// Why who dialled is not trusted, or does not trust us, and what helps.
    ///
    /// # Cancel safety
    /// Dropping the future closes the stream.
    pub async fn accepted(&self, stream: Box<dyn Stream>) -> Result<(Box<dyn Stream>, Peer), NotAccepted> {
        match &self.tls {
            None => Ok((stream, Peer { shown: None })),
            Some(tls) => tls.accepted(stream).await.map(|(stream, shown)| (stream, Peer { shown: Some(shown) })),
        }
    }
}

impl Peer {
    /// Why who is at the other end is not the node called `name` of `cluster`, which may be another one; `None` if it is, or if
    /// the connection is plain.
    pub fn not_node_of(&self, cluster: &str, name: &str) -> Option<String> {
        self.shown.as_ref()?.not_node_of(cluster, name)
    }

    /// Why who is at the other end is not the node called `name`; `None` if it is, or if the connection is plain.
    pub fn not_node(&self, name: &str) -> Option<String> {
        let shown = self.shown.as_ref()?;
        shown.not_node_of(shown.own_cluster(), name)
    }
}

/// Whether these are the first bytes of a TLS handshake: no frame of ours begins so, as it would be 64 KiB long.
pub fn is_tls(first: &[u8]) -> bool {
    matches!(first, [HANDSHAKE, 3, 1..=4, ..])
}

/// The type of the record that a TLS connection begins with.
const HANDSHAKE: u8 = 22;
/// Told to who dials a node with TLS in plain.
pub const TLS_WANTED: &str =
    "this node takes only TLS connections; start the node that dials with certificates of the cluster (--tls-dir)";
/// Told to who dials a plain node with TLS.
pub const PLAIN_WANTED: &str =
    "the node that dials speaks TLS, but this one has no certificates; start it with --tls-dir too";
