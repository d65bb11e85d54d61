//! A table with a place for each kind of this process. What comes stays: who looks takes no lock.

use std::array;
use std::sync::OnceLock;

use crate::actor::key::{KINDS_OFFERED_MAX, Kind};

/// Something of kinds, by their numbers in this process.
pub(crate) struct ByKind<T> {
    rows: Box<[OnceLock<Box<Row<T>>>]>,
}

type Row<T> = [OnceLock<T>; ROW_LEN];

impl<T> Default for ByKind<T> {
    fn default() -> Self {
        Self { rows: (0..KINDS_OFFERED_MAX.div_ceil(ROW_LEN)).map(|_| OnceLock::new()).collect() }
    }
}

impl<T> ByKind<T> {
    #[inline]
    pub(crate) fn find(&self, kind: Kind) -> Option<&T> {
        self.rows.get(kind.index() / ROW_LEN)?.get()?[kind.index() % ROW_LEN].get()
    }

    /// What the kind has from now on: `entry`, unless it has something already. `None` beyond the table's end.
    pub(crate) fn insert(&self, kind: Kind, entry: T) -> Option<&T> {
        let row = self.rows.get(kind.index() / ROW_LEN)?;
        let row = row.get_or_init(|| Box::new(array::from_fn(|_| OnceLock::new())));
        Some(row[kind.index() % ROW_LEN].get_or_init(|| entry))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.rows.iter().filter_map(OnceLock::get).flat_map(|row| row.iter().filter_map(OnceLock::get))
    }
}

const ROW_LEN: usize = 128;
