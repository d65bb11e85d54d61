//! Registers whose answers say which activation gave them, and how many values it had taken before.
//!
//! Every swap writes a value of its own and gives the one that it replaced. With the stamps each answer has one possible
//! place in the order of all, so that long histories are checked fast, and what is wrong is a pair of operations.
//! [`linearize`](super::linearize) comes to the same verdicts on short ones.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What a register was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// To take this value, which no other swap of the register writes and which is not 0, and to give the one before.
    Swap(u64),
    /// What its value is.
    Read,
}

/// What a caller was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// It ran, and this is its answer.
    Answer(Stamped),
    /// It did not run and never will.
    Not,
    /// It may have run, or may yet.
    Doubt,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stamped {
    /// The activation that gave it.
    pub epoch: u64,
    /// Values taken so far, this swap's included.
    pub count: u64,
    /// The value that was replaced or read; 0 before the first swap.
    pub value: u64,
}

/// One operation on one register, as its caller saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Who asked.
    pub caller: String,
    /// When it began.
    pub begun: Duration,
    /// When its caller was told.
    pub ended: Duration,
    /// What was asked.
    pub asked: Asked,
    /// What was told.
    pub told: Told,
}

/// Whether a register outlives its activations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeps {
    /// It begins anew, at 0, with each activation.
    Nothing,
    /// Everything that it has answered, whatever happens.
    Everything,
}

/// The end of one activation and the first answer of a later one: where a register that keeps nothing has lost its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Succession {
    /// The last answer of the earlier activation, by its place.
    pub last: usize,
    /// The first answer of the later one.
    pub first: usize,
}

/// What is wrong with a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offence {
    /// In words.
    pub what: String,
    /// The operations that show it, by their places.
    pub operations: Vec<usize>,
}

/// Checks that a history of one register is linearizable: nothing answered is lost while its activation lives (or ever, if it
/// keeps everything), nothing runs twice, no two turns interleave, nothing refused has run, and no older activation answers
/// after a newer one.
///
/// Gives the successions of activations, for the caller to judge.
///
/// # Errors
/// The first [`Offence`] that was found.
pub fn check(history: &[Operation], keeps: Keeps) -> Result<Vec<Succession>, Offence> {
    let mut answers: Vec<Answered<'_>> = Vec::new();
    for (place, operation) in history.iter().enumerate() {
        if let Told::Answer(stamped) = &operation.told {
            let count = stamped.count;
            let line = if keeps == Keeps::Everything { 0 } else { stamped.epoch };
            let swap = match operation.asked {
                Asked::Swap(value) => Some(value),
                Asked::Read => None,
            };
            answers.push(Answered { place, operation, stamped, at: (line, count), swap });
        }
    }
    answers.sort_by_key(|answer| (answer.at, answer.swap.is_none(), answer.operation.begun));
    one_value_a_place(&answers)?;
    real_time(&answers)?;
    Chain::new(history, &answers).check()?;
    Ok(successions(answers))
}

/// An answered operation and its place in the order of all: the activation (0 if they do not matter) and the count.
struct Answered<'a> {
    place: usize,
    operation: &'a Operation,
    stamped: &'a Stamped,
    at: At,
    swap: Option<u64>,
}

type At = (u64, u64);

impl Answered<'_> {
    /// The count and value that it saw, before its own swap.
    fn saw(&self) -> (At, u64) {
        let count = self.at.1 - u64::from(self.swap.is_some());
        ((self.at.0, count), self.stamped.value)
    }
}

fn offence(what: String, operations: &[usize]) -> Offence {
    Offence { what, operations: operations.to_vec() }
}

/// No two swaps are the same so-manieth.
fn one_value_a_place(answers: &[Answered<'_>]) -> Result<(), Offence> {
    let swaps: Vec<_> = answers.iter().filter(|answer| answer.swap.is_some()).collect();
    for pair in swaps.windows(2) {
        if pair[0].at == pair[1].at {
            let what = format!("two swaps were both told that they are number {} of their activation", pair[0].at.1);
            return Err(offence(what, &[pair[0].place, pair[1].place]));
        }
    }
    match swaps.iter().find(|swap| swap.at.1 == 0) {
        Some(swap) => Err(offence("a swap was told that it is number 0".to_owned(), &[swap.place])),
        None => Ok(()),
    }
}

/// What began after another had ended comes after it.
fn real_time(answers: &[Answered<'_>]) -> Result<(), Offence> {
    let mut begins: Vec<&Answered<'_>> = answers.iter().collect();
    begins.sort_by_key(|answer| answer.operation.begun);
    let mut ends = begins.clone();
    ends.sort_by_key(|answer| answer.operation.ended);
    let mut ends = ends.into_iter().peekable();
    // Of those that have ended: who came last in the order of all, and whose activation is newest.
    let (mut last, mut newest): (Option<&Answered<'_>>, Option<&Answered<'_>>) = (None, None);
    for answer in begins {
        while let Some(ended) = ends.next_if(|ended| ended.operation.ended < answer.operation.begun) {
            if last.is_none_or(|last| last.at < ended.at) {
                last = Some(ended);
            }
            if newest.is_none_or(|newest| newest.stamped.epoch < ended.stamped.epoch) {
                newest = Some(ended);
            }
        }
        if let Some(newest) = newest.filter(|newest| newest.stamped.epoch > answer.stamped.epoch) {
            let (epoch, other) = (answer.stamped.epoch, newest.stamped.epoch);
            let what = format!("activation {epoch} answered what was asked after activation {other} had answered");
            return Err(offence(what, &[newest.place, answer.place]));
        }
        let Some(last) = last else { continue };
        if answer.at < last.at {
            let what = format!("{} is lost: {} was answered before it was asked", told(last), told(answer));
            return Err(offence(what, &[last.place, answer.place]));
        }
        if answer.at == last.at && answer.swap.is_some() {
            let what = format!("{} was seen before it was asked for", told(answer));
            return Err(offence(what, &[last.place, answer.place]));
        }
    }
    Ok(())
}

fn told(answer: &Answered<'_>) -> String {
    let Stamped { epoch, count, .. } = answer.stamped;
    match answer.swap {
        Some(value) => format!("value {value} (activation {epoch}, number {count})"),
        None => format!("the sight of number {count} of activation {epoch}"),
    }
}

/// What was written at each place of the order, as far as it is known.
struct Chain<'a> {
    history: &'a [Operation],
    answers: &'a [Answered<'a>],
    /// Who writes a value.
    writers: BTreeMap<u64, usize>,
    /// The answered swap at a place.
    written: BTreeMap<At, usize>,
    /// The unanswered swap that was seen at a place, and by whom.
    found: BTreeMap<At, (usize, usize)>,
}

impl<'a> Chain<'a> {
    fn new(history: &'a [Operation], answers: &'a [Answered<'a>]) -> Self {
        let mut writers = BTreeMap::new();
        for (place, operation) in history.iter().enumerate() {
            if let Asked::Swap(value) = operation.asked {
                writers.insert(value, place);
            }
        }
        let swaps = answers.iter().filter(|answer| answer.swap.is_some());
        let written = swaps.map(|answer| (answer.at, answer.place)).collect();
        Self { history, answers, writers, written, found: BTreeMap::new() }
    }

    fn check(mut self) -> Result<(), Offence> {
        for answer in self.answers {
            self.seen(answer)?;
        }
        self.in_doubt_but_seen()?;
        self.gaps()
    }

    /// `answer` shows what the value was at its place.
    fn seen(&mut self, answer: &Answered<'_>) -> Result<(), Offence> {
        let (at, value) = answer.saw();
        if at.1 == 0 {
            return match value {
                0 => Ok(()),
                _ => Err(offence(format!("a fresh register was not 0 but {value}"), &[answer.place])),
            };
        }
        let Some(writer) = self.writers.get(&value).copied() else {
            return Err(offence(format!("value {value} was seen, which nobody wrote"), &[answer.place]));
        };
        if let Some(written) = self.written.get(&at).copied() {
            if written == writer {
                return Ok(());
            }
            let what = format!("number {} is another value than {value}, which was seen there", at.1);
            return Err(offence(what, &[written, writer, answer.place]));
        }
        match &self.history[writer].told {
            Told::Not => {
                Err(offence(format!("value {value} was refused and has been written"), &[writer, answer.place]))
            }
            Told::Answer(stamped) => {
                let what = format!("value {value} is number {}, and was seen as number {}", stamped.count, at.1);
                Err(offence(what, &[writer, answer.place]))
            }
            Told::Doubt => match self.found.insert(at, (writer, answer.place)) {
                Some((other, by)) if other != writer => {
                    let what = format!("number {} was seen as two values", at.1);
                    Err(offence(what, &[other, by, writer, answer.place]))
                }
                _ => Ok(()),
            },
        }
    }

    /// A swap that was not answered ran once at most, and not before it was asked for.
    fn in_doubt_but_seen(&self) -> Result<(), Offence> {
        let mut places: BTreeMap<usize, (At, usize)> = BTreeMap::new();
        let ends = self.earliest_ends();
        for (at, (writer, by)) in &self.found {
            if let Some((other, before)) = places.insert(*writer, (*at, *by)) {
                let what = format!("a swap ran twice: as number {} and as number {}", other.1, at.1);
                return Err(offence(what, &[*writer, before, *by]));
            }
            if let Some((_, (ended, early))) =
                ends.range(*at..).next().filter(|(_, (ended, _))| *ended < self.history[*writer].begun)
            {
                let what = format!("number {} was seen at {ended:?}, before it was asked for", at.1);
                return Err(offence(what, &[*writer, *by, *early]));
            }
        }
        Ok(())
    }

    /// The earliest end of all answers at a place or after it, for each place, and whose it is.
    fn earliest_ends(&self) -> BTreeMap<At, (Duration, usize)> {
        let mut ends = BTreeMap::new();
        let mut earliest: Option<(Duration, usize)> = None;
        for answer in self.answers.iter().rev() {
            let end = (answer.operation.ended, answer.place);
            let least = earliest.map_or(end, |earliest| earliest.min(end));
            earliest = Some(least);
            ends.insert(answer.at, least);
        }
        ends
    }

    /// Numbers that nobody was told and whose values nobody saw are swaps in doubt, each its own.
    fn gaps(&self) -> Result<(), Offence> {
        let ends = self.earliest_ends();
        let taken: Vec<usize> = self.found.values().map(|(writer, _)| *writer).collect();
        let doubtful = |place: &usize| {
            self.history[*place].told == Told::Doubt && matches!(self.history[*place].asked, Asked::Swap(_))
        };
        let mut doubts: Vec<usize> =
            (0..self.history.len()).filter(doubtful).filter(|place| !taken.contains(place)).collect();
        doubts.sort_by_key(|place| std::cmp::Reverse(self.history[*place].begun));
        let answers_max = self.answers.len() + 1;
        let mut before: At = (0, 0);
        let mut missing = Vec::new();
        for answer in self.answers {
            let (line, count) = answer.at;
            let from = if before.0 == line { before.1 + 1 } else { 1 };
            before = answer.at;
            let last = count - u64::from(answer.swap.is_some() && count > 0);
            // More than there can be are not worth counting.
            for number in (from..=last).take(doubts.len() + answers_max) {
                let at = (line, number);
                if !self.written.contains_key(&at) && !self.found.contains_key(&at) {
                    missing.push((ends.range(at..).next().map(|(_, end)| *end), answer.place, number));
                }
            }
        }
        // Whoever was needed first takes who was asked first.
        missing.sort();
        for (end, witness, number) in missing {
            let fits = doubts.last().is_some_and(|place| end.is_none_or(|(end, _)| self.history[*place].begun <= end));
            if !fits {
                return Err(offence(format!("number {number} is none of the swaps that were asked for"), &[witness]));
            }
            doubts.pop();
        }
        Ok(())
    }
}

/// Where one activation follows another, in the order of answers.
fn successions(mut answers: Vec<Answered<'_>>) -> Vec<Succession> {
    answers.sort_by_key(|answer| (answer.stamped.epoch, answer.operation.ended));
    let pairs = answers.windows(2).filter(|pair| pair[0].stamped.epoch != pair[1].stamped.epoch);
    pairs.map(|pair| Succession { last: pair[0].place, first: pair[1].place }).collect()
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begun, ended) = (self.begun.as_secs_f64(), self.ended.as_secs_f64());
        write!(f, "{begun:10.4} .. {ended:10.4} {:<12}", self.caller)?;
        match self.asked {
            Asked::Swap(value) => write!(f, "swap {value:<8}")?,
            Asked::Read => write!(f, "read         ")?,
        }
        match &self.told {
            Told::Answer(Stamped { epoch, count, value }) => {
                write!(f, "-> {value} (activation {epoch}, number {count})")
            }
            Told::Not => f.write_str("-> did not run"),
            Told::Doubt => f.write_str("-> may have run"),
        }
    }
}

#[cfg(test)]
mod tests;
