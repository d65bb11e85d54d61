//! Whether and how a connection is encrypted: the modes of PostgreSQL's own client library.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What `?sslmode=` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    /// The mode called `name`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let modes = [Self::Disable, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];
        NAMES.iter().position(|known| *known == name).map(|at| modes[at])
    }
}

/// What a connection of this `mode` checks; the certificates of `authorities`, or of the system, are trusted.
pub(crate) fn connector(mode: Mode, authorities: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone());
    let config = config.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let unchecked = matches!(mode, Mode::Disable | Mode::Prefer | Mode::Require) && authorities.is_none();
    let config = if unchecked {
        config.dangerous().with_custom_certificate_verifier(Arc::new(Verifier { provider, chain: None }))
    } else {
        let roots = Arc::new(roots(authorities)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
        let verifier = verifier.build().map_err(|error| error.to_string())?;
        match mode {
            Mode::VerifyFull => config.with_webpki_verifier(verifier),
            _ => {
                let verifier = Verifier { provider, chain: Some(verifier) };
                config.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
        }
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

fn roots(authorities: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = authorities else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err("this system trusts no certificate authority; name a file with sslrootcert".to_owned());
        }
        return Ok(roots);
    };
    let unreadable = |error: &dyn std::fmt::Display| {
        format!("the certificates of sslrootcert={} cannot be read: {error}; it is to be a PEM file", path.display())
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

/// Checks that the server holds the key of its certificate, and who has signed that, if that is asked; not its name.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The modes, as they are written.
pub(crate) const NAMES: [&str; 5] = ["disable", "prefer", "require", "verify-ca", "verify-full"];
