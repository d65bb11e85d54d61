//! The actors that were brought to a node, for people.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use greenroom_protocols::node::NodeId;

use super::word::Letter;
use crate::shard::parts::Arrival;

/// The last of them, by their hashes, the last one last.
#[derive(Default)]
pub(super) struct Arrivals(Mutex<VecDeque<(u64, Arrival)>>);

impl Arrivals {
    pub(super) fn note(&self, actor: u64, arrival: Arrival) {
        let mut all = self.all();
        if all.len() >= ARRIVALS_MAX {
            all.pop_front();
        }
        all.push_back((actor, arrival));
    }

    pub(super) fn last(&self, actor: u64) -> Option<Arrival> {
        self.all().iter().rev().find(|(known, _)| *known == actor).map(|(_, arrival)| arrival.clone())
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<(u64, Arrival)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the node that an actor comes from has sent it to `me`, by the letter that came before it.
pub(super) fn why(letter: Option<&Letter>, me: NodeId) -> String {
    let Some(letter) = letter else {
        return "somebody asked for it, or its node drained".to_owned();
    };
    let (went, stayed) = letter.parts_of(me);
    match letter.set {
        Some(set) => format!("it came with all {set} that talk mostly among themselves: together they do better here"),
        None if went > stayed => {
            format!("{:.0} % of its last messages went here, {:.0} % stayed there", went * 100.0, stayed * 100.0)
        }
        None => "its node had more to do".to_owned(),
    }
}

/// Arrivals that a node remembers.
const ARRIVALS_MAX: usize = 1024;
