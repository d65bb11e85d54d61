//! Certificates and keys out of PEM files.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::Error;

/// What a PEM file should hold, for errors about it.
#[derive(Clone, Copy)]
pub(crate) struct Pem<'a> {
    pub(crate) what: &'static str,
    pub(crate) path: &'a Path,
    pub(crate) content: &'a [u8],
}

impl Pem<'_> {
    pub(crate) fn unusable(&self, reason: impl Into<String>) -> Error {
        Error::Unusable { what: self.what, path: self.path.to_owned(), reason: reason.into() }
    }

    /// The certificates of the file: one, and those that lead from it to the authority.
    pub(crate) fn chain(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(self.content).take(CHAIN_LEN_MAX + 1).collect();
        let chain = read.map_err(|error| self.unusable(format!("it is no PEM: {error}")))?;
        match chain.len() {
            0 => Err(self.unusable("it holds no certificate: a PEM file with BEGIN CERTIFICATE is wanted")),
            1..=CHAIN_LEN_MAX => Ok(chain),
            _ => Err(self.unusable(format!("it holds more than {CHAIN_LEN_MAX} certificates"))),
        }
    }

    /// The authorities of the file.
    pub(crate) fn roots(&self) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in self.chain()? {
            roots.add(certificate).map_err(|error| self.unusable(format!("an authority cannot be used: {error}")))?;
        }
        Ok(roots)
    }

    /// The private key of the file. Errors about it say nothing of its content.
    pub(crate) fn key(&self) -> Result<PrivateKeyDer<'static>, Error> {
        PrivateKeyDer::from_pem_slice(self.content)
            .map_err(|_| self.unusable("it holds no private key: a PEM file with BEGIN PRIVATE KEY is wanted"))
    }
}

/// Certificates in one file.
const CHAIN_LEN_MAX: usize = 64;
