//! Whether a certificate leads to an authority, and how long.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// The one provider of cryptography: named, so that no other crate's choice for the process matters.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Verifies that a server's certificate leads to an authority. Whose it is, is looked at after the handshake: a node is
/// not where its name says, but who its certificate says.
#[derive(Debug)]
pub(crate) struct ChainVerifier {
    pub(crate) roots: Arc<RootCertStore>,
    pub(crate) provider: Arc<CryptoProvider>,
}

impl ChainVerifier {
    fn verify_at(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let (own, between) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
        let parsed = ParsedCertificate::try_from(own)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, between, now, algorithms)
    }

    /// When `chain` ends to be valid, if it is now.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn valid_until(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<UnixTime, Error> {
        self.verify_at(chain, now)?;
        // Whichever certificate of the chain would have expired says when; each answer is earlier than the last.
        let mut until = FAR_FUTURE;
        for _ in 0..=chain.len() + 1 {
            match self.verify_at(chain, until) {
                Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => until = not_after,
                _ => break,
            }
        }
        Ok(until)
    }
}

impl ServerCertVerifier for ChainVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The year 9999.
const FAR_FUTURE: UnixTime = UnixTime::since_unix_epoch(std::time::Duration::from_secs(253_370_764_800));
