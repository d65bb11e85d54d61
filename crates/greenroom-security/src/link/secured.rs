//! Mutual TLS.

use std::io;

use greenroom_world::Stream;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::AsyncReadExt;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::{HANDSHAKE, NotAccepted, TLS_WANTED};
use crate::certificates::NodeCertificates;
use crate::error::Error;
use crate::explain;
use crate::files::NodeTls;
use crate::identity::Identity;
use crate::stream::{Socket, Wrapped};
use crate::watched::Watched;

/// How a node of a cluster with certificates speaks with the others.
pub(super) struct Tls {
    certificates: Watched<NodeCertificates>,
    cluster: String,
}

/// What the other end's certificate says.
#[derive(Debug)]
pub(super) struct Shown {
    identity: Result<Identity, String>,
    /// Why its authority is not one for its cluster.
    misissued: Option<String>,
    /// Of who was shown it.
    cluster: String,
}

impl Tls {
    pub(super) fn open(files: &NodeTls, cluster: &str) -> Result<Self, Error> {
        let (read, name) = (files.clone(), cluster.to_owned());
        let make = move |contents: &[Vec<u8>]| NodeCertificates::read(&read, &name, contents);
        Ok(Self { certificates: Watched::open(files.sources(), make)?, cluster: cluster.to_owned() })
    }

    pub(super) fn certificates(&self) -> &Watched<NodeCertificates> {
        &self.certificates
    }

    pub(super) async fn dialled(&self, stream: Box<dyn Stream>) -> io::Result<(Box<dyn Stream>, Shown)> {
        let connector = TlsConnector::from(self.certificates.current().dialling.clone());
        // Nodes are told apart by their certificates: no name is sent, and none is looked at.
        let nobody = ServerName::try_from("node.greenroom").map_err(io::Error::other)?;
        let secured = connector.connect(nobody, Socket::new(stream)).await.map_err(explained)?;
        let shown = self.shown(secured.get_ref().1.peer_certificates());
        Ok((Box::new(Wrapped::new(TlsStream::Client(secured))), shown))
    }

    pub(super) async fn accepted(&self, mut stream: Box<dyn Stream>) -> Result<(Box<dyn Stream>, Shown), NotAccepted> {
        let mut first = [0; 1];
        if let Err(why) = stream.read_exact(&mut first).await {
            return Err(NotAccepted { why, plain: false, stream: None });
        }
        if first[0] != HANDSHAKE {
            return Err(NotAccepted { why: io::Error::other(TLS_WANTED), plain: true, stream: Some(stream) });
        }
        let acceptor = TlsAcceptor::from(self.certificates.current().answering.clone());
        let socket = Socket::behind(first[0], stream);
        let secured = acceptor.accept(socket).into_fallible().await.map_err(|(error, socket)| NotAccepted {
            why: explained(error),
            plain: false,
            stream: socket.into_stream(),
        })?;
        let shown = self.shown(secured.get_ref().1.peer_certificates());
        Ok((Box::new(Wrapped::new(TlsStream::Server(secured))), shown))
    }

    fn shown(&self, chain: Option<&[CertificateDer<'_>]>) -> Shown {
        let chain = chain.unwrap_or_default();
        let identity = match chain.first() {
            Some(certificate) => Identity::of(certificate),
            None => Err("it has no certificate".to_owned()),
        };
        let authorities = &self.certificates.current().authorities;
        let misissued = identity.as_ref().ok().and_then(|identity| authorities.not_for(&identity.cluster, chain));
        Shown { identity, misissued, cluster: self.cluster.clone() }
    }
}

impl Shown {
    pub(super) fn not_node_of(&self, cluster: &str, name: &str) -> Option<String> {
        match &self.identity {
            Ok(identity) => identity.not_node(cluster, name).or_else(|| self.misissued.clone()),
            Err(reason) => Some(format!("its certificate names no node: {reason}")),
        }
    }

    pub(super) fn own_cluster(&self) -> &str {
        &self.cluster
    }
}

fn explained(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), explain::handshake(&error))
}
