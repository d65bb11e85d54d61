//! Merge sort by divide and conquer: each split activates two new actors.
//!
//! Three kinds do the same, so that each can live on a node of its own.

use std::cell::Cell;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A sorted list and the actors that it took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sorted {
    /// The numbers in ascending order.
    pub list: Vec<i32>,
    /// Actors that were activated for it, each by its only call.
    pub activations: u64,
}

macro_rules! sorter {
    ($(#[$doc:meta])* $name:ident, $role:literal) => {
        $(#[$doc])*
        #[derive(Default, Actor)]
        pub struct $name;

        #[actor]
        impl $name {
            /// Sorts `list` with the help of two new actors, of the next two of `roles` kinds.
            pub async fn divide(&mut self, cx: &Cx, list: Vec<i32>, roles: u8) -> Result<Sorted, String> {
                divide(cx, list, roles, $role).await
            }
        }
    };
}

sorter!(
    /// Sorts; the first kind.
    SortA,
    0
);
sorter!(
    /// Sorts; the second kind.
    SortB,
    1
);
sorter!(
    /// Sorts; the third kind.
    SortC,
    2
);

async fn divide(cx: &Cx, mut list: Vec<i32>, roles: u8, role: u8) -> Result<Sorted, String> {
    if list.len() <= LEAF_LEN_MAX {
        list.sort_unstable();
        return Ok(Sorted { list, activations: 1 });
    }
    let upper = list.split_off(list.len() / 2);
    let roles = roles.clamp(1, ROLES);
    let (left, right) =
        tokio::join!(conquer(cx, list, roles, (role + 1) % roles), conquer(cx, upper, roles, (role + 2) % roles));
    let (left, right) = (left?, right?);
    let activations = 1 + left.activations + right.activations;
    Ok(Sorted { list: merge(left.list, right.list), activations })
}

async fn conquer(cx: &Cx, list: Vec<i32>, roles: u8, role: u8) -> Result<Sorted, String> {
    let key = fresh_key();
    let sorted = match role {
        0 => SortARef::of(cx, key).divide(list, roles).await,
        1 => SortBRef::of(cx, key).divide(list, roles).await,
        _ => SortCRef::of(cx, key).divide(list, roles).await,
    };
    sorted.map_err(|error| error.to_string())
}

fn merge(left: Vec<i32>, right: Vec<i32>) -> Vec<i32> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(l), Some(r)) = (left.peek(), right.peek()) {
        merged.extend(if l <= r { left.next() } else { right.next() });
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

/// A UUID that nobody has: seeded by the system once a thread, as asking it for each key costs more than an activation.
fn fresh_key() -> Uuid {
    thread_local!(static STATE: Cell<u128> = Cell::new(Uuid::new_v4().as_u128() | 1));
    STATE.with(|state| {
        // A multiplicative generator with 128 bits of state visits each odd state once in 2^126 steps; the swap of its
        // halves moves the well-mixed upper bits to where keys are told apart.
        let next = state.get().wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645);
        state.set(next);
        uuid::Builder::from_random_bytes(next.rotate_left(64).to_be_bytes()).into_uuid()
    })
}

/// Kinds that sort.
pub(crate) const ROLES: u8 = 3;
/// Lists of up to this length are sorted by the actor that gets them.
const LEAF_LEN_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn merging_keeps_order_and_every_number() {
        assert_eq!(merge(vec![1, 3, 3], vec![0, 3, 9, 10]), [0, 1, 3, 3, 3, 9, 10]);
        assert_eq!(merge(vec![], vec![2]), [2]);
    }

    #[test]
    fn fresh_keys_differ_between_calls_and_threads() {
        let keys = || (0..1000).map(|_| fresh_key()).collect::<BTreeSet<_>>();
        let other = std::thread::spawn(keys).join().expect("it does not panic");
        assert_eq!(keys().union(&other).count(), 2000);
    }
}
