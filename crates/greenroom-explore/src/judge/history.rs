//! What clients asked for, and were told.

use std::collections::BTreeMap;

use greenroom::rehearsal::{Answer, Event, Party};

use super::letters::letters;

/// A call of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    /// Who called, from 1; 0 in the end of a test.
    pub(crate) client: u32,
    /// The how many-th of its calls it is.
    pub(crate) nth: usize,
    /// What was called, with which arguments.
    pub(crate) text: String,
    /// `None` if no answer came, or none was asked for.
    pub(crate) answer: Option<Answer>,
    /// Places in the order of all that happened; at the end of time if no answer came.
    pub(crate) asked: usize,
    pub(crate) heard: usize,
    /// When its turn began.
    pub(crate) came: usize,
    pub(crate) awaited: bool,
}

impl Call {
    /// Whether it may have run, or not.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.awaited && matches!(self.answer, None | Some(Answer::Unknown(_)))
    }
}

/// The calls of all clients, in the order in which they were made.
pub(crate) fn calls(events: &[Event]) -> Vec<Call> {
    let mut nth = BTreeMap::<u32, usize>::new();
    let of_clients = letters(events).into_iter().filter_map(|letter| match letter.from {
        Party::Client(client) => Some((client, letter)),
        _ => None,
    });
    let calls = of_clients.map(|(client, letter)| {
        let nth = nth.entry(client).or_default();
        *nth += 1;
        Call {
            client,
            nth: *nth,
            text: format!("{}.{}", letter.to, letter.call),
            answer: letter.answered.map(|(_, answer)| answer),
            asked: letter.sent.at,
            heard: letter.heard.map_or(usize::MAX, |heard| heard.at),
            came: letter.came.map_or(usize::MAX, |came| came.at),
            awaited: letter.awaited,
        }
    });
    calls.collect()
}
