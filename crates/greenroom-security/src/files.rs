//! Which files say who a node is and whom it trusts, as they stand in its configuration.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[cfg(feature = "tls")]
use crate::watched::Source;

/// The files of mutual TLS between nodes, all PEM.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeTls {
    /// The authorities whose certificates the other nodes have.
    pub ca: PathBuf,
    /// This node's certificate, and what leads from it to the authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The files of TLS at the HTTP door, all PEM.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorTls {
    /// The door's certificate, and what leads from it to an authority that clients know.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities whose certificates clients may present; without it none is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<PathBuf>,
}

impl NodeTls {
    /// The files that `greenroom certs` makes in `folder`.
    pub fn in_folder(folder: &Path) -> Self {
        Self { ca: folder.join("ca.pem"), cert: folder.join("node.pem"), key: folder.join("node.key") }
    }

    /// The same files for the door: its clients may have certificates of the same authority.
    pub fn for_door(&self) -> DoorTls {
        DoorTls { cert: self.cert.clone(), key: self.key.clone(), clients: Some(self.ca.clone()) }
    }

    #[cfg(feature = "tls")]
    pub(crate) fn sources(&self) -> Vec<Source> {
        vec![
            Source { what: "the cluster's authority (tls.ca)", path: self.ca.clone() },
            Source { what: "the node's certificate (tls.cert)", path: self.cert.clone() },
            Source { what: "the node's private key (tls.key)", path: self.key.clone() },
        ]
    }
}

#[cfg(feature = "tls")]
impl DoorTls {
    pub(crate) fn sources(&self) -> Vec<Source> {
        let mut sources = vec![
            Source { what: "the door's certificate (http_tls.cert)", path: self.cert.clone() },
            Source { what: "the door's private key (http_tls.key)", path: self.key.clone() },
        ];
        if let Some(clients) = &self.clients {
            sources.push(Source { what: "the clients' authority (http_tls.clients)", path: clients.clone() });
        }
        sources
    }
}
