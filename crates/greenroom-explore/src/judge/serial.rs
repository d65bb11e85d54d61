//! What clients could be told if their calls came one at a time (Burckhardt, Dern, Musuvathi, Tan: Line-Up, PLDI 2010).
//!
//! All orders that keep each client's own are run, depth first: a call is made, answered, and what comes of it has come to its end
//! before the next one is made. A schedule in which clients were told what no such run tells them is a violation.

use std::collections::{BTreeMap, BTreeSet};

use greenroom::rehearsal::{Answer, Kind, Step};

use super::history::Call;

/// The runs there are.
#[derive(Default)]
pub(crate) struct Serial {
    /// By what was called and answered, client by client: the orders in which it was so.
    outcomes: BTreeMap<Outcome, BTreeSet<Order>>,
    pub(crate) runs: usize,
}

/// Who called, which of its calls it was, what it was, and what it was told.
type Outcome = Vec<(u32, usize, String, Option<Answer>)>;

/// Who called, and which of its calls it was.
type Order = Vec<(u32, usize)>;

impl Serial {
    /// Takes in a run.
    pub(crate) fn insert(&mut self, calls: &[Call]) {
        self.runs += 1;
        let mut order: Vec<&Call> = calls.iter().filter(|call| call.client > 0).collect();
        order.sort_by_key(|call| call.came);
        let order = order.into_iter().map(|call| (call.client, call.nth)).collect();
        self.outcomes.entry(outcome(calls)).or_default().insert(order);
    }

    /// Whether some run tells clients what they were told here, and its order is one that they cannot contradict.
    pub(crate) fn explains(&self, calls: &[Call]) -> bool {
        let wanted = outcome(calls);
        if !calls.iter().any(Call::is_doubtful) {
            return self.outcomes.get(&wanted).is_some_and(|orders| orders.iter().any(|order| fits(order, calls)));
        }
        let doubtful: BTreeSet<(u32, usize)> =
            calls.iter().filter(|call| call.is_doubtful()).map(|call| (call.client, call.nth)).collect();
        let is_same = |found: &Outcome| {
            found.len() == wanted.len()
                && found.iter().zip(&wanted).all(|(one, other)| {
                    let same_call = (one.0, one.1, &one.2) == (other.0, other.1, &other.2);
                    same_call && (one.3 == other.3 || doubtful.contains(&(one.0, one.1)))
                })
        };
        let known = self.outcomes.iter().filter(|(found, _)| is_same(found));
        known.flat_map(|(_, orders)| orders).any(|order| fits(order, calls))
    }
}

fn outcome(calls: &[Call]) -> Outcome {
    let mut outcome: Outcome =
        calls.iter().map(|call| (call.client, call.nth, call.text.clone(), call.answer.clone())).collect();
    outcome.sort();
    outcome
}

/// Whether no call that had been answered before another was made comes after that in `order`.
fn fits(order: &Order, calls: &[Call]) -> bool {
    let place: BTreeMap<_, _> = order.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let of_clients: Vec<(usize, &Call)> =
        calls.iter().filter_map(|call| Some((*place.get(&(call.client, call.nth))?, call))).collect();
    let late =
        |(at, call): &(usize, &Call)| of_clients.iter().any(|(before, other)| other.heard < call.asked && before > at);
    !of_clients.iter().any(late)
}

/// Goes through the serial runs.
pub(crate) struct Path {
    /// What the test is to choose first, if that is fixed.
    program: Option<usize>,
    has_begun: bool,
    /// What was chosen at each place of this run, and among how many.
    path: Vec<(usize, usize)>,
    at: usize,
}

impl Path {
    /// The runs in which the test chooses `program` first.
    pub(crate) fn of(program: Option<usize>) -> Self {
        Self { program, has_begun: false, path: Vec::new(), at: 0 }
    }

    /// Goes on to the next run; `false` if there is none.
    pub(crate) fn next(&mut self) -> bool {
        (self.at, self.has_begun) = (0, false);
        while let Some((chosen, len)) = self.path.pop() {
            if chosen + 1 < len {
                self.path.push((chosen + 1, len));
                return true;
            }
        }
        false
    }

    /// What comes next: what has been begun goes on, and then a client may make its next call.
    pub(crate) fn pick(&mut self, enabled: &[Step], default: usize) -> usize {
        if let (false, Some(program)) = (std::mem::replace(&mut self.has_begun, true), self.program) {
            return program.min(enabled.len() - 1);
        }
        let goes_on = |step: &Step| !is_choice(step);
        if goes_on(&enabled[default]) {
            return default;
        }
        if let Some(at) = enabled.iter().position(goes_on) {
            return at;
        }
        let at = self.at;
        self.at += 1;
        if enabled.len() == 1 {
            self.at -= 1;
            return 0;
        }
        if let Some((chosen, _)) = self.path.get(at) {
            return *chosen;
        }
        self.path.push((0, enabled.len()));
        0
    }
}

/// Whether a run may go on with it, or with another such step: a call of a client, and what the test itself chooses.
fn is_choice(step: &Step) -> bool {
    match step.kind {
        Kind::Start => (1..=CLIENTS_MAX).contains(&step.by),
        Kind::Choice | Kind::Time => true,
        _ => false,
    }
}

/// Clients are told from actors by their hashes: no actor has one of so little.
const CLIENTS_MAX: u64 = 1 << 20;
/// Serial runs, at most.
pub(crate) const RUNS_MAX: usize = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn call(client: u32, text: &str, answer: &str, [asked, came, heard]: [usize; 3]) -> Call {
        let (text, answer) = (text.to_owned(), Some(Answer::Value(answer.to_owned())));
        Call { client, nth: 1, text, answer, asked, heard, came, awaited: true }
    }

    #[test]
    fn an_order_that_real_time_excludes_explains_nothing() {
        let mut serial = Serial::default();
        serial.insert(&[call(1, "write", "null", [0, 1, 2]), call(2, "read", "7", [3, 4, 5])]);
        serial.insert(&[call(2, "read", "0", [0, 1, 2]), call(1, "write", "null", [3, 4, 5])]);
        let reads = |answer: &str, asked: usize| {
            serial.explains(&[call(1, "write", "null", [0, 1, 2]), call(2, "read", answer, [asked, 4, 5])])
        };
        assert!(reads("7", 3) && reads("7", 1) && !reads("8", 1));
        assert!(reads("0", 1), "both were under way");
        assert!(!reads("0", 3), "the write was acknowledged before the read was asked");
    }

    #[test]
    fn a_call_of_which_nobody_knows_is_explained_by_any_answer() {
        let mut serial = Serial::default();
        serial.insert(&[call(1, "write", "null", [0, 1, 2]), call(2, "read", "7", [3, 4, 5])]);
        let unknown =
            Call { answer: Some(Answer::Unknown("the node is gone".to_owned())), ..call(1, "write", "", [0, 1, 2]) };
        let reads = |answer: &str| serial.explains(&[unknown.clone(), call(2, "read", answer, [3, 4, 5])]);
        assert!(reads("7"), "it was written");
        assert!(!reads("8"), "nobody has written that");
    }
}
