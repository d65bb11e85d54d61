//! What is wrong with a handshake or a certificate, and what helps.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, InconsistentKeys};

/// What is wrong with a certificate or key of this node's own.
pub(crate) fn own(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => certificate(error),
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            "the key is not that of the certificate; take both from one issue".to_owned()
        }
        error => error.to_string(),
    }
}

/// Why a handshake with another node, or with a client, failed.
pub(crate) fn handshake(error: &io::Error) -> String {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => format!(
                "it closed the connection during the TLS handshake ({error}); its log says why: does it have \
                 certificates (--tls-dir), and of the same authority?"
            ),
            io::ErrorKind::TimedOut => "the TLS handshake took too long; is it a node?".to_owned(),
            _ => error.to_string(),
        };
    };
    match tls {
        Error::InvalidCertificate(error) => format!("its certificate is refused: {}", certificate(error)),
        Error::NoCertificatesPresented => {
            "it presented no certificate; only nodes with one of this cluster are let in (--tls-dir)".to_owned()
        }
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => {
            "it does not speak TLS; start it with certificates too (--tls-dir)".to_owned()
        }
        Error::AlertReceived(alert) => format!("it refuses this node's certificate: {}", refusal(*alert)),
        Error::PeerIncompatible(why) => format!("no common version of TLS: {why:?}; nodes speak TLS 1.3 only"),
        error => error.to_string(),
    }
}

fn certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired; issue a new one (`greenroom certs node`), it is taken up without a restart".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet; is a machine's clock wrong?".to_owned()
        }
        // Two authorities of the same name differ only in their keys.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is not issued by the authority that this node trusts (tls.ca); give all nodes certificates of one authority"
                .to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not for both sides of a connection; nodes need the extended key usages serverAuth and clientAuth".to_owned()
        }
        error => error.to_string(),
    }
}

/// What a peer's alert means for who gets it.
fn refusal(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "it is not of an authority that the other side trusts; give all nodes certificates of one authority"
                .to_owned()
        }
        AlertDescription::CertificateExpired => {
            "it has expired; issue a new one (`greenroom certs node`), it is taken up without a restart".to_owned()
        }
        AlertDescription::CertificateRequired => "there is none; start this node with --tls-dir".to_owned(),
        alert => format!("{alert:?}; the other side's log says why"),
    }
}
