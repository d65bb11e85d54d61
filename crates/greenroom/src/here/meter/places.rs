//! Where the turns of methods are counted that this program's own code has: each has a place, the same one on each shard, that its
//! kind's entry knows. To count a turn there is to add to a number at an index.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::actor::key::Kind;
use crate::here::by_kind::ByKind;

/// Methods that have places; those of kinds that are met when all are taken are counted in their meters.
pub(super) const PLACES: usize = 1 << 12;

/// The places of a kind's methods, which follow each other.
struct Taken {
    first: u32,
    len: u32,
}

static TAKEN: LazyLock<ByKind<Taken>> = LazyLock::new(ByKind::default);
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The place of the first of a kind's `methods`, if it has as many: it is given them when it is met first.
pub(super) fn first_place(kind: Kind, methods: usize) -> Option<usize> {
    let taken = match TAKEN.find(kind) {
        Some(taken) => taken,
        None => {
            let len = u32::try_from(methods).ok().filter(|len| *len <= PLACES as u32)?;
            let taken = |next: u32| next.checked_add(len).filter(|end| *end <= PLACES as u32);
            let first = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).ok()?;
            TAKEN.insert(kind, Taken { first, len })?
        }
    };
    (methods <= taken.len as usize).then_some(taken.first as usize)
}

/// What a kind's entry knows of its places.
pub(crate) struct Place {
    /// [`UNKNOWN`] until they are.
    first: AtomicU32,
    methods: usize,
}

impl Place {
    /// For a kind of so many methods.
    pub(crate) fn new(methods: usize) -> Self {
        Self { first: AtomicU32::new(UNKNOWN), methods }
    }

    /// For a kind that has none, as the number of its methods may change.
    pub(crate) fn none() -> Self {
        Self::new(usize::MAX)
    }

    /// Where turns of a method are counted; beyond all places, if that is not known.
    #[inline]
    pub(crate) fn of(&self, method: u16) -> usize {
        self.first.load(Ordering::Relaxed) as usize + usize::from(method)
    }

    /// Takes in that so many methods have places, from `first` on.
    pub(super) fn learn(&self, first: usize, methods: usize) {
        if self.methods <= methods {
            self.first.store(first as u32, Ordering::Relaxed);
        }
    }
}

const UNKNOWN: u32 = u32::MAX;
