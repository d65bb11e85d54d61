//! Which actors may move, and what keeps the others where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use crate::actor::interface::Travels;
use crate::actor::key::Kind;
use crate::here::Here;

/// Why the actors of a kind stay where they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    /// The node does not host them any more.
    NotHosted,
    NotCarried,
    Worker,
    Reliable,
    Versioned,
    /// The node's configuration says so.
    Configured,
    Pinned,
    AtHome,
    Placed(Box<str>),
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHosted => "its kind is not hosted here any more",
            Self::NotCarried => {
                "it cannot take along what it holds: write `#[actor(migrate)]`, or keep all of it in a store"
            }
            Self::Worker => "it is a stateless worker, which each node has",
            Self::Reliable => "it is reliable, and where its partition is",
            Self::Versioned => "it is versioned, and where its instances are",
            Self::Configured => "this node's configuration says `optimise = false` of its kind",
            Self::Pinned => "its kind is pinned",
            Self::AtHome => "its kind has a home",
            Self::Placed(placement) => {
                return write!(
                    f,
                    "its kind is placed by {placement:?}: write `#[actor(optimise)]` if it may move nevertheless"
                );
            }
        })
    }
}

/// The nodes on which actors of `kind` may be, this one among them; or what keeps them where they are.
pub(super) fn destinations(here: &Here, kind: Kind) -> Result<BTreeSet<NodeId>, Anchor> {
    let kinds = here.kinds();
    let entry = kinds.find(kind).ok_or(Anchor::NotHosted)?;
    let options = entry.options();
    if options.workers > 0 {
        return Err(Anchor::Worker);
    }
    if options.reliable {
        return Err(Anchor::Reliable);
    }
    if entry.is_versioned() {
        return Err(Anchor::Versioned);
    }
    if entry.travels() == Travels::Not {
        return Err(Anchor::NotCarried);
    }
    let view = here.view();
    let hosts = view.hosts(kind).ok_or(Anchor::NotHosted)?;
    let role = hosts.placement.strip_prefix("role:");
    let placed_freely = matches!(&*hosts.placement, "" | "balanced" | "random" | "local") || role.is_some();
    let configured = here.config().kinds.get(kind.name()).and_then(|kind| kind.optimise);
    match (configured, options.optimise) {
        (Some(false), _) => return Err(Anchor::Configured),
        (None, Some(false)) => return Err(Anchor::Pinned),
        (None, None) if !hosts.home.is_empty() => return Err(Anchor::AtHome),
        (None, None) if !placed_freely => return Err(Anchor::Placed(hosts.placement.as_str().into())),
        _ => {}
    }
    let has_role = |node| {
        let member = view.member(node);
        role.is_none_or(|role| member.is_some_and(|member| member.roles.iter().any(|known| known == role)))
    };
    Ok(hosts.serving_among(entry.offer().version, has_role).into_iter().collect())
}

/// The actors that have asked to stay on their node, by their hashes, and until when.
#[derive(Default)]
pub(super) struct Pins(BTreeMap<u64, Timestamp>);

impl Pins {
    /// Lets an actor stay until then; the last word counts.
    pub(super) fn pin(&mut self, actor: u64, until: Timestamp, now: Timestamp) {
        if until > now {
            self.0.insert(actor, until);
        } else {
            self.0.remove(&actor);
        }
    }

    pub(super) fn holds(&self, actor: u64, now: Timestamp) -> bool {
        self.0.get(&actor).is_some_and(|until| *until > now)
    }

    /// Until when an actor stays that goes to another shard of its node, where that is to be known.
    pub(super) fn take(&mut self, actor: u64) -> Option<Timestamp> {
        self.0.remove(&actor)
    }

    /// Forgets those whose time is over.
    pub(super) fn look(&mut self, now: Timestamp) {
        self.0.retain(|_, until| *until > now);
    }
}
