//! Fair shares of the calls that a node works on at once: one actor that is slow, or one principal that asks much, leaves room for others.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::problem::Problem;

/// The calls that the endpoints work on, of all clients together.
pub(super) struct CallShares {
    max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    total: usize,
    /// Calls to each actor that has any, by the hash of its kind and key.
    actors: BTreeMap<u64, usize>,
    principals: BTreeMap<String, usize>,
}

/// The place of one call. Dropping it frees the place.
pub(super) struct CallPlace<'a> {
    shares: &'a CallShares,
    actor: u64,
    principal: Option<String>,
}

impl CallShares {
    pub(super) fn new(max: usize) -> Self {
        Self { max, state: Mutex::default() }
    }

    /// Takes a place for a call to `actor` by `principal`, if it is known. An actor may have as many calls as there are places left,
    /// so that the second one that is slow still gets half of what the first one has left; a principal three times as many.
    ///
    /// # Errors
    /// The problem that the client is told: which bound it was. Nothing ran.
    pub(super) fn enter(&self, actor: u64, principal: Option<&str>) -> Result<CallPlace<'_>, Problem> {
        let mut state = self.lock();
        let left = self.max - state.total;
        if left == 0 {
            return Err(Problem::busy("the node works on as many requests as it may"));
        }
        if state.actors.get(&actor).is_some_and(|held| *held >= left) {
            return Err(Problem::busy("the actor has as many requests as its share of those that the node works on"));
        }
        let held = principal.and_then(|principal| state.principals.get(principal));
        if held.is_some_and(|held| *held >= left.saturating_mul(PRINCIPAL_SHARE)) {
            return Err(Problem::busy(
                "the principal has as many requests as its share of those that the node works on",
            ));
        }
        state.total += 1;
        *state.actors.entry(actor).or_default() += 1;
        if let Some(principal) = principal {
            *state.principals.entry(principal.to_owned()).or_default() += 1;
        }
        Ok(CallPlace { shares: self, actor, principal: principal.map(str::to_owned) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallPlace<'_> {
    fn drop(&mut self) {
        let mut state = self.shares.lock();
        state.total -= 1;
        release(&mut state.actors, &self.actor);
        if let Some(principal) = &self.principal {
            release(&mut state.principals, principal);
        }
    }
}

/// Gives one of the places back that are counted under `name`.
fn release<K: Ord>(held: &mut BTreeMap<K, usize>, name: &K) {
    if let Some(count) = held.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            held.remove(name);
        }
    }
}

/// Places that a principal may have, as a multiple of those that are left.
const PRINCIPAL_SHARE: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// Enters until it is refused; the places.
    fn fill<'a>(shares: &'a CallShares, actor: u64, principal: Option<&str>) -> Vec<CallPlace<'a>> {
        std::iter::from_fn(|| shares.enter(actor, principal).ok()).collect()
    }

    #[test]
    fn each_actor_leaves_half_of_what_there_is_to_others() {
        let shares = CallShares::new(1024);
        let first = fill(&shares, 1, None);
        let second = fill(&shares, 2, None);
        assert_eq!((first.len(), second.len()), (512, 256));
        drop(first);
        let third = fill(&shares, 3, None);
        assert_eq!(third.len(), 384);
        assert_eq!(fill(&shares, 2, None).len(), 64, "beside those that it has");
    }

    #[test]
    fn each_principal_leaves_a_quarter_of_what_there_is_to_others() {
        let shares = CallShares::new(1024);
        let by = |name: &str, from: u64| {
            (from..).map_while(|actor| shares.enter(actor, Some(name)).ok()).collect::<Vec<_>>()
        };
        let (ada, bob) = (by("ada", 0), by("bob", 5_000));
        assert_eq!((ada.len(), bob.len()), (768, 192));
        drop((ada, bob));
        assert!(shares.lock().actors.is_empty() && shares.lock().principals.is_empty() && shares.lock().total == 0);
    }

    #[test]
    fn a_single_place_can_be_had() {
        let shares = CallShares::new(1);
        let place = shares.enter(1, Some("ada")).expect("it is free");
        assert!(shares.enter(2, None).is_err());
        drop(place);
        assert!(shares.enter(2, None).is_ok());
    }
}
