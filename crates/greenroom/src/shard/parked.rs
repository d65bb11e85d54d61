//! Whose the messages are that wait for the directory: no actor's and no principal's leave no room for those of others.

use std::collections::BTreeMap;

use greenroom_security::principal::Principal;

/// How many messages of a shard wait, and whose they are.
#[derive(Default)]
pub(super) struct Counts {
    all: usize,
    /// By the actors' hashes.
    of_actor: BTreeMap<u64, usize>,
    /// Those on behalf of nobody are the cluster's own.
    of_principal: BTreeMap<String, usize>,
}

impl Counts {
    /// Counts one more, unless it has no room.
    pub(super) fn add(&mut self, actor: u64, principal: Option<&Principal>) -> bool {
        let principal = principal.map(Principal::id);
        let of_principal = principal.as_deref().and_then(|id| self.of_principal.get(id)).copied().unwrap_or_default();
        let of_actor = self.of_actor.get(&actor).copied().unwrap_or_default();
        let fits = self.all < PARKED_MAX && of_actor < OF_ACTOR_MAX && of_principal < OF_PRINCIPAL_MAX;
        if fits {
            self.all += 1;
            self.of_actor.insert(actor, of_actor + 1);
            if let Some(id) = principal {
                self.of_principal.insert(id.into_owned(), of_principal + 1);
            }
        }
        fits
    }

    /// Whether some are for the actor of this hash.
    pub(super) fn has(&self, actor: u64) -> bool {
        self.of_actor.contains_key(&actor)
    }
}

/// Messages of one shard that may wait for the directory.
const PARKED_MAX: usize = 16_384;
/// Of these, how many for one actor.
const OF_ACTOR_MAX: usize = PARKED_MAX / 8;
/// Of these, how many on behalf of one principal.
const OF_PRINCIPAL_MAX: usize = PARKED_MAX / 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_actors_messages_and_one_principals_leave_room_for_those_of_others() {
        let mut counts = Counts::default();
        let ada = Principal::new("ada", [""]);
        let theirs = ada.issued_by("https://id");
        let mut fill = |actors: std::ops::Range<u64>, by: Option<&Principal>| -> usize {
            actors.map(|actor| (0..=PARKED_MAX).take_while(|_| counts.add(actor, by)).count()).sum()
        };
        assert_eq!(fill(0..1, Some(&ada)), OF_ACTOR_MAX, "for one actor");
        assert_eq!(fill(1..100, Some(&ada)), OF_PRINCIPAL_MAX - OF_ACTOR_MAX, "for many by one principal");
        assert_eq!(fill(200..201, Some(&theirs)), OF_ACTOR_MAX, "another whom somebody else calls so has room");
        assert_eq!(fill(300..400, None), PARKED_MAX - OF_PRINCIPAL_MAX - OF_ACTOR_MAX, "and so have the cluster's own");
        assert!(counts.has(0) && counts.has(200) && !counts.has(1000));
    }
}
