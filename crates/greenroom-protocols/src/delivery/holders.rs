//! Whose the kept answers are: none of those who call holds more of a partition's room than is left for all others.
//!
//! So one alone fills half of the room, a second one half of the rest, and there is room for a newcomer until many have
//! filled it together (dynamic thresholds: Choudhury & Hahne, IEEE/ACM ToN '98).

use std::collections::BTreeMap;

use super::answers::hash;

/// Who holds how many bytes of what a partition keeps, by the hashes of their names. Two who share one by chance share their room.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Holders {
    bytes: BTreeMap<u64, u64>,
}

impl Holders {
    /// Takes in that `holder` keeps so many bytes more.
    pub(super) fn hold(&mut self, holder: u64, bytes: u64) {
        *self.bytes.entry(holder).or_default() += bytes;
    }

    /// Takes in that so many bytes of `holder` are gone.
    pub(super) fn let_go(&mut self, holder: u64, bytes: u64) {
        if let Some(held) = self.bytes.get_mut(&holder) {
            *held = held.saturating_sub(bytes);
            if *held == 0 {
                self.bytes.remove(&holder);
            }
        }
    }

    /// How many bytes `holder` keeps.
    pub(super) fn of(&self, holder: u64) -> u64 {
        self.bytes.get(&holder).copied().unwrap_or_default()
    }

    /// All of them, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        self.bytes.iter().map(|(holder, bytes)| (*holder, *bytes))
    }
}

/// Under what the answer to a call is kept: each actor has keys of its own, and in them each principal on whose behalf it is
/// called, so that nobody is told another one's answers. No two are alike: neither an actor's key nor a call's holds a control
/// character, so an actor ends at the first `#`, or, if it has one itself, at the second NUL, and a principal at the last line's end.
pub fn kept_under((kind, actor): (&str, &str), principal: Option<&str>, key: &str) -> String {
    let actor = if actor.contains('#') { format!("\0{kind}/{actor}\0") } else { format!("{kind}/{actor}#") };
    match principal {
        Some(principal) => format!("{actor}{principal}\n{key}"),
        None => format!("{actor}{key}"),
    }
}

/// Whose the answer is that is kept under this: the hash of the principal's name. All calls without one are one's. It is
/// written into bundles.
pub(super) fn holder(kept: &str) -> u64 {
    hash(principal(kept))
}

fn principal(kept: &str) -> &str {
    let parts = kept.strip_prefix('\0').map_or_else(|| kept.split_once('#'), |named| named.split_once('\0'));
    let (_, rest) = parts.unwrap_or(("", kept));
    rest.rsplit_once('\n').map_or("", |(principal, _)| principal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_an_answer_is_is_known_from_where_it_is_kept() {
        for actor in ["ada", "a#b"] {
            for by in [None, Some("bob"), Some("https://id\nbob"), Some("a#b\0c\n"), Some("\n")] {
                assert_eq!(
                    principal(&kept_under(("wallet", actor), by, "17#18")),
                    by.unwrap_or_default(),
                    "{actor} {by:?}"
                );
            }
        }
        assert_eq!(principal("17"), "", "a key of no actor is nobody's");
    }

    #[test]
    fn holders_are_a_promise_between_owners() {
        let keys = ["wallet/ada#1", "wallet/ada#ada\n1", "\0wallet/a#b\0ada\n2"];
        assert_eq!(keys.map(holder), [GOLDEN[0], GOLDEN[1], GOLDEN[1]]);
    }

    #[test]
    fn who_holds_nothing_any_more_is_forgotten() {
        let mut holders = Holders::default();
        holders.hold(1, 5);
        holders.hold(2, 7);
        holders.hold(1, 1);
        holders.let_go(1, 6);
        assert_eq!(holders.all().collect::<Vec<_>>(), [(2, 7)]);
        assert_eq!((holders.of(1), holders.of(2)), (0, 7));
    }

    const GOLDEN: [u64; 2] = [14_087_677_454_934_409_008, 6_564_885_230_254_629_562];
}
