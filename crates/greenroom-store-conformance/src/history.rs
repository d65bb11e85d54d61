//! Whether what callers saw of one key can have happened one after the other (Herlihy & Wing, TOPLAS '90).
//!
//! Every write has a value of its own, so the key's state is the value that it holds. The search (Wing & Gong '93, with
//! Lowe's memory of states seen) tries to put all operations into an order that respects who had answered before who
//! began, and in which each answer is the one that a single copy of the key would have given.

use std::collections::HashSet;
use std::time::Instant;

/// One operation on the key, as its caller saw it.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What was asked, and the answer.
    pub what: What,
    /// Taken before the operation began.
    pub call: Instant,
    /// Taken after its answer; `None` if its outcome is unknown: it may have an effect at any time, or none.
    pub answer: Option<Instant>,
}

/// What was asked. Values are numbers, each written at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A read that found this value, or nothing.
    Read(Option<u64>),
    /// A write of `to` (a deletion, if that is nothing) on the condition that `from` is there.
    Write {
        /// What had to be there.
        from: Option<u64>,
        /// What is there afterwards.
        to: Option<u64>,
        /// False if it was refused because something else was there.
        applied: bool,
    },
}

impl What {
    /// The key's state after it, if it can happen in `state`.
    fn after(self, state: Option<u64>) -> Option<Option<u64>> {
        match self {
            Self::Read(found) => (found == state).then_some(state),
            Self::Write { from, to, applied: true } => (from == state).then_some(to),
            Self::Write { from, applied: false, .. } => (from != state).then_some(state),
        }
    }
}

/// Checks that the operations on a key, which held nothing at first, are linearizable.
///
/// # Errors
///
/// The operations that nothing explains, after the longest order that was found.
pub fn check(mut operations: Vec<Operation>) -> Result<(), String> {
    operations.sort_by_key(|operation| operation.call);
    let mut search =
        Search { done: vec![false; operations.len()], operations, seen: HashSet::new(), deepest: (0, String::new()) };
    if search.explains(0, 0, None) {
        return Ok(());
    }
    let (done, stuck) = search.deepest;
    Err(format!("no order explains these answers; after {done} operations of {}: {stuck}", search.operations.len()))
}

struct Search {
    operations: Vec<Operation>,
    done: Vec<bool>,
    seen: HashSet<(Vec<bool>, Option<u64>)>,
    deepest: (usize, String),
}

impl Search {
    /// Whether the operations that are not done can follow in `state`; all before `first` are done.
    fn explains(&mut self, depth: usize, mut first: usize, state: Option<u64>) -> bool {
        while self.done.get(first).is_some_and(|done| *done) {
            first += 1;
        }
        let open = || (first..self.operations.len()).filter(|n| !self.done[*n]);
        // Whoever comes next must have begun before any other had its answer.
        let Some(earliest) = open().filter_map(|n| self.operations[n].answer).min() else { return true };
        if !self.seen.insert((self.done[first..].to_vec(), state)) {
            return false;
        }
        let next: Vec<usize> = open().take_while(|n| self.operations[*n].call <= earliest).collect();
        if depth >= self.deepest.0 {
            let candidates: Vec<_> = next.iter().map(|n| self.operations[*n].what).collect();
            self.deepest = (depth, format!("the key holds {state:?}, and next is one of {candidates:?}"));
        }
        for n in next {
            let Some(after) = self.operations[n].what.after(state) else { continue };
            self.done[n] = true;
            if self.explains(depth + 1, first, after) {
                return true;
            }
            self.done[n] = false;
        }
        false
    }
}

#[cfg(test)]
mod tests;
