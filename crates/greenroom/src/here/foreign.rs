//! Foreign kinds: what hosts say of the kinds that they offer, in place of what is compiled into other kinds.

use std::array;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom_describe::Description;
use greenroom_protocols::versions::Offer;

use super::by_kind::ByKind;
use super::kinds::AnyKind;
use crate::actor::interface::{MethodInfo, Options, Travels};

/// What a foreign kind is, by the newest description that is offered here.
pub(crate) struct Said {
    /// All methods that the kind has had here. A method's number is its place, for good: routes and messages that wait
    /// have it, whatever is offered meanwhile.
    pub(crate) methods: &'static [MethodInfo],
    /// Those that are offered now, in the order of the description.
    pub(crate) offered: Vec<u16>,
    pub(crate) offer: Offer,
    pub(crate) options: Options,
    pub(crate) description: Description,
}

/// A method as a description names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NamedMethod {
    pub(crate) name: String,
    pub(crate) read: bool,
}

/// A foreign kind of a node. What is said of it is kept for good, so that who reads it takes no lock.
pub(crate) struct ForeignKind {
    name: &'static str,
    said: [OnceLock<Said>; SAID_MAX],
    /// Which of them holds now.
    current: AtomicUsize,
}

/// More has been said of a kind than a node keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooMuchSaid;

impl Said {
    /// The number of a method that is offered now.
    pub(crate) fn number(&self, method: &str) -> Option<u16> {
        self.offered.iter().copied().find(|number| self.methods[usize::from(*number)].name == method)
    }

    /// How its actors go to another node: reliable ones with their partitions alone.
    pub(crate) fn travels(&self) -> Travels {
        let options = &self.description.options;
        match (options.reliable, options.migrate, options.persistent) {
            (false, true, _) => Travels::Carrying,
            (false, false, true) => Travels::ByStore,
            (true, ..) | (false, false, false) => Travels::Not,
        }
    }

    fn is_offered(&self, number: u16) -> bool {
        self.offered.contains(&number)
    }
}

impl ForeignKind {
    /// The kind called `name`, of which this is said first.
    pub(crate) fn new(name: &'static str, first: Said) -> Self {
        let kind = Self { name, said: array::from_fn(|_| OnceLock::new()), current: AtomicUsize::new(0) };
        let _ = kind.said[0].set(first);
        kind
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    #[inline]
    pub(crate) fn said(&self) -> &Said {
        let current = self.said[self.current.load(Ordering::Acquire)].get();
        current.expect("what holds has been said")
    }

    /// Lets this hold from now on. Callers take turns: they hold the lock of the node's offers.
    ///
    /// # Errors
    /// [`TooMuchSaid`]: the kind has changed too often since the process started. What held still does.
    pub(crate) fn say(&self, said: Said) -> Result<(), TooMuchSaid> {
        let known = self
            .said
            .iter()
            .map_while(OnceLock::get)
            .position(|known| known.description == said.description && known.offered == said.offered);
        let at = match known {
            Some(at) => at,
            None => {
                let free = self.said.iter().position(|place| place.get().is_none()).ok_or(TooMuchSaid)?;
                let _ = self.said[free].set(said);
                free
            }
        };
        self.current.store(at, Ordering::Release);
        Ok(())
    }

    /// All methods that the kind has had here with those of a description, and the numbers of the latter.
    pub(crate) fn number_all(&self, wanted: &[NamedMethod]) -> (&'static [MethodInfo], Vec<u16>) {
        let longest = self.said.iter().map_while(OnceLock::get).map(|said| said.methods).max_by_key(|all| all.len());
        number_all(longest.unwrap_or_default(), wanted)
    }
}

/// `known` methods with the `wanted` ones behind them, and the numbers of the latter. What is new is kept for good.
pub(crate) fn number_all(known: &'static [MethodInfo], wanted: &[NamedMethod]) -> (&'static [MethodInfo], Vec<u16>) {
    let mut all = known.to_vec();
    let numbers = wanted
        .iter()
        .map(|method| {
            let found = all.iter().position(|known| known.name == method.name && known.read == method.read);
            let at = found.unwrap_or_else(|| {
                let name = Box::leak(method.name.clone().into_boxed_str());
                all.push(MethodInfo { name, read: method.read, update: false });
                all.len() - 1
            });
            // Descriptions and what is kept of them are bounded: a table has at most 64 times 256 methods.
            at as u16
        })
        .collect();
    let all = if all.len() == known.len() { known } else { Box::leak(all.into_boxed_slice()) };
    (all, numbers)
}

/// The foreign kinds that a node has met.
pub(super) type Foreign = ByKind<Entry>;

/// A foreign kind, and its actors' type apart, as others are.
pub(super) struct Entry {
    pub(super) kind: std::sync::Arc<ForeignKind>,
    pub(super) entry: std::sync::Arc<dyn AnyKind>,
}

impl Said {
    /// The method's number for a message whose route was resolved with this one, perhaps long ago.
    pub(super) fn numbered(&self, resolved: Option<u16>, method: &str) -> Option<u16> {
        resolved.filter(|number| self.is_offered(*number)).or_else(|| self.number(method))
    }
}

/// Descriptions of one kind that a process keeps: it changes with each new version, not with each host.
const SAID_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn methods(names: &[(&str, bool)]) -> Vec<NamedMethod> {
        names.iter().map(|(name, read)| NamedMethod { name: (*name).to_owned(), read: *read }).collect()
    }

    #[test]
    fn a_methods_number_is_its_own_for_good() {
        let (first, numbers) = number_all(&[], &methods(&[("post", false), ("read", true)]));
        assert_eq!(numbers, [0, 1]);
        // A later version has turned a read into an exclusive turn, dropped a method, and added one.
        let (second, numbers) = number_all(first, &methods(&[("ban", false), ("read", false)]));
        assert_eq!(numbers, [2, 3]);
        assert_eq!(
            second.iter().map(|method| (method.name, method.read)).collect::<Vec<_>>(),
            [("post", false), ("read", true), ("ban", false), ("read", false)]
        );
        let (third, numbers) = number_all(second, &methods(&[("read", true), ("post", false)]));
        assert_eq!((third.len(), numbers), (4, vec![1, 0]));
    }
}
