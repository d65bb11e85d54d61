//! What an event or a finding is about.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an event or a finding is about; empty for the node that says it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Subject {
    /// A node, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// One of its threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<u16>,
    /// A cluster, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// A kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A method of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// An actor, as `kind/key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

impl Subject {
    pub(crate) fn node(name: impl Into<String>) -> Self {
        Self { node: Some(name.into()), ..Self::default() }
    }

    pub(crate) fn shard(node: impl Into<String>, shard: u16) -> Self {
        Self { shard: Some(shard), ..Self::node(node) }
    }

    pub(crate) fn cluster(name: impl Into<String>) -> Self {
        Self { cluster: Some(name.into()), ..Self::default() }
    }

    pub(crate) fn kind(name: impl Into<String>) -> Self {
        Self { kind: Some(name.into()), ..Self::default() }
    }

    pub(crate) fn method(kind: impl Into<String>, method: impl Into<String>) -> Self {
        Self { method: Some(method.into()), ..Self::kind(kind) }
    }

    pub(crate) fn actor(actor: impl Into<String>) -> Self {
        Self { actor: Some(actor.into()), ..Self::default() }
    }

    /// Whether a part of it has this name.
    pub(crate) fn names(&self, name: &str) -> bool {
        let parts = [&self.node, &self.cluster, &self.kind, &self.method, &self.actor];
        let kind = self.actor.as_deref().and_then(|actor| actor.split_once('/')).map(|(kind, _)| kind);
        parts.into_iter().flatten().any(|part| part == name) || kind == Some(name)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shard = self.shard.map(|shard| shard.to_string());
        let parts = [
            ("node", &self.node),
            ("thread", &shard),
            ("cluster", &self.cluster),
            ("kind", &self.kind),
            ("method", &self.method),
            ("actor", &self.actor),
        ];
        let said = parts.into_iter().filter_map(|(what, name)| Some(format!("{what} {}", name.as_ref()?)));
        f.write_str(&said.collect::<Vec<_>>().join(" "))
    }
}
