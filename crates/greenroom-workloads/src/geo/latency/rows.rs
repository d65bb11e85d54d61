//! The rows of Fig. 8, with the paper's round trips and our goal's.

use super::super::sites::Place;
use super::Column;
use crate::kinds::geo::{Access, Kept};

/// A row: an actor that is kept in one way, and where.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) kept: Kept,
    /// Where its instance comes to be.
    home: Place,
    /// How it is read, and how it is written.
    pub(super) accesses: [Access; 2],
    /// For C first, C repeat, N first and N repeat: round trips of a read and of a write, in the paper and as our goal.
    expected: [[(u8, u8); 2]; 4],
}

impl Row {
    /// The columns in the order in which they are measured: the actor's home comes first.
    pub(super) fn columns(&self) -> [Column; 4] {
        let [home, away] = [self.home, self.home.other()];
        [(home, true), (home, false), (away, true), (away, false)].map(|(from, first)| Column { from, first })
    }

    /// Round trips in the paper, and as our goal.
    pub(super) fn expected(&self, column: Column, access: Access) -> (u8, u8) {
        self.expected[column.place()][usize::from(access.is_write())]
    }
}

/// One (paper, goal) for a read, and one for a write.
const fn cell(paper: (u8, u8), goal: (u8, u8)) -> [(u8, u8); 2] {
    [(paper.0, goal.0), (paper.1, goal.1)]
}

/// The same in both.
const fn same(read: u8, write: u8) -> [(u8, u8); 2] {
    cell((read, write), (read, write))
}

const LINEARIZABLE: [Access; 2] = [Access::Read, Access::Write];
const LOCAL: [Access; 2] = [Access::ReadHere, Access::WriteHere];

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "volatile basic, single at C",
        kept: Kept::Volatile,
        home: Place::California,
        accesses: LINEARIZABLE,
        expected: [same(1, 1), same(0, 0), cell((2, 2), (1, 1)), same(1, 1)],
    },
    Row {
        name: "volatile basic, single at N",
        kept: Kept::Volatile,
        home: Place::Netherlands,
        accesses: LINEARIZABLE,
        expected: [cell((2, 2), (1, 1)), same(1, 1), same(1, 1), same(0, 0)],
    },
    Row {
        name: "volatile basic, home lease at C",
        kept: Kept::VolatileHomeC,
        home: Place::California,
        accesses: LINEARIZABLE,
        expected: [cell((1, 1), (0, 0)), same(0, 0), cell((2, 2), (1, 1)), same(1, 1)],
    },
    Row {
        name: "volatile basic, home lease at N",
        kept: Kept::VolatileHomeN,
        home: Place::Netherlands,
        accesses: LINEARIZABLE,
        expected: [cell((2, 2), (1, 1)), same(1, 1), cell((1, 1), (0, 0)), same(0, 0)],
    },
    Row {
        name: "persistent basic, home lease at C",
        kept: Kept::BasicHomeC,
        home: Place::California,
        accesses: LINEARIZABLE,
        expected: [cell((1, 1), (0, 0)), same(0, 0), cell((2, 2), (1, 1)), same(1, 1)],
    },
    Row {
        name: "persistent basic, single at C",
        kept: Kept::Basic,
        home: Place::California,
        accesses: LINEARIZABLE,
        expected: [same(1, 1), same(0, 0), cell((2, 2), (1, 1)), same(1, 1)],
    },
    Row {
        name: "persistent basic, single at N",
        kept: Kept::Basic,
        home: Place::Netherlands,
        accesses: LINEARIZABLE,
        expected: [cell((2, 3), (1, 2)), same(1, 2), cell((2, 3), (1, 2)), same(0, 1)],
    },
    Row {
        name: "volatile versioned, single at C",
        kept: Kept::VersionedVolatile,
        home: Place::California,
        accesses: LINEARIZABLE,
        expected: [same(1, 1), same(0, 0), cell((2, 2), (1, 1)), same(1, 1)],
    },
    Row {
        name: "volatile versioned, single at N",
        kept: Kept::VersionedVolatile,
        home: Place::Netherlands,
        accesses: LINEARIZABLE,
        expected: [cell((2, 2), (1, 1)), same(1, 1), same(1, 1), same(0, 0)],
    },
    Row {
        name: "volatile versioned, per cluster",
        kept: Kept::VersionedVolatileEach,
        home: Place::California,
        accesses: LINEARIZABLE,
        expected: [same(0, 0), same(0, 0), cell((1, 2), (1, 1)), same(1, 1)],
    },
    Row {
        name: "persistent versioned, single at C",
        kept: Kept::Versioned,
        home: Place::California,
        accesses: LINEARIZABLE,
        expected: [same(1, 1), same(0, 0), cell((2, 2), (1, 1)), same(1, 1)],
    },
    Row {
        name: "persistent versioned, single at N",
        kept: Kept::Versioned,
        home: Place::Netherlands,
        accesses: LINEARIZABLE,
        expected: [cell((3, 3), (2, 2)), same(2, 2), cell((2, 3), (2, 2)), same(1, 1)],
    },
    Row {
        name: "persistent versioned, per cluster",
        kept: Kept::VersionedEach,
        home: Place::California,
        accesses: LINEARIZABLE,
        expected: [same(0, 0), same(0, 0), cell((1, 2), (1, 1)), same(1, 1)],
    },
    Row {
        name: "volatile versioned local, single at C",
        kept: Kept::VersionedVolatile,
        home: Place::California,
        accesses: LOCAL,
        expected: [same(1, 1), same(0, 0), cell((2, 2), (1, 1)), same(1, 1)],
    },
    Row {
        name: "volatile versioned local, per cluster",
        kept: Kept::VersionedVolatileEach,
        home: Place::California,
        accesses: LOCAL,
        expected: [same(0, 0), same(0, 0), same(0, 0), same(0, 0)],
    },
    Row {
        name: "persistent versioned local, single at C",
        kept: Kept::Versioned,
        home: Place::California,
        accesses: LOCAL,
        expected: [same(1, 1), same(0, 0), cell((2, 2), (1, 1)), same(1, 1)],
    },
    Row {
        name: "persistent versioned local, single at N",
        kept: Kept::Versioned,
        home: Place::Netherlands,
        accesses: LOCAL,
        expected: [cell((2, 2), (1, 1)), same(1, 1), same(1, 1), same(0, 0)],
    },
    Row {
        name: "persistent versioned local, per cluster",
        kept: Kept::VersionedEach,
        home: Place::California,
        accesses: LOCAL,
        expected: [same(0, 0), same(0, 0), same(0, 0), same(0, 0)],
    },
];
