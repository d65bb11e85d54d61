//! JSON Web Tokens: bearer tokens that an identity provider signs.
//!
//! The algorithm is one of a list, and never `none` or one whose key is a shared secret; the key is the issuer's own,
//! found by its id and fit for the algorithm; issuer, audience and expiry must be there and right.

mod crypto;
mod keys;
#[cfg(test)]
mod tests;

use greenroom_store::url::{Secret, is_in_the_clear};
use jsonwebtoken::{Algorithm, Validation, dangerous, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

pub use self::keys::Keys;
use crate::auth::Issuer;
use crate::error::Error;
use crate::principal::{BUILT_IN, NAME_LEN_MAX, Principal};
use crate::rules::matches;

/// How the tokens of one issuer are judged.
pub struct Judge {
    issuer: Issuer,
    algorithms: Vec<Algorithm>,
}

/// Why a token is refused. It says nothing of what the token holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refused {
    /// It is no JWT.
    Malformed,
    /// Nobody has named its issuer in the configuration.
    Issuer,
    /// Its algorithm is not one that its issuer may use here.
    Algorithm,
    /// Its issuer has no such key, as far as is known here.
    UnknownKey,
    /// Its signature is not that of the key.
    Signature,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYet,
    /// It is for somebody else.
    Audience,
    /// It lacks what it must say, or says it wrongly.
    Claims,
}

impl Judge {
    /// A judge of `issuer`'s tokens.
    ///
    /// # Errors
    /// A setting that would let in whom nobody meant to.
    pub fn new(issuer: Issuer) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Setting { setting: format!("auth.jwt of {:?}", issuer.issuer), reason };
        for (field, value) in [("issuer", &issuer.issuer), ("audience", &issuer.audience), ("keys", &issuer.keys)] {
            if value.is_empty() {
                return Err(wrong(format!("`{field}` is empty")));
            }
        }
        if issuer.issuer.len() > NAME_LEN_MAX {
            return Err(wrong(format!("`issuer` is longer than {NAME_LEN_MAX} bytes")));
        }
        if issuer
            .keys
            .split_once("://")
            .is_some_and(|(_, rest)| rest.split('/').next().unwrap_or_default().contains('@'))
        {
            return Err(wrong(
                "`keys` has credentials in its URL, which logs would show; serve the keys openly".to_owned(),
            ));
        }
        if is_in_the_clear(&issuer.keys) {
            return Err(wrong(
                "`keys` would be fetched in the clear, where whoever is on the way can give this node keys of their own; name an \
                 `https:` URL, or a file"
                    .to_owned(),
            ));
        }
        let mut algorithms = Vec::new();
        for name in &issuer.algorithms {
            match name.parse::<Algorithm>() {
                Ok(algorithm) if crypto::is_asymmetric(algorithm) => algorithms.push(algorithm),
                _ => {
                    let known = "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA";
                    return Err(wrong(format!("algorithm {name:?} is none that is safe to take; there are {known}")));
                }
            }
        }
        if issuer.leeway_seconds > LEEWAY_MAX {
            return Err(wrong(format!("`leeway_seconds` is over {LEEWAY_MAX}; set the clocks instead")));
        }
        if algorithms.is_empty() {
            return Err(wrong("`algorithms` is empty, so that no token could be taken".to_owned()));
        }
        crypto::install();
        Ok(Self { issuer, algorithms })
    }

    /// The issuer, as it was configured.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Whether `token` says that it is of this issuer. Nothing that it says is to be believed yet.
    pub fn claims_issuer(&self, token: &Secret) -> bool {
        #[derive(Deserialize)]
        struct Claims {
            iss: Option<String>,
        }
        let claims = dangerous::insecure_decode_claims::<Claims>(token.expose());
        claims.is_ok_and(|claims| claims.iss.as_ref() == Some(&self.issuer.issuer))
    }

    /// Whose token this is, by the issuer's `keys`.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn judge(&self, token: &Secret, keys: &Keys) -> Result<Principal, Refused> {
        let header = decode_header(token.expose()).map_err(|error| match error.kind() {
            // `none` is no algorithm that the library knows, by design.
            jsonwebtoken::errors::ErrorKind::Json(_) => Refused::Algorithm,
            _ => Refused::Malformed,
        })?;
        if !self.algorithms.contains(&header.alg) {
            return Err(Refused::Algorithm);
        }
        // An extension that must be understood is not.
        if header.crit.is_some() {
            return Err(Refused::Claims);
        }
        let key = keys.find(header.kid.as_deref(), header.alg).ok_or(Refused::UnknownKey)?;
        let mut validation = Validation::new(header.alg);
        validation.leeway = self.issuer.leeway_seconds;
        validation.validate_nbf = true;
        validation.set_audience(&[&self.issuer.audience]);
        validation.set_issuer(&[&self.issuer.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let claims = decode::<Map<String, Value>>(token.expose(), key, &validation).map_err(|error| refused(&error))?;
        self.principal(&claims.claims)
    }

    fn principal(&self, claims: &Map<String, Value>) -> Result<Principal, Refused> {
        let name = claim(claims, &self.issuer.name_claim).and_then(Value::as_str).unwrap_or_default();
        // One that is cut could be somebody else's.
        if name.is_empty() || name.len() > NAME_LEN_MAX {
            return Err(Refused::Claims);
        }
        let roles: Vec<&str> = match claim(claims, &self.issuer.roles_claim) {
            Some(Value::Array(roles)) => roles.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(roles)) => roles.split_ascii_whitespace().collect(),
            _ => Vec::new(),
        };
        let counts = |role: &&str| match &self.issuer.may_give {
            Some(given) => given.iter().any(|given| matches(given, role)),
            None => !BUILT_IN.contains(role),
        };
        Ok(Principal::new(name, roles.into_iter().filter(counts)).issued_by(&self.issuer.issuer))
    }
}

/// The claim at `path`: of that very name, or inside of objects.
fn claim<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(found) = claims.get(path) {
        return Some(found);
    }
    let (first, rest) = path.split_once('.')?;
    claim(claims.get(first)?.as_object()?, rest)
}

fn refused(error: &jsonwebtoken::errors::Error) -> Refused {
    use jsonwebtoken::errors::ErrorKind;
    match error.kind() {
        ErrorKind::ExpiredSignature => Refused::Expired,
        ErrorKind::ImmatureSignature => Refused::NotYet,
        ErrorKind::InvalidAudience => Refused::Audience,
        ErrorKind::InvalidIssuer => Refused::Issuer,
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidKeyFormat => Refused::Algorithm,
        ErrorKind::InvalidSignature => Refused::Signature,
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) | ErrorKind::Json(_) => Refused::Claims,
        _ => Refused::Malformed,
    }
}

/// Most seconds by which clocks may differ.
const LEEWAY_MAX: u64 = 300;
