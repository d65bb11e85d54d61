//! An issuer's public keys: a JWKS (RFC 7517).

use std::path::Path;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;

/// The keys of an issuer that signatures can be checked with.
#[derive(Default)]
pub struct Keys(Vec<Key>);

struct Key {
    id: Option<String>,
    fits: &'static [Algorithm],
    /// The one algorithm that the key says it is for, if it does.
    only: Option<Algorithm>,
    key: DecodingKey,
}

impl Keys {
    /// Makes sense of a JWKS. Keys that sign nothing, that are secrets, or of unknown sorts are left out.
    ///
    /// # Errors
    /// It is none, or has too many keys.
    pub fn read(from: &Path, content: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let unusable = |reason: String| Error::Unusable { what: WHAT, path: from.to_owned(), reason };
        let set: Set = serde_json::from_slice(content)
            .map_err(|error| unusable(format!("it is no JSON Web Key Set, {{\"keys\": [..]}}: {error}")))?;
        if set.keys.len() > KEYS_MAX {
            return Err(unusable(format!("it has more than {KEYS_MAX} keys")));
        }
        Ok(Self(set.keys.into_iter().filter_map(Key::read).collect()))
    }

    /// The key for a token that names `id`, signed with `algorithm`. Without an id there must be only one that fits.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        let fits = |key: &&Key| key.fits.contains(&algorithm) && key.only.is_none_or(|only| only == algorithm);
        let mut fitting = self.0.iter().filter(fits).filter(|key| id.is_none() || key.id.as_deref() == id);
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Some(&key.key),
            _ => None,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Key {
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return None;
        }
        let fits: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => &[
                Algorithm::RS256,
                Algorithm::RS384,
                Algorithm::RS512,
                Algorithm::PS256,
                Algorithm::PS384,
                Algorithm::PS512,
            ],
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => &[Algorithm::ES256],
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => &[Algorithm::ES384],
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[Algorithm::EdDSA],
            _ => return None,
        };
        let only = match jwk.common.key_algorithm {
            None => None,
            // A key for what we do not do is none for us.
            Some(named) => Some(Algorithm::try_from(named).ok()?),
        };
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self { id: jwk.common.key_id, fits, only, key })
    }
}

/// What the file is, for errors about it.
const WHAT: &str = "the issuer's keys (auth.jwt keys)";
/// Keys of one issuer.
const KEYS_MAX: usize = 64;
