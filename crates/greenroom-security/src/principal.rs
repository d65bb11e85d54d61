//! On whose behalf something is done.

use std::borrow::Cow;
use std::sync::Arc;

/// Who has shown credentials, and in which roles: what rules are about. It flows along calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal(Arc<Inner>);

#[derive(PartialEq, Eq, Debug)]
struct Inner {
    name: Box<str>,
    issuer: Option<Box<str>>,
    roles: Box<[Box<str>]>,
}

impl Principal {
    /// The principal that the node's own configuration calls `name`, in `roles`: cut to [`NAME_LEN_MAX`] and [`ROLES_MAX`], empty ones left out.
    pub fn new<'a>(name: &str, roles: impl IntoIterator<Item = &'a str>) -> Self {
        let mut left = ROLES_LEN_MAX;
        let mut fits = |role: &&str| {
            let fits = (1..=NAME_LEN_MAX.min(left)).contains(&role.len());
            left -= if fits { role.len() } else { 0 };
            fits
        };
        let mut roles: Vec<Box<str>> = roles.into_iter().filter(&mut fits).take(ROLES_MAX).map(Box::from).collect();
        roles.sort_unstable();
        roles.dedup();
        Self(Arc::new(Inner { name: cut(name).into(), issuer: None, roles: roles.into() }))
    }

    /// The same, but called so by `issuer`, which is cut to [`NAME_LEN_MAX`]: nobody whom somebody else calls so.
    pub fn issued_by(&self, issuer: &str) -> Self {
        let Inner { name, roles, .. } = &*self.0;
        Self(Arc::new(Inner { name: name.clone(), issuer: Some(cut(issuer).into()), roles: roles.clone() }))
    }

    /// The name: of the token, the token's subject, or the certificate's client. Only with [`Principal::issuer`] does it say who
    /// that is: issuers name whom they like.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Who has named it: the issuer of its JWT; `None` for the node's own tokens and certificates.
    pub fn issuer(&self) -> Option<&str> {
        self.0.issuer.as_deref()
    }

    /// A text that no other principal has, whoever names it; the name alone for the node's own.
    pub fn id(&self) -> Cow<'_, str> {
        match self.issuer() {
            Some(issuer) => format!("{issuer}\n{}", self.name()).into(),
            None => self.name().into(),
        }
    }

    /// The roles, in order.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.0.roles.iter().map(|role| &**role)
    }

    /// Whether it has this role.
    pub fn has_role(&self, role: &str) -> bool {
        self.0.roles.iter().any(|own| **own == *role)
    }
}

fn cut(name: &str) -> &str {
    let end = (0..=NAME_LEN_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    &name[..end]
}

/// The role that may do everything.
pub const ADMIN: &str = "admin";
/// The role that may look after nodes and actors: all that a viewer may, with values and errors; it drains nodes, moves actors,
/// and sees to reminders and parked messages.
pub const OPERATOR: &str = "operator";
/// The role that may look at a cluster, but at no stored value and no error's text, and changes nothing.
pub const VIEWER: &str = "viewer";
/// The role that may read a node's metrics, and nothing else.
pub const METRICS: &str = "metrics";
/// The roles that mean something by themselves.
pub const BUILT_IN: [&str; 4] = [ADMIN, OPERATOR, VIEWER, METRICS];
/// What rules call everybody who has shown no credentials.
pub const ANONYMOUS: &str = "anonymous";
/// Longest name of a principal or role, in bytes.
pub const NAME_LEN_MAX: usize = 256;
/// Most roles of one principal.
pub const ROLES_MAX: usize = 32;
/// Longest roles of one principal together, in bytes: they travel with every call.
pub const ROLES_LEN_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_is_within_its_bounds() {
        let roles: Vec<String> = (0..100).map(|role| role.to_string()).collect();
        let principal = Principal::new(&"é".repeat(200), roles.iter().map(String::as_str));
        assert_eq!((principal.name().len(), principal.roles().count()), (NAME_LEN_MAX, ROLES_MAX));
        let principal = Principal::new("ada", ["", "b", "a", "b"]);
        assert!(principal.roles().eq(["a", "b"]));
        assert!(principal.has_role("a") && !principal.has_role("c"));
    }

    #[test]
    fn one_name_of_two_issuers_is_two_principals() {
        let own = Principal::new("ada", ["user"]);
        let [theirs, others] = ["https://id", "https://other"].map(|issuer| own.issued_by(issuer));
        assert!(own != theirs && theirs != others);
        assert!(own.id() != theirs.id() && theirs.id() != others.id());
        assert_eq!((theirs.name(), theirs.issuer(), theirs.has_role("user")), ("ada", Some("https://id"), true));
        assert_eq!(own.id(), "ada", "keys that are stored under the names of the node's own stay theirs");
    }
}
