//! What a node is told of hosts.

use std::time::Duration;

use greenroom_security::principal::{ADMIN, Principal};
use serde::{Deserialize, Serialize};

use crate::node::config::seconds;

/// How hosts come to a node: the table `[hosts]` of its configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct HostsConfig {
    /// Where hosts on this machine come in: `unix:PATH`, `auto` for a socket named after the node in the user's runtime directory,
    /// or `off`. Empty is `auto` for programs that run by their flags, and `off` for nodes that a program starts by itself.
    pub listen: String,
    /// Users that may connect there, by their numbers, besides the node's own.
    pub uids: Vec<u32>,
    /// How long a host may act after it last asked, in seconds in files; 5 s by default, 200 ms at least.
    #[serde(with = "seconds")]
    pub lease: Duration,
    /// How long actors wait for another host after theirs is lost, and how long their kind stays in the cluster; 8 s by default:
    /// where it is longer than calls may take (`call_timeout`, 10 s), they time out before they hear [`Refusal::NoHost`](crate::Refusal::NoHost).
    #[serde(with = "seconds")]
    pub grace: Duration,
    /// Who may offer what, of those who come by the HTTP door. Where it is empty, only the role `admin` may, and at a door without
    /// credentials, which lets only its own machine in, everybody.
    pub allow: Vec<HostRule>,
}

/// Which kinds hosts may offer that have shown one of some roles.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct HostRule {
    /// The roles, as tokens name them.
    pub roles: Vec<String>,
    /// The kinds; a `*` at the end stands for any text.
    pub kinds: Vec<String>,
}

impl HostRule {
    /// Lets hosts that have shown one of `roles` at the HTTP door offer `kinds`.
    ///
    /// ```
    /// let builder = greenroom::Node::builder().configure(|config| {
    ///     config.hosts.listen = "auto".into();
    ///     config.hosts.allow.push(greenroom::HostRule::new(["chat"], ["chat_*", "user"]));
    /// });
    /// # drop(builder);
    /// ```
    pub fn new<R: Into<String>, K: Into<String>>(
        roles: impl IntoIterator<Item = R>,
        kinds: impl IntoIterator<Item = K>,
    ) -> Self {
        Self { roles: roles.into_iter().map(Into::into).collect(), kinds: kinds.into_iter().map(Into::into).collect() }
    }
}

impl Default for HostsConfig {
    fn default() -> Self {
        Self {
            listen: String::new(),
            uids: Vec::new(),
            lease: Duration::from_secs(5),
            grace: Duration::from_secs(8),
            allow: Vec::new(),
        }
    }
}

impl HostsConfig {
    /// Whether there is a socket for hosts.
    pub(crate) fn are_taken(&self) -> bool {
        !matches!(self.listen.as_str(), "" | "off")
    }

    /// Whether `who` may offer `kind`, who has come by the door: `None` if that knows no credentials.
    pub(crate) fn allows(&self, who: Option<&Principal>, kind: &str) -> bool {
        let covers = |pattern: &String| match pattern.strip_suffix('*') {
            Some(begin) => kind.starts_with(begin),
            None => pattern == kind,
        };
        let Some(who) = who else { return self.allow.is_empty() };
        let meets = |rule: &HostRule| rule.roles.iter().any(|role| who.has_role(role)) && rule.kinds.iter().any(covers);
        who.has_role(ADMIN) || self.allow.iter().any(meets)
    }

    /// The lease that hosts are given.
    pub(crate) fn lease(&self) -> Duration {
        self.lease.max(LEASE_MIN)
    }
}

const LEASE_MIN: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_roles_and_kinds() {
        let rule = HostRule::new(["chat"], ["chat_*", "user"]);
        let config = HostsConfig { allow: vec![rule], ..HostsConfig::default() };
        let with = |roles: &[&str]| Principal::new("ada", roles.iter().copied());
        let (chat, other) = (with(&["other", "chat"]), with(&["other"]));
        assert!(config.allows(Some(&chat), "chat_room") && config.allows(Some(&chat), "user"));
        assert!(!config.allows(Some(&chat), "users") && !config.allows(Some(&other), "user"));
        assert!(!config.allows(None, "user"), "at a door without credentials nobody has a role");
        let (unsaid, admin) = (HostsConfig::default(), with(&["admin"]));
        assert!(
            unsaid.allows(None, "user") && unsaid.allows(Some(&admin), "user") && !unsaid.allows(Some(&chat), "user")
        );
    }
}
