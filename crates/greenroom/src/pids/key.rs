//! How the keys of spawned actors are spelled: where the actor is can be read off its key.
//!
//! `~NODE.BIRTH.SHARD.NUMBER`, each a hexadecimal number without leading zeros. Keys that begin with `~` are nobody
//! else's.

use greenroom_protocols::node::NodeId;
use serde::{Deserialize, Serialize};

use crate::actor::error::Refusal;
use crate::actor::key::{ActorId, Key};
use crate::shard::slot::Slot;

/// Where a spawned actor is, for its whole life: what its key says.
///
/// It can name any activation, too: of all that a shard ever has, no two have the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Address {
    /// The incarnation of the node.
    pub(crate) node: u64,
    /// A random number of that incarnation: where the table is not kept, ids of nodes come again.
    pub(crate) birth: u32,
    /// The shard's place among those of the node.
    pub(crate) shard: u16,
    /// Which of the shard's activations; [`KEEPER`] for the shard's keeper.
    pub(crate) number: u64,
}

impl Address {
    pub(crate) fn node(&self) -> NodeId {
        NodeId(self.node)
    }

    /// The activation's slot; `None` for a keeper.
    pub(crate) fn slot(&self) -> Option<Slot> {
        let packed = self.number.checked_sub(1)?;
        Some(Slot { index: packed as u32, generation: (packed >> 32) as u32 })
    }

    /// The keeper of the actor's shard.
    pub(crate) fn keeper(&self) -> Address {
        Address { number: KEEPER, ..*self }
    }

    pub(crate) fn key(&self) -> Key {
        let Self { node, birth, shard, number } = self;
        Key::from(format!("{MARK}{node:x}.{birth:x}.{shard:x}.{number:x}"))
    }

    /// What `key` says, if it is a spawned actor's, in the one spelling that counts.
    pub(crate) fn parse(key: &str) -> Option<Address> {
        let mut parts = key.strip_prefix(MARK)?.split('.');
        let mut next = || {
            let part = parts.next()?;
            let canonical = part.len() <= 16
                && part.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
                && (part == "0" || !part.starts_with('0'));
            canonical.then(|| u64::from_str_radix(part, 16).ok()).flatten()
        };
        let address = Address {
            node: next()?,
            birth: u32::try_from(next()?).ok()?,
            shard: u16::try_from(next()?).ok()?,
            number: next()?,
        };
        parts.next().is_none().then_some(address)
    }
}

/// The number of the activation in `slot`.
pub(crate) fn number(slot: Slot) -> u64 {
    (u64::from(slot.generation) << 32 | u64::from(slot.index)) + 1
}

/// Whether only a spawned actor can have `key`.
#[inline]
pub(crate) fn is_reserved(key: &str) -> bool {
    key.as_bytes().first() == Some(&(MARK as u8))
}

/// What is said of a key that begins like a spawned actor's and is none, or was made up.
pub(crate) fn reserved(key: &str) -> Refusal {
    let message = format!(
        "{key:?} begins with `{MARK}`, as only the keys of spawned actors do; choose another key, or use the `Pid`"
    );
    Refusal::InvalidKey { message }
}

/// What is said of an actor that is no more.
pub(crate) fn dead(id: &ActorId) -> Refusal {
    Refusal::DeadLetter { actor: id.to_string() }
}

/// What keys of spawned actors begin with. It needs no escape in a URL.
const MARK: char = '~';
/// The number of a shard's keeper.
pub(crate) const KEEPER: u64 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(node: u64, birth: u32, shard: u16, number: u64) -> Address {
        Address { node, birth, shard, number }
    }

    #[test]
    fn the_spelling_is_a_promise_between_nodes() {
        let golden = [
            (address(1, 0, 0, 0), "~1.0.0.0"),
            (address(7, 0x9F3A_5C1E, 3, 42), "~7.9f3a5c1e.3.2a"),
            (address(u64::MAX, u32::MAX, u16::MAX, u64::MAX), "~ffffffffffffffff.ffffffff.ffff.ffffffffffffffff"),
        ];
        for (address, spelled) in golden {
            assert_eq!(address.key().as_str(), spelled);
            assert_eq!(Address::parse(spelled), Some(address));
        }
    }

    #[test]
    fn a_number_names_one_slot() {
        let slot = Slot { index: u32::MAX, generation: Slot::GENERATION_MAX };
        for slot in [Slot { index: 0, generation: 0 }, Slot { index: 5, generation: 9 }, slot] {
            assert_eq!(address(1, 2, 3, number(slot)).slot(), Some(slot));
        }
        assert_eq!(address(1, 2, 3, KEEPER).slot(), None);
    }

    #[test]
    fn only_one_spelling_counts() {
        for other in [
            "",
            "~",
            "~1.2.3",
            "~1.2.3.4.5",
            "1.2.3.4",
            "~01.2.3.4",
            "~1.2.3.0x4",
            "~1.2.3.+4",
            "~A.2.3.4",
            "~1.2.3.",
            "~1.100000000.3.4",
            "~1.2.10000.4",
            "~1.2.3.11111111111111111",
            "~1.2.3.4 ",
            "~~1.2.3.4",
        ] {
            assert_eq!(Address::parse(other), None, "{other:?}");
        }
    }
}
