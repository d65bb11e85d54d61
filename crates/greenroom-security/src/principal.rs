//! On whose behalf something is done.

use std::sync::Arc;

/// Who has shown credentials, and in which roles: what rules are about. It flows along calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal(Arc<Inner>);

#[derive(PartialEq, Eq, Debug)]
struct Inner {
    name: Box<str>,
    roles: Box<[Box<str>]>,
}

impl Principal {
    /// The principal called `name`, in `roles`: cut to [`NAME_LEN_MAX`] and [`ROLES_MAX`], empty ones left out.
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
        let end = (0..=NAME_LEN_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        Self(Arc::new(Inner { name: name[..end].into(), roles: roles.into() }))
    }

    /// The name: of the token, the token's subject, or the certificate's client.
    pub fn name(&self) -> &str {
        &self.0.name
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

/// The role that may do everything.
pub const ADMIN: &str = "admin";
/// The role that may read a node's metrics, and nothing else.
pub const METRICS: &str = "metrics";
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
}
