//! Whose a credential is, and whether its owner may do what is asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use greenroom_store::url::Secret;

use crate::auth::{Auth, Issuer};
use crate::error::Error;
use crate::jwt::{Judge, Keys, Refused};
use crate::principal::Principal;
use crate::rules::{Rule, Rules};
use crate::tokens::{self, Tokens};
use crate::watched::{Look, Source, Watched};

/// Who may do what at a door.
#[derive(Default)]
pub struct Access {
    tokens: Option<Watched<Tokens>>,
    issuers: Vec<Trusted>,
    certificates: BTreeMap<String, Principal>,
    rules: Rules,
}

struct Trusted {
    judge: Judge,
    keys: Kept,
}

/// Where an issuer's keys are kept.
enum Kept {
    File(Watched<Keys>),
    /// Fetched by who can: empty before.
    Fetched(RwLock<Arc<Keys>>),
}

/// Why a credential is refused. It says nothing of what the credential holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Denied {
    /// Why, in words.
    pub why: &'static str,
    /// The issuer whose keys may be worth fetching again: it may have a new one.
    pub fetch: Option<usize>,
}

impl Access {
    /// Reads the files that `auth` names.
    ///
    /// # Errors
    /// What cannot be used, and what helps.
    pub fn open(auth: &Auth, rules: &[Rule]) -> Result<Self, Error> {
        let tokens = match auth.tokens.clone() {
            Some(path) => {
                let source = Source { what: tokens::WHAT, path: path.clone() };
                Some(Watched::open(vec![source], move |contents| Tokens::read(&path, &contents[0]))?)
            }
            None => None,
        };
        let issuers: Result<Vec<Trusted>, Error> = auth.jwt.iter().map(Trusted::open).collect();
        let principal = |(name, roles): (&String, &Vec<String>)| {
            (name.clone(), Principal::new(name, roles.iter().map(String::as_str)))
        };
        let certificates: BTreeMap<String, Principal> = auth.certificates.iter().map(principal).collect();
        Ok(Self { tokens, issuers: issuers?, certificates, rules: rules_of(auth, rules)? })
    }

    /// Looks at what [`open`](Self::open) would take, as far as that can be told without a file.
    ///
    /// # Errors
    /// What cannot be used, and what helps.
    pub fn check(auth: &Auth, rules: &[Rule]) -> Result<(), Error> {
        auth.jwt.iter().try_for_each(|issuer| Judge::new(issuer.clone()).map(drop))?;
        rules_of(auth, rules).map(drop)
    }

    /// Whether there is anything that keeps strangers out.
    pub fn is_configured(&self) -> bool {
        let credentials = self.tokens.is_some() || !self.issuers.is_empty() || !self.certificates.is_empty();
        credentials || !self.rules.is_empty()
    }

    /// Whether there are bearer tokens, or issuers of them.
    pub fn takes_tokens(&self) -> bool {
        self.tokens.is_some() || !self.issuers.is_empty()
    }

    /// Whether there are clients that show who they are by a certificate.
    pub fn takes_certificates(&self) -> bool {
        !self.certificates.is_empty()
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whose bearer token this is.
    ///
    /// # Errors
    /// Nobody's that is known here, or not any more.
    pub fn owner(&self, token: &Secret) -> Result<Principal, Denied> {
        let denied = |why| Denied { why, fetch: None };
        if token.expose().len() > TOKEN_LEN_MAX {
            return Err(denied("the token is too long to be one"));
        }
        if let Some(principal) = self.tokens.as_ref().and_then(|tokens| tokens.current().find(token).cloned()) {
            return Ok(principal);
        }
        if token.expose().split('.').count() != JWT_PARTS || self.issuers.is_empty() {
            return Err(denied("the token is not known here; it may be mistyped or revoked"));
        }
        let issuer = self.issuers.iter().position(|trusted| trusted.judge.claims_issuer(token));
        let Some(index) = issuer else { return Err(said(Refused::Issuer)) };
        let Trusted { judge, keys } = &self.issuers[index];
        judge.judge(token, &keys.current()).map_err(|refused| match (refused, keys) {
            (Refused::UnknownKey, Kept::Fetched(_)) => Denied { fetch: Some(index), ..said(refused) },
            _ => said(refused),
        })
    }

    /// Who the client called `name` by its certificate is.
    ///
    /// # Errors
    /// It has no roles here.
    pub fn client(&self, name: &str) -> Result<Principal, Denied> {
        let why = "the certificate's client is not named under auth.certificates";
        self.certificates.get(name).cloned().ok_or(Denied { why, fetch: None })
    }

    /// The issuers whose keys are to be fetched, by number.
    pub fn fetched(&self) -> impl Iterator<Item = (usize, &Issuer)> {
        let trusted = self.issuers.iter().enumerate().filter(|(_, trusted)| matches!(trusted.keys, Kept::Fetched(_)));
        trusted.map(|(index, trusted)| (index, trusted.judge.issuer()))
    }

    /// Takes the keys over that were fetched for the issuer of this number.
    ///
    /// # Errors
    /// They are none; those that were there stay.
    pub fn take_keys(&self, index: usize, content: &[u8]) -> Result<(), Error> {
        let Some(Trusted { judge, keys: Kept::Fetched(keys) }) = self.issuers.get(index) else { return Ok(()) };
        let new = Keys::read(judge.issuer().keys.as_ref(), content)?;
        *keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        Ok(())
    }

    /// Looks at the files; what has come of it, by what they are.
    pub fn look(&self) -> Vec<(&'static str, Look)> {
        let tokens = self.tokens.iter().map(|tokens| ("the tokens", tokens.look()));
        let keys = self.issuers.iter().filter_map(|trusted| match &trusted.keys {
            Kept::File(keys) => Some(("an issuer's keys", keys.look())),
            Kept::Fetched(_) => None,
        });
        tokens.chain(keys).collect()
    }
}

impl Trusted {
    fn open(issuer: &Issuer) -> Result<Self, Error> {
        let judge = Judge::new(issuer.clone())?;
        let keys = if is_url(&issuer.keys) {
            Kept::Fetched(RwLock::default())
        } else {
            let path = PathBuf::from(&issuer.keys);
            let source = Source { what: "an issuer's keys (auth.jwt keys)", path: path.clone() };
            Kept::File(Watched::open(vec![source], move |contents| Keys::read(&path, &contents[0]))?)
        };
        Ok(Self { judge, keys })
    }
}

impl Kept {
    fn current(&self) -> Arc<Keys> {
        match self {
            Self::File(keys) => keys.current(),
            Self::Fetched(keys) => keys.read().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

fn rules_of(auth: &Auth, rules: &[Rule]) -> Result<Rules, Error> {
    let rules = Rules::new(rules.to_vec())?;
    let named: Vec<&str> = auth.jwt.iter().map(|issuer| issuer.issuer.as_str()).collect();
    rules.check_issuers(auth.tokens.is_some() || !auth.certificates.is_empty(), &named)?;
    Ok(rules)
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

fn said(refused: Refused) -> Denied {
    let why = match refused {
        Refused::Malformed => "the token is no JWT",
        Refused::Issuer => "the token's issuer is none that this node trusts",
        Refused::Algorithm => "the token is signed with an algorithm that is not allowed",
        Refused::UnknownKey => "the token is signed with a key that its issuer does not have",
        Refused::Signature => "the token's signature is wrong",
        Refused::Expired => "the token has expired",
        Refused::NotYet => "the token is not valid yet",
        Refused::Audience => "the token is for another audience",
        Refused::Claims => "the token lacks a claim that it must have, or has it in a wrong form",
    };
    Denied { why, fetch: None }
}

/// Longest bearer token, in bytes.
const TOKEN_LEN_MAX: usize = 8 << 10;
/// Header, claims and signature.
const JWT_PARTS: usize = 3;
