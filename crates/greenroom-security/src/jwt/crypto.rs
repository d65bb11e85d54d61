//! Checks signatures with ring, for the library that knows the rest of JWTs: it brings no cryptography of its own that
//! would not be a second one in the program.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};

/// Whether tokens of this algorithm are checked with a public key.
pub(super) fn is_asymmetric(algorithm: Algorithm) -> bool {
    algorithm.family() != AlgorithmFamily::Hmac
}

/// Makes ring the library's cryptography, unless the program has chosen another.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error says that the program was first: its choice checks signatures as well.
        let _ = PROVIDER.install_default();
    });
}

static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: no_signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if algorithm.family() != key.family() || !is_asymmetric(*algorithm) {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.kind().clone() }))
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKeyKind,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], given: &Vec<u8>) -> std::result::Result<(), Error> {
        let wrong = |_| Error::new();
        match &self.key {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                let parameters = match self.algorithm {
                    Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return Err(Error::new()),
                };
                let key = RsaPublicKeyComponents { n: without_zeros(n), e: without_zeros(e) };
                key.verify(parameters, message, given).map_err(wrong)
            }
            DecodingKeyKind::SecretOrDer(point) => {
                let algorithm: &dyn signature::VerificationAlgorithm = match self.algorithm {
                    Algorithm::ES256 => &signature::ECDSA_P256_SHA256_FIXED,
                    Algorithm::ES384 => &signature::ECDSA_P384_SHA384_FIXED,
                    Algorithm::EdDSA => &signature::ED25519,
                    _ => return Err(Error::new()),
                };
                UnparsedPublicKey::new(algorithm, point).verify(message, given).map_err(wrong)
            }
        }
    }
}

/// ring wants numbers without leading zeros, which some issuers write.
fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
