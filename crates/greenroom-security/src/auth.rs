//! The credentials that the HTTP door takes, as they stand in its configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Whose credentials are taken.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// File of static bearer tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<PathBuf>,
    /// Issuers whose JWTs are taken.
    pub jwt: Vec<Issuer>,
    /// The roles of clients with certificates, by their names.
    pub certificates: BTreeMap<String, Vec<String>>,
}

/// An issuer whose tokens are taken, as it stands in the configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    /// What its tokens have as `iss`.
    pub issuer: String,
    /// What they have as `aud`, or among it: tokens for others are refused.
    pub audience: String,
    /// Its keys: a JWKS in a file, or at an `https:` URL.
    pub keys: String,
    /// PEM file of the authorities to trust at that URL; the system's if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// The algorithms that it may sign with.
    #[serde(default = "algorithms")]
    pub algorithms: Vec<String>,
    /// The claim that names the principal.
    #[serde(default = "name_claim")]
    pub name_claim: String,
    /// The claim with its roles, a list or words with spaces between; dots lead into objects: `realm_access.roles`.
    #[serde(default = "roles_claim")]
    pub roles_claim: String,
    /// The roles that it may give; a `*` is any text. All but `admin` and `metrics` if left out. Others that its tokens
    /// claim do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_give: Option<Vec<String>>,
    /// Seconds by which clocks may differ.
    #[serde(default = "leeway")]
    pub leeway_seconds: u64,
}

fn algorithms() -> Vec<String> {
    ["RS256", "PS256", "ES256", "EdDSA"].map(String::from).into()
}

fn name_claim() -> String {
    "sub".to_owned()
}

fn roles_claim() -> String {
    "roles".to_owned()
}

fn leeway() -> u64 {
    30
}

impl Auth {
    /// Whether it names any credential.
    pub fn is_configured(&self) -> bool {
        self.tokens.is_some() || !self.jwt.is_empty() || !self.certificates.is_empty()
    }
}
