//! The authorities that are trusted, and for which clusters.
//!
//! An authority that `greenroom certs ca` has made says in its own certificate which cluster it is for, and is trusted for
//! certificates of that cluster alone. One that says nothing of the kind, such as an organisation's own, is trusted for all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;

use crate::chain::provider;
use crate::error::Error;
use crate::identity::{Identity, Who};
use crate::pem::Pem;

/// The authorities of one file.
pub(crate) struct Authorities {
    all: Arc<RootCertStore>,
    /// Those that may issue for a cluster, by its name, and those that may for any.
    of_cluster: BTreeMap<String, RootCertStore>,
    of_any: RootCertStore,
}

impl Authorities {
    pub(crate) fn read(ca: &Pem<'_>) -> Result<Self, Error> {
        let mut all = RootCertStore::empty();
        let mut of_any = RootCertStore::empty();
        let mut bound: Vec<(BTreeSet<String>, CertificateDer<'static>)> = Vec::new();
        for certificate in ca.chain()? {
            let unusable = |error| ca.unusable(format!("an authority cannot be used: {error}"));
            all.add(certificate.clone()).map_err(unusable)?;
            let clusters = clusters(&certificate);
            if clusters.is_empty() {
                of_any.add(certificate).map_err(unusable)?;
            } else {
                bound.push((clusters, certificate));
            }
        }
        let mut of_cluster: BTreeMap<String, RootCertStore> = BTreeMap::new();
        for (clusters, certificate) in bound {
            for cluster in clusters {
                let roots = of_cluster.entry(cluster).or_insert_with(|| of_any.clone());
                roots.add(certificate.clone()).map_err(|error| ca.unusable(error.to_string()))?;
            }
        }
        Ok(Self { all: Arc::new(all), of_cluster, of_any })
    }

    /// All of them: what a handshake is judged by, before it is known who is at the other end.
    pub(crate) fn all(&self) -> &Arc<RootCertStore> {
        &self.all
    }

    /// Why `chain`, which leads to one of them, is not for its cluster; `None` if it is.
    pub(crate) fn not_for(&self, cluster: &str, chain: &[CertificateDer<'_>]) -> Option<String> {
        let roots = self.of_cluster.get(cluster).unwrap_or(&self.of_any);
        if roots.len() == self.all.len() {
            return None;
        }
        let (own, between) = chain.split_first()?;
        let algorithms = provider().signature_verification_algorithms.all;
        let verified = ParsedCertificate::try_from(own).and_then(|own| {
            verify_server_cert_signed_by_trust_anchor(&own, roots, between, UnixTime::now(), algorithms)
        });
        verified.err().map(|_| {
            format!(
                "its certificate is of cluster {cluster:?}, but issued by the authority of another one; have it issued \
                 by that of {cluster:?}, and trust that one (`greenroom certs trust`)"
            )
        })
    }
}

/// The clusters that an authority says it is for; none if it does not say.
fn clusters(certificate: &CertificateDer<'_>) -> BTreeSet<String> {
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else { return BTreeSet::new() };
    let identities = parsed.valid_uri_names().filter_map(|uri| uri.parse::<Identity>().ok());
    identities.filter(|identity| identity.who == Who::Authority).map(|identity| identity.cluster).collect()
}
