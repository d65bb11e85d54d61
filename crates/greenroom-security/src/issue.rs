//! A development authority, and the certificates that it issues.
//!
//! For trying things out and for tests: the authority's key lies beside its certificates. In production, certificates
//! come from what the organisation has (cert-manager, Vault, step-ca), with the URIs of [`identity`](crate::identity).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use greenroom_store::url::Secret;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::{Duration, OffsetDateTime};

use crate::identity::{Identity, Who};

/// A certificate and its private key, as PEM.
pub struct Issued {
    /// The certificate.
    pub cert: String,
    /// Its private key: for the eyes of who runs with it alone.
    pub key: String,
}

/// An authority for the certificates of one cluster.
pub struct Authority {
    cluster: String,
    issuer: Issuer<'static, KeyPair>,
    issued: Issued,
}

impl Authority {
    /// A new authority for `cluster`, for ten years.
    ///
    /// # Errors
    /// Why none can be made of that name.
    pub fn new(cluster: &str) -> Result<Self, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let params = authority_params(cluster)?;
        let cert = params.self_signed(&key).map_err(|error| error.to_string())?;
        let issued = Issued { cert: cert.pem(), key: key.serialize_pem() };
        Ok(Self { cluster: cluster.to_owned(), issuer: Issuer::new(params, key), issued })
    }

    /// The authority whose certificate and key these are, as [`Authority::new`] made them.
    ///
    /// # Errors
    /// Why they are not.
    pub fn open(cert: &str, key: &str) -> Result<Self, String> {
        let der = CertificateDer::from_pem_slice(cert.as_bytes())
            .map_err(|_| "the authority's certificate is no PEM".to_owned())?;
        let identity = Identity::of(&der)?;
        if identity.who != Who::Authority {
            return Err(format!("{identity} is no authority made by `greenroom certs ca`"));
        }
        // Whatever the parser may say of a private key is not repeated.
        let pair = KeyPair::from_pem(key).map_err(|_| "the authority's private key is no PEM of a key".to_owned())?;
        let issued = Issued { cert: cert.to_owned(), key: key.to_owned() };
        let issuer = Issuer::new(authority_params(&identity.cluster)?, pair);
        Ok(Self { cluster: identity.cluster, issuer, issued })
    }

    /// The cluster that it issues certificates for.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Its own certificate and key.
    pub fn pem(&self) -> &Issued {
        &self.issued
    }

    /// A certificate for `who`, valid from `days.0` to `days.1` days from now, whose holder clients find at `hosts`.
    ///
    /// # Errors
    /// Why none can be made: a host's name is none.
    pub fn issue(&self, who: Who, hosts: &[String], days: (i64, i64)) -> Result<Issued, String> {
        self.issue_for(&Identity::new(self.cluster.clone(), who), hosts, days)
    }

    /// The same for an identity in any cluster. Who trusts several authorities takes each one's certificates for its own cluster
    /// alone.
    ///
    /// # Errors
    /// As for [`Authority::issue`].
    pub fn issue_for(&self, identity: &Identity, hosts: &[String], days: (i64, i64)) -> Result<Issued, String> {
        let client = matches!(identity.who, Who::Client(_));
        let mut params = CertificateParams::new(hosts.to_vec()).map_err(|error| format!("{hosts:?}: {error}"))?;
        name(&mut params, &identity.to_string(), identity)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match client {
            true => vec![ExtendedKeyUsagePurpose::ClientAuth],
            false => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
        };
        params.use_authority_key_identifier_extension = true;
        let now = OffsetDateTime::now_utc();
        params.not_before = now + Duration::days(days.0);
        params.not_after = now + Duration::days(days.1);
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let cert = params.signed_by(&key, &self.issuer).map_err(|error| error.to_string())?;
        Ok(Issued { cert: cert.pem(), key: key.serialize_pem() })
    }
}

fn authority_params(cluster: &str) -> Result<CertificateParams, String> {
    let mut params = CertificateParams::default();
    let identity = Identity::new(cluster, Who::Authority);
    name(&mut params, &format!("Greenroom development authority of {cluster}"), &identity)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::days(1);
    params.not_after = now + Duration::days(AUTHORITY_DAYS);
    Ok(params)
}

/// Names the holder: for people, and for nodes.
fn name(params: &mut CertificateParams, common: &str, identity: &Identity) -> Result<(), String> {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, common.chars().take(COMMON_NAME_LEN_MAX).collect::<String>());
    params.distinguished_name = distinguished;
    let uri = identity.to_string().try_into().map_err(|error| format!("{identity}: {error}"))?;
    params.subject_alt_names.push(SanType::URI(uri));
    Ok(())
}

/// A new bearer token, which nobody can guess.
///
/// # Errors
/// The system gives no randomness.
pub fn token() -> Result<Secret, String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system gives no randomness".to_owned())?;
    Ok(Secret::new(format!("grn_{}", URL_SAFE_NO_PAD.encode(bytes))))
}

/// How long a development authority lives.
const AUTHORITY_DAYS: i64 = 3650;
/// Longest common name that X.509 allows (`ub-common-name`).
const COMMON_NAME_LEN_MAX: usize = 64;
