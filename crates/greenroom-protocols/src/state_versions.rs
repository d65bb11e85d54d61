//! Versions of stored states: which one is written while nodes of several versions of a program work side by side.
//!
//! For each state of a kind, one version is *in force*: the one that is written. The membership table holds it. It rises once
//! all nodes that can host the kind read a later one, and it never falls: what was written under it is there. A node that does
//! not read it hosts no actor of the kind, and one that cannot write it hosts none as long as there is one that can.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::node::KindInfo;

/// The version of a state whose type says nothing of versions.
pub const FIRST: u8 = 1;

/// The versions of one state that a program reads and writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct StateVersions {
    /// The latest that it reads, and its own: it writes it unless an earlier one is in force.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub reads: u8,
    /// The earliest that it can write; not above `reads`.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub writes: u8,
}

impl StateVersions {
    /// Those of a type that says nothing of versions.
    pub const FIRST: Self = Self { reads: FIRST, writes: FIRST };

    /// The version to write while `in_force` is: that one, or the next to it that can be written.
    pub fn written(self, in_force: u8) -> u8 {
        in_force.max(self.writes).min(self.reads)
    }
}

impl Default for StateVersions {
    fn default() -> Self {
        Self::FIRST
    }
}

fn first() -> u8 {
    FIRST
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_first(version: &u8) -> bool {
    *version == FIRST
}

/// The versions in force, by kind and state; [`FIRST`] where nothing is said.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InForce(BTreeMap<String, BTreeMap<String, u8>>);

impl InForce {
    /// Whether no state has ever had a second version.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The version in force of the state called `state` of the actors of `kind`.
    pub fn of(&self, kind: &str, state: &str) -> u8 {
        self.0.get(kind).and_then(|states| states.get(state)).copied().unwrap_or(FIRST)
    }

    /// The first state of `kind` that a host of it does not read as it is written, with what it reads up to; `None` if it may
    /// host the kind's actors.
    pub fn unread<'a>(&self, kind: &'a KindInfo) -> Option<(&'a str, u8)> {
        let mut states = kind.states.iter().map(|(name, versions)| (name.as_str(), versions.reads));
        states.find(|(name, reads)| *reads < self.of(&kind.name, name))
    }

    /// Whether a host of `kind` can write its states so that all others read them.
    pub fn can_write(&self, kind: &KindInfo) -> bool {
        kind.states.iter().all(|(name, versions)| versions.writes <= self.of(&kind.name, name))
    }

    /// Raises what all of `hosts` read, each of whom can host its kind. Who does not know a state does not hold it back.
    pub fn raise<'a>(&mut self, hosts: impl IntoIterator<Item = &'a KindInfo>) {
        let mut read: BTreeMap<(&str, &str), u8> = BTreeMap::new();
        for kind in hosts {
            for (state, versions) in &kind.states {
                let least = read.entry((&kind.name, state)).or_insert(versions.reads);
                *least = versions.reads.min(*least);
            }
        }
        for ((kind, state), version) in read {
            if version > self.of(kind, state) {
                self.0.entry(kind.to_owned()).or_default().insert(state.to_owned(), version);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn kind(reads: u8, writes: u8) -> KindInfo {
        let states = BTreeMap::from([("self".to_owned(), StateVersions { reads, writes: writes.min(reads) })]);
        KindInfo { name: "till".into(), states, ..KindInfo::default() }
    }

    /// Who hosts the kind at one time: those that may, and of them those that can write what the others read, if any can.
    fn placed<'a>(in_force: &InForce, hosts: &'a [KindInfo]) -> Vec<&'a KindInfo> {
        let fit: Vec<&KindInfo> = hosts.iter().filter(|host| in_force.unread(host).is_none()).collect();
        let able: Vec<&KindInfo> = fit.iter().copied().filter(|host| in_force.can_write(host)).collect();
        if able.is_empty() { fit } else { able }
    }

    proptest! {
        /// Programs that write each other's versions come and go: whoever is given an actor reads what was written.
        #[test]
        fn who_is_given_an_actor_reads_what_was_written(times in vec(vec(1..5_u8, 1..5), 1..8)) {
            let (mut in_force, mut written) = (InForce::default(), FIRST);
            for reads in times {
                let hosts: Vec<KindInfo> = reads.into_iter().map(|reads| kind(reads, 1)).collect();
                in_force.raise(&hosts);
                for host in placed(&in_force, &hosts) {
                    let versions = host.states["self"];
                    prop_assert!(versions.reads >= written);
                    written = written.max(versions.written(in_force.of("till", "self")));
                }
            }
        }

        /// The same of programs that write their own version alone, as long as each is there while the one before it is.
        #[test]
        fn a_roll_from_one_version_to_the_next_is_read_at_every_step(old in 1..4_usize, new in 1..4_usize) {
            let mut in_force = InForce::default();
            let hosts = |old: usize, new: usize| {
                let of = |count: usize, version| std::iter::repeat_with(move || kind(version, version)).take(count);
                of(old, 1).chain(of(new, 2)).collect::<Vec<_>>()
            };
            for step in 0..=new {
                let hosts = hosts(old, step);
                in_force.raise(&hosts);
                prop_assert!(placed(&in_force, &hosts).iter().all(|host| host.states["self"].reads == 1), "the old write on");
            }
            in_force.raise(&hosts(0, new));
            prop_assert_eq!(in_force.of("till", "self"), 2);
            // One of the old program that comes back gets none of them.
            prop_assert!(placed(&in_force, &hosts(old, new)).iter().all(|host| host.states["self"].reads == 2));
        }

        #[test]
        fn what_is_in_force_never_falls(times in vec(vec(1..5_u8, 0..5), 1..8)) {
            let (mut in_force, mut last) = (InForce::default(), FIRST);
            for reads in times {
                in_force.raise(&reads.into_iter().map(|reads| kind(reads, 1)).collect::<Vec<_>>());
                prop_assert!(in_force.of("till", "self") >= last);
                last = in_force.of("till", "self");
            }
        }
    }

    #[test]
    fn a_state_that_nobody_has_any_more_keeps_nobody_out() {
        let mut in_force = InForce::default();
        in_force.raise(&[kind(2, 2)]);
        let without = KindInfo { name: "till".into(), ..KindInfo::default() };
        assert_eq!(in_force.unread(&without), None);
        assert_eq!(in_force.unread(&kind(1, 1)), Some(("self", 1)));
    }

    #[test]
    fn where_nobody_speaks_of_versions_nothing_is_kept() {
        let mut in_force = InForce::default();
        in_force.raise(&[kind(1, 1), kind(1, 1)]);
        assert!(in_force.is_empty());
        assert_eq!(StateVersions::FIRST.written(in_force.of("till", "self")), 1);
    }
}
