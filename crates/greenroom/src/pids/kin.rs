//! What a shard knows of its spawned actors: whose children they are, and how they are supervised.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use greenroom_protocols::supervision::{Decision, Supervise, Supervisor};
use greenroom_world::Timestamp;

use super::key::{Address, number};
use super::watch::Watches;
use crate::actor::interface::Why;
use crate::shard::Slot;

/// The spawned actors of one shard, by the numbers of their activations.
#[derive(Default)]
pub(super) struct Kin {
    spawned: BTreeMap<u64, Kid>,
    /// The children that activations of this shard have on it.
    children: BTreeMap<u64, BTreeSet<u64>>,
    /// Those that they have elsewhere.
    distant: BTreeMap<u64, BTreeSet<Address>>,
    /// Who is to be made anew, and when.
    restarts: BTreeSet<(Timestamp, u64)>,
    pub(super) watches: Watches,
    pub(super) keeper: Option<Slot>,
    /// Why those ended that ended last.
    ends: BTreeMap<u64, Why>,
    ended: VecDeque<u64>,
    /// Restarts since the shard began.
    pub(super) restarted: u64,
}

/// A spawned actor.
pub(super) struct Kid {
    pub(super) parent: Option<Parent>,
    supervisor: Supervisor,
    pub(super) since: Timestamp,
    pub(super) restarts: u32,
}

/// Who spawned an actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Parent {
    /// An activation of the same shard.
    Here(u64),
    /// An activation elsewhere.
    Away(Address),
}

impl Kin {
    /// Whether there is nothing that anybody's end could matter to.
    pub(super) fn is_empty(&self) -> bool {
        self.spawned.is_empty() && self.watches.is_empty() && self.distant.is_empty()
    }

    /// Whether that is where the shard's keeper is.
    pub(super) fn is_keeper(&self, slot: Slot) -> bool {
        self.keeper == Some(slot)
    }

    /// Spawned actors on this shard.
    pub(super) fn len(&self) -> usize {
        self.spawned.len()
    }

    pub(super) fn enter(&mut self, slot: Slot, parent: Option<Parent>, policy: Supervise, now: Timestamp) {
        let kid = Kid { parent, supervisor: Supervisor::new(policy), since: now, restarts: 0 };
        if let Some(Parent::Here(parent)) = parent {
            self.children.entry(parent).or_default().insert(number(slot));
        }
        self.spawned.insert(number(slot), kid);
    }

    pub(super) fn adopt(&mut self, parent: u64, child: Address) {
        self.distant.entry(parent).or_default().insert(child);
    }

    /// All of them, by number.
    pub(super) fn kids(&self) -> impl Iterator<Item = (u64, &Kid)> {
        self.spawned.iter().map(|(number, kid)| (*number, kid))
    }

    pub(super) fn find(&self, slot: Slot) -> Option<&Kid> {
        self.spawned.get(&number(slot))
    }

    /// Whether the activation has children.
    pub(super) fn is_parent(&self, slot: Slot) -> bool {
        let number = number(slot);
        self.children.contains_key(&number) || self.distant.contains_key(&number)
    }

    /// The children of the activation: those here, and those elsewhere.
    pub(super) fn children(&self, slot: Slot) -> (impl Iterator<Item = u64>, impl Iterator<Item = &Address>) {
        let number = number(slot);
        (self.children.get(&number).into_iter().flatten().copied(), self.distant.get(&number).into_iter().flatten())
    }

    /// Takes out the children of the activation: those here, and those elsewhere.
    pub(super) fn orphans(&mut self, slot: Slot) -> (BTreeSet<u64>, BTreeSet<Address>) {
        let number = number(slot);
        (self.children.remove(&number).unwrap_or_default(), self.distant.remove(&number).unwrap_or_default())
    }

    /// What becomes of a spawned actor that has failed; a restart is noted for its time.
    pub(super) fn failed(&mut self, slot: Slot, now: Timestamp, roll: u64) -> Decision {
        let number = number(slot);
        let Some(kid) = self.spawned.get_mut(&number) else { return Decision::Stop };
        let decision = kid.supervisor.failed(now, roll);
        if let Decision::Restart { after } = decision {
            self.restarts.insert((now + after, number));
        }
        decision
    }

    /// Notes that the actor is made anew together with a sibling.
    pub(super) fn restart_at(&mut self, slot: Slot, due: Timestamp) {
        self.restarts.insert((due, number(slot)));
    }

    /// The siblings that share the actor's fate, if it is such a one.
    pub(super) fn together(&self, slot: Slot) -> Vec<u64> {
        let me = number(slot);
        let Some(Kid { parent: Some(Parent::Here(parent)), supervisor, .. }) = self.spawned.get(&me) else {
            return Vec::new();
        };
        let siblings = self.children.get(parent).filter(|_| supervisor.policy().is_together());
        let shares = |number: &u64| {
            *number != me && self.spawned.get(number).is_some_and(|kid| kid.supervisor.policy().is_together())
        };
        siblings.into_iter().flatten().copied().filter(shares).collect()
    }

    /// Takes out one that is to be made anew by `now`.
    pub(super) fn take_restart(&mut self, now: Timestamp) -> Option<u64> {
        while let Some((due, number)) = self.restarts.first().copied().filter(|(due, _)| *due <= now) {
            self.restarts.remove(&(due, number));
            // It may have ended meanwhile.
            if let Some(kid) = self.spawned.get_mut(&number) {
                kid.restarts += 1;
                kid.since = now;
                self.restarted += 1;
                return Some(number);
            }
        }
        None
    }

    /// When somebody is next made anew.
    pub(super) fn next_restart(&self) -> Option<Timestamp> {
        self.restarts.first().map(|(due, _)| *due)
    }

    /// Takes out an activation that has ended.
    pub(super) fn remove(&mut self, slot: Slot, why: Why) {
        let number = number(slot);
        let Some(kid) = self.spawned.remove(&number) else { return };
        if let Some(Parent::Here(parent)) = kid.parent
            && let Some(children) = self.children.get_mut(&parent)
        {
            children.remove(&number);
            if children.is_empty() {
                self.children.remove(&parent);
            }
        }
        self.ends.insert(number, why);
        self.ended.push_back(number);
        if self.ended.len() > ENDS_MAX
            && let Some(oldest) = self.ended.pop_front()
        {
            self.ends.remove(&oldest);
        }
    }

    /// Takes out a child elsewhere that has ended.
    pub(super) fn child_gone(&mut self, parent: u64, child: &Address) {
        if let Some(children) = self.distant.get_mut(&parent) {
            children.remove(child);
            if children.is_empty() {
                self.distant.remove(&parent);
            }
        }
    }

    /// Why the actor ended, if that is still known.
    pub(super) fn why(&self, number: u64) -> Why {
        self.ends.get(&number).copied().unwrap_or(Why::Unknown)
    }
}

/// Ended actors that a shard still knows the reason of.
const ENDS_MAX: usize = 1024;
