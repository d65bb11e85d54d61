//! What a violation depends on: each deviation is taken back alone, and where the test then passes, something came in another order.

use std::fmt;

use crate::deviations::Deviations;
use crate::reach::is_fault;
use crate::run::{Plan, Subject, Tell, Told};

/// Two steps of one actor or client that came the wrong way round, or something that went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Swapped {
    /// Came first.
    pub(crate) first: String,
    /// Came behind it; `None` if it matters that the first came at all.
    pub(crate) then: Option<String>,
}

impl fmt::Display for Swapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.then {
            Some(then) => write!(f, "{} came before {then}", self.first),
            None => write!(f, "{} came", self.first),
        }
    }
}

/// The pairs that have to come in this order for the violation; none if no deviation matters by itself.
pub(crate) fn matters(subject: &Subject, violated: &str, told: &[Told]) -> Vec<Swapped> {
    let all = Deviations::of(told);
    let mut found = Vec::new();
    for at in 0..all.0.len().min(DEVIATIONS_MAX) {
        let mut fewer = all.clone();
        let gone = fewer.0.remove(at);
        let ran = subject.run(Plan::Deviations(fewer), Tell::All);
        if ran.violated.as_deref() == Some(violated) {
            continue;
        }
        let pair = match is_fault(&gone.name) || gone.name == "time" {
            true => Some(Swapped { first: gone.name, then: None }),
            false => swapped(told, &ran.told),
        };
        if let Some(pair) = pair.filter(|pair| !found.contains(pair)) {
            found.push(pair);
        }
    }
    found
}

/// The first pair of one actor or client that came one way round in `bad`, and the other way in `good`.
fn swapped(bad: &[Told], good: &[Told]) -> Option<Swapped> {
    let place = |name: &str| good.iter().position(|step| step.name == name);
    let pairs = bad.iter().enumerate().flat_map(|(at, then)| bad[..at].iter().map(move |first| (first, then)));
    let of_one = pairs
        .filter(|(first, then)| who(&first.name) == who(&then.name) && is_begun(&first.name) && is_begun(&then.name));
    of_one
        .into_iter()
        .find(|(first, then)| matches!((place(&first.name), place(&then.name)), (Some(first), Some(then)) if first > then))
        .map(|(first, then)| Swapped { first: first.name.clone(), then: Some(then.name.clone()) })
}

/// Whose step it is: the actor whose turn begins.
fn who(name: &str) -> &str {
    let step = name.split('<').next().unwrap_or_default();
    step.rsplit_once('.').map_or(step, |(actor, _)| actor)
}

/// Whether it begins a turn, or a client hears an answer.
fn is_begun(name: &str) -> bool {
    name.contains('<')
}

/// Deviations that are taken back, at most.
const DEVIATIONS_MAX: usize = 16;
