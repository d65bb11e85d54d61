//! Linearizability of short histories of any object, by search (Wing & Gong 1993, with Lowe's memory of what was tried).

use std::collections::BTreeSet;
use std::time::Duration;

/// An object as it is when nobody else uses it.
pub trait Object: Clone + Ord {
    /// What it is asked.
    type Operation;
    /// What it answers.
    type Answer;

    /// The object after `operation`; `None` if it could not have given `answer`. Without an answer any would do.
    fn after(&self, operation: &Self::Operation, answer: Option<&Self::Answer>) -> Option<Self>;
}

/// One call, as its caller saw it.
#[derive(Clone, Debug)]
pub struct Call<O: Object> {
    /// When it began.
    pub begun: Duration,
    /// What was asked.
    pub operation: O::Operation,
    /// When it was answered, and what; `None` if nobody knows whether it ran, or will.
    pub ended: Option<(Duration, O::Answer)>,
}

/// A history that no order of its calls explains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unexplained {
    /// The place of the call with whose answer it can no longer be explained: what ended before it still could.
    pub call: usize,
}

/// Checks that some order of `calls`, begun on `object`, explains all answers and keeps to real time.
///
/// The time that it takes is exponential in the number of calls that overlap, the unanswered ones above all.
///
/// # Errors
/// [`Unexplained`].
pub fn linearize<O: Object>(object: &O, calls: &[Call<O>]) -> Result<(), Unexplained> {
    let mut ends: Vec<(Duration, usize)> = Vec::new();
    for (place, call) in calls.iter().enumerate() {
        ends.extend(call.ended.as_ref().map(|(at, _)| (*at, place)));
    }
    ends.sort_unstable();
    let explains = |ends: &[(Duration, usize)]| match ends.last() {
        None => true,
        Some((until, _)) => Search { calls, until: *until, tried: BTreeSet::new() }.explain(object, ends.len()),
    };
    if explains(&ends) {
        return Ok(());
    }
    // What a shorter history cannot explain a longer one cannot either.
    let good = (0..ends.len()).collect::<Vec<_>>().partition_point(|count| explains(&ends[..*count + 1]));
    Err(Unexplained { call: ends[good].1 })
}

struct Search<'a, O: Object> {
    calls: &'a [Call<O>],
    /// What ended later is taken as unanswered, what began later as never asked.
    until: Duration,
    /// Which calls were put in order before, with what object as the result, in vain.
    tried: BTreeSet<(Vec<bool>, O)>,
}

impl<O: Object> Search<'_, O> {
    fn explain(&mut self, object: &O, answered: usize) -> bool {
        let done = vec![false; self.calls.len()];
        self.goes_on(done, object.clone(), answered)
    }

    /// Whether the calls that are not `done` can follow, of which so many were answered.
    fn goes_on(&mut self, done: Vec<bool>, object: O, answered: usize) -> bool {
        if answered == 0 {
            return true;
        }
        if !self.tried.insert((done.clone(), object.clone())) {
            return false;
        }
        let waiting = || (0..done.len()).filter(|place| !done[*place] && self.calls[*place].begun <= self.until);
        let first_end = waiting().filter_map(|place| self.answer(place)).map(|(at, _)| *at).min();
        let candidates: Vec<usize> =
            waiting().filter(|place| first_end.is_none_or(|end| self.calls[*place].begun <= end)).collect();
        candidates.into_iter().any(|place| {
            let answer = self.answer(place).map(|(_, answer)| answer);
            let Some(next) = object.after(&self.calls[place].operation, answer) else { return false };
            let left = answered - usize::from(answer.is_some());
            let mut done = done.clone();
            done[place] = true;
            self.goes_on(done, next, left)
        })
    }

    fn answer(&self, place: usize) -> Option<&(Duration, O::Answer)> {
        self.calls[place].ended.as_ref().filter(|(at, _)| *at <= self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cell that is written (`Some`) and read.
    impl Object for u64 {
        type Operation = Option<u64>;
        type Answer = u64;

        fn after(&self, written: &Option<u64>, answer: Option<&u64>) -> Option<u64> {
            match written {
                Some(value) => Some(*value),
                None => answer.is_none_or(|answer| answer == self).then_some(*self),
            }
        }
    }

    fn call(begun: u64, operation: Option<u64>, ended: Option<(u64, u64)>) -> Call<u64> {
        let at = Duration::from_millis;
        Call { begun: at(begun), operation, ended: ended.map(|(ended, answer)| (at(ended), answer)) }
    }

    #[test]
    fn overlapping_calls_may_take_effect_in_either_order() {
        let calls = [call(0, Some(1), Some((10, 0))), call(5, None, Some((7, 0))), call(5, None, Some((8, 1)))];
        assert_eq!(linearize(&0, &calls), Ok(()));
    }

    #[test]
    fn a_read_of_what_was_overwritten_before_it_began_is_found() {
        let calls = [call(0, Some(1), Some((1, 0))), call(2, Some(2), Some((3, 0))), call(4, None, Some((5, 1)))];
        assert_eq!(linearize(&0, &calls), Err(Unexplained { call: 2 }));
    }

    #[test]
    fn an_unanswered_call_may_take_effect_late_or_never_but_not_come_and_go() {
        let write = call(0, Some(1), None);
        let reads = |seen: [u64; 3]| {
            let reads = seen.iter().zip([10, 20, 30]).map(|(seen, at)| call(at, None, Some((at + 1, *seen))));
            [write.clone()].into_iter().chain(reads).collect::<Vec<_>>()
        };
        assert_eq!(linearize(&0, &reads([0, 0, 0])), Ok(()));
        assert_eq!(linearize(&0, &reads([0, 0, 1])), Ok(()));
        assert_eq!(linearize(&0, &reads([0, 1, 0])), Err(Unexplained { call: 3 }));
    }
}
