//! The host's side of one range: which grants it accepts.

use std::sync::Arc;

use super::tenure::Tenure;
use super::{Epoch, Grant, RangeId};
use crate::checks::Checks;
use crate::node::{NodeId, View};

/// The host's side of one range; see the [module](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Host {
    me: NodeId,
    range: RangeId,
    checks: Checks,
    view: Option<Arc<View>>,
    pub(super) tenure: Tenure,
    /// The highest epoch released here.
    floor: Epoch,
}

/// Whether an actor may be activated here under a grant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Acceptance {
    /// Activate it, and take it down before anything else happens to the range.
    Accepted,
    /// The activation of this epoch was released here, or one after it: [release](super::Range::release) it again, tell the
    /// owner, and hand it the call back.
    Stale,
    /// Our view is older than this version, which the grantor knows: read the table, then ask again.
    Behind {
        /// The grantor's version.
        view: u64,
    },
    /// The grantor does not own the range, or not without a break: hand the call to the owner, which needs this version.
    NotOwner {
        /// The owner that we know.
        owner: Option<NodeId>,
        /// Our version.
        view: u64,
    },
    /// The grant is for another incarnation: hand the call back (D4).
    NotMe,
}

impl Host {
    /// The side of node `me` as a host of `range`.
    pub fn new(me: NodeId, range: RangeId, checks: Checks) -> Self {
        Self { me, range, checks, view: None, tenure: Tenure::default(), floor: Epoch::default() }
    }

    /// Whether an actor that is not active here may be activated under `grant`.
    pub fn accept(&self, grant: &Grant) -> Acceptance {
        self.accept_above(self.floor, grant)
    }

    /// As [`Host::accept`], for who holds what the actor was, and has since this was the [floor](Host::floor): only others can have
    /// been released here meanwhile, and may have been under later epochs than the owner's word has, if that comes late.
    pub fn accept_held(&self, since: Epoch, grant: &Grant) -> Acceptance {
        self.accept_above(if self.checks.held_floor { since } else { self.floor }, grant)
    }

    fn accept_above(&self, floor: Epoch, grant: &Grant) -> Acceptance {
        if self.checks.incarnation_check && grant.placed.node != self.me {
            return Acceptance::NotMe;
        }
        let version = self.version();
        if self.checks.view_check {
            if version < grant.view {
                return Acceptance::Behind { view: grant.view };
            }
            if self.tenure.owner != Some(grant.by) || grant.view < self.tenure.since {
                return Acceptance::NotOwner { owner: self.tenure.owner, view: version };
            }
        }
        if self.checks.epoch_check && grant.placed.epoch <= floor {
            return Acceptance::Stale;
        }
        Acceptance::Accepted
    }

    /// Returns true if `by` owns the range in this node's view, and has done so without a break since its version `view`: then its
    /// [`Decision::Void`](super::Decision::Void) counts.
    ///
    /// A former owner may have given the actor to another host, which cannot accept that any more.
    pub fn heeds(&self, by: NodeId, view: u64) -> bool {
        let is_owner = self.tenure.owner == Some(by) && (self.tenure.since..=self.version()).contains(&view);
        is_owner || !self.checks.void_view
    }

    /// The highest epoch that was released here, of any actor of the range.
    pub fn floor(&self) -> Epoch {
        self.floor
    }

    /// Raises the floor: the activation of `epoch` has ended here, or never will begin. Only then tell the owner.
    pub fn release(&mut self, epoch: Epoch) {
        self.floor = self.floor.max(epoch);
    }

    /// Takes in `view`; the owner to report to if a new tenure begins.
    pub fn view(&mut self, view: Arc<View>) -> Option<NodeId> {
        if view.version < self.version() {
            return None;
        }
        let begins = self.tenure.advance(self.range, self.view.as_deref(), &view, self.checks);
        self.view = Some(view);
        self.tenure.owner.filter(|_| begins)
    }

    /// Whether to answer `from`, which asks for a report of version `view` or later.
    pub fn answers(&self, from: NodeId, view: u64) -> bool {
        self.version() >= view && self.tenure.owner == Some(from)
    }

    /// The owner of the range in our view.
    pub fn owner(&self) -> Option<NodeId> {
        self.tenure.owner
    }

    /// The version of our view; 0 before the first.
    pub fn version(&self) -> u64 {
        self.view.as_ref().map_or(0, |view| view.version)
    }
}
