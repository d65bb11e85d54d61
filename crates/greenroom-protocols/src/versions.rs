//! Interface versions: which hosts of a kind serve which callers, and what becomes of an activation that does not.
//!
//! An actor only ever moves to a newer version: each [`Fit::HandOver`] goes to a host of a higher one, so that callers of
//! two versions cannot pass an actor to and fro. Where nothing says otherwise, every version is [`FIRST`].

use serde::{Deserialize, Serialize};

/// The version of an interface that says nothing of versions.
pub const FIRST: u16 = 1;

/// What callers speak who know no version, such as those at an HTTP door: any host serves them.
pub const ANY: u16 = 0;

/// The version of a kind's interface that a node hosts, and the oldest one whose callers it serves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// The version that it hosts.
    pub version: u16,
    /// The oldest version whose callers it serves; not above `version`.
    pub compatible: u16,
}

impl Offer {
    /// What is offered where nothing is said.
    pub const FIRST: Self = Self { version: FIRST, compatible: FIRST };

    /// Whether callers that speak `wanted` are served: not those of a newer version, whose methods may not be there.
    #[inline]
    pub fn serves(self, wanted: u16) -> bool {
        (self.compatible <= wanted && wanted <= self.version) || wanted == ANY
    }
}

impl Default for Offer {
    fn default() -> Self {
        Self::FIRST
    }
}

/// Of `hosts`, in their order, those of the newest version that serves callers of `wanted`; none if no one does.
pub fn newest<N>(hosts: impl IntoIterator<Item = (N, Offer)>, wanted: u16) -> Vec<N> {
    let mut best = Vec::new();
    let mut version = 0;
    for (host, offer) in hosts.into_iter().filter(|(_, offer)| offer.serves(wanted)) {
        if offer.version > version {
            best.clear();
            version = offer.version;
        }
        if offer.version == version {
            best.push(host);
        }
    }
    best
}

/// What an activation does with a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// Serves it.
    Serves,
    /// Ends, so that the actor is activated again where its newer callers are served.
    HandOver,
    /// Refuses it: no host serves it, or the actor has a newer version already than the caller can speak to.
    Refuses,
}

/// What an activation under `here` does with a call of `wanted`, while `hosts` take new activations of the kind.
pub fn fit(here: Offer, wanted: u16, hosts: impl IntoIterator<Item = Offer>) -> Fit {
    if here.serves(wanted) {
        Fit::Serves
    } else if wanted > here.version && hosts.into_iter().any(|host| host.serves(wanted)) {
        Fit::HandOver
    } else {
        Fit::Refuses
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn offers() -> impl Strategy<Value = Offer> {
        (1..6_u16, 0..6_u16)
            .prop_map(|(version, back)| Offer { version, compatible: version.saturating_sub(back).max(1) })
    }

    proptest! {
        #[test]
        fn chosen_hosts_serve_the_caller_and_no_newer_one_would(hosts in vec(offers(), 0..8), wanted in 0..8_u16) {
            let chosen = newest(hosts.iter().copied().enumerate(), wanted);
            let serving: Vec<_> = hosts.iter().filter(|host| host.serves(wanted)).collect();
            prop_assert_eq!(chosen.is_empty(), serving.is_empty());
            for at in chosen {
                prop_assert!(hosts[at].serves(wanted));
                prop_assert!(serving.iter().all(|other| other.version <= hosts[at].version));
            }
        }

        #[test]
        fn a_caller_is_never_served_by_an_older_version(here in offers(), hosts in vec(offers(), 0..8), wanted in 1..8_u16) {
            if fit(here, wanted, hosts) == Fit::Serves {
                prop_assert!(here.version >= wanted && here.compatible <= wanted);
            }
        }

        #[test]
        fn a_hand_over_goes_to_a_newer_version_that_serves_the_caller(
            here in offers(),
            hosts in vec(offers(), 0..8),
            wanted in 0..8_u16,
        ) {
            let next = newest(hosts.iter().copied().enumerate(), wanted);
            match fit(here, wanted, hosts.iter().copied()) {
                Fit::HandOver => {
                    prop_assert!(!next.is_empty());
                    prop_assert!(next.iter().all(|at| hosts[*at].version > here.version));
                }
                Fit::Refuses => prop_assert!(next.is_empty() || wanted < here.compatible),
                Fit::Serves => prop_assert!(here.serves(wanted)),
            }
        }

        #[test]
        fn callers_that_know_no_version_are_served_everywhere(here in offers()) {
            prop_assert_eq!(fit(here, ANY, []), Fit::Serves);
        }
    }

    #[test]
    fn who_never_speaks_of_versions_sees_none() {
        assert_eq!(fit(Offer::default(), FIRST, []), Fit::Serves);
        assert_eq!(newest([('a', Offer::FIRST), ('b', Offer::FIRST)], FIRST), ['a', 'b']);
    }

    #[test]
    fn an_actor_never_goes_back_to_an_older_version() {
        let (old, new) = (Offer::FIRST, Offer { version: 2, compatible: 2 });
        assert_eq!(fit(new, FIRST, [old, new]), Fit::Refuses);
        assert_eq!(fit(old, 2, [old, new]), Fit::HandOver);
        assert_eq!(fit(old, 2, [old]), Fit::Refuses);
    }
}
