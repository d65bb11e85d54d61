//! Who a certificate is for, as a URI among its subject alternative names.
//!
//! `greenroom://CLUSTER/node/NAME` is one node, `greenroom://CLUSTER/node/*` any node of the cluster, and
//! `greenroom://CLUSTER/client/NAME` a client of the HTTP door. Bytes other than letters, digits and `-._~` are
//! percent-encoded. A certificate carries exactly one of these; its other names are for clients of the door to check.

use std::fmt;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Who a certificate is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The cluster's name.
    pub cluster: String,
    /// Who in it.
    pub who: Who,
}

/// Whom of a cluster a certificate names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Who {
    /// Any node: for nodes that share a certificate.
    AnyNode,
    /// The node of this name.
    Node(String),
    /// The client of this name.
    Client(String),
    /// The authority that issues the others.
    Authority,
}

impl Identity {
    /// The identity of `who` in `cluster`.
    pub fn new(cluster: impl Into<String>, who: Who) -> Self {
        Self { cluster: cluster.into(), who }
    }

    /// The identity that a certificate carries.
    ///
    /// # Errors
    /// Why it has none: its bytes are no certificate, or it has not exactly one URI of ours.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let parsed = webpki::EndEntityCert::try_from(certificate)
            .map_err(|error| format!("it is no X.509 certificate that can be used: {error:?}"))?;
        let mut ours = parsed.valid_uri_names().filter(|uri| uri.starts_with(SCHEME));
        match (ours.next(), ours.next()) {
            (Some(uri), None) => uri.parse(),
            (None, _) => Err(format!("it has no URI {SCHEME}CLUSTER/node/NAME among its names")),
            (Some(_), Some(_)) => Err(format!("it has several URIs {SCHEME}.. among its names; one is wanted")),
        }
    }

    /// The identity that the first certificate of a PEM file carries.
    ///
    /// # Errors
    /// As for [`Identity::of`], or that the file holds no certificate.
    pub fn of_pem(text: &str) -> Result<Self, String> {
        match CertificateDer::from_pem_slice(text.as_bytes()) {
            Ok(certificate) => Self::of(&certificate),
            Err(_) => Err("it holds no certificate: a PEM file with BEGIN CERTIFICATE is wanted".to_owned()),
        }
    }

    /// Why who has this identity is not the node called `name` of `cluster`; `None` if it is.
    pub fn not_node(&self, cluster: &str, name: &str) -> Option<String> {
        if self.cluster != cluster {
            return Some(format!(
                "its certificate is of cluster {:?}, not of {cluster:?}; give both nodes certificates of one cluster",
                self.cluster
            ));
        }
        match &self.who {
            Who::AnyNode => None,
            Who::Node(node) if node == name => None,
            Who::Node(node) => Some(format!(
                "its certificate is for node {node:?}, but it calls itself {name:?}; start it with --name {node}, or \
                 give it a certificate of its own"
            )),
            Who::Client(client) => Some(format!(
                "its certificate is for the client {client:?}; nodes need one that `greenroom certs node` makes"
            )),
            Who::Authority => Some("its certificate is the authority's own; issue one for the node".to_owned()),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/", Encoded(&self.cluster))?;
        match &self.who {
            Who::AnyNode => f.write_str("node/*"),
            Who::Node(name) => write!(f, "node/{}", Encoded(name)),
            Who::Client(name) => write!(f, "client/{}", Encoded(name)),
            Who::Authority => f.write_str("authority"),
        }
    }
}

impl std::str::FromStr for Identity {
    type Err = String;

    fn from_str(uri: &str) -> Result<Self, String> {
        let parts: Vec<&str> = uri.strip_prefix(SCHEME).unwrap_or_default().split('/').collect();
        let who = match parts[..] {
            [_, "authority"] => Who::Authority,
            [_, "node", "*"] => Who::AnyNode,
            [_, "node", name] => Who::Node(decode(name)?),
            [_, "client", name] => Who::Client(decode(name)?),
            _ => return Err(format!("{uri:?} among its names is not {SCHEME}CLUSTER/node/NAME or ../client/NAME")),
        };
        Ok(Self { cluster: decode(parts[0])?, who })
    }
}

/// A text as a part of a URI's path.
struct Encoded<'a>(&'a str);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    write!(f, "{}", char::from(byte))?
                }
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

fn decode(part: &str) -> Result<String, String> {
    let wrong = || format!("{part:?} in its URI is not percent-encoded UTF-8 of 1 to {NAME_LEN_MAX} bytes");
    let mut bytes = Vec::new();
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        let decoded = match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = digit().zip(digit()).ok_or_else(wrong)?;
                (high * 16 + low) as u8
            }
            b'*' => return Err(wrong()),
            byte => byte,
        };
        bytes.push(decoded);
    }
    match String::from_utf8(bytes) {
        Ok(text) if (1..=NAME_LEN_MAX).contains(&text.len()) => Ok(text),
        _ => Err(wrong()),
    }
}

/// What our URIs begin with.
const SCHEME: &str = "greenroom://";
/// Longest name in an identity, in bytes.
const NAME_LEN_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_survives_its_writing() {
        for who in [Who::AnyNode, Who::Authority, Who::Node("127.0.0.1:7000".into()), Who::Client("Ada / *é%".into())]
        {
            let identity = Identity::new("our cluster/1", who);
            assert_eq!(identity.to_string().parse(), Ok(identity));
        }
        assert_eq!(Identity::new("a", Who::Node("*".into())).to_string(), "greenroom://a/node/%2A");
    }

    #[test]
    fn what_is_no_identity_is_refused() {
        for uri in [
            "",
            "greenroom://",
            "greenroom://a",
            "greenroom:///node/b",
            "greenroom://a/node/",
            "greenroom://a/node/b/c",
            "greenroom://a/node/%",
            "greenroom://a/node/%f",
            "greenroom://a/node/%ff",
            "greenroom://a/node/b*",
            "greenroom://*/node/*",
            "greenroom://a/NODE/b",
            "https://a/node/b",
        ] {
            assert!(uri.parse::<Identity>().is_err(), "{uri}");
        }
        let long = format!("greenroom://a/node/{}", "x".repeat(256));
        assert!(long.parse::<Identity>().is_err());
    }

    #[test]
    fn only_a_node_of_the_cluster_is_taken_for_one() {
        let not_node = |who| Identity::new("music", who).not_node("music", "a");
        assert_eq!(not_node(Who::AnyNode), None);
        assert_eq!(not_node(Who::Node("a".into())), None);
        assert!(not_node(Who::Node("b".into())).is_some());
        assert!(not_node(Who::Client("a".into())).is_some());
        assert!(not_node(Who::Authority).is_some());
        let other = Identity::new("film", Who::AnyNode).not_node("music", "a").unwrap();
        assert!(other.contains("\"film\"") && other.contains("\"music\""), "{other}");
    }
}
