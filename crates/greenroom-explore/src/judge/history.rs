//! What clients asked for, and were told.

use std::collections::BTreeMap;
use std::fmt;

use greenroom::rehearsal::{Answer, Event, Happened, Party};

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

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, text, .. } = self;
        match client {
            0 => write!(f, "in the end: {text}")?,
            _ => write!(f, "client {client}: {text}")?,
        }
        match &self.answer {
            None => Ok(()),
            Some(answer) => write!(f, " = {}", told(answer)),
        }
    }
}

/// An answer, for people.
pub(crate) fn told(answer: &Answer) -> String {
    match answer {
        Answer::Value(value) => value.clone(),
        Answer::Error(error) => format!("error {error}"),
        Answer::Refused(why) => format!("refused: {why}"),
        Answer::Unknown(why) => format!("unknown: {why}"),
        Answer::Cycle(path) => format!("a cycle: {}", path.join(", ")),
    }
}

/// The calls of all clients, in the order in which they were made.
pub(crate) fn calls(events: &[Event]) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut places = BTreeMap::new();
    let mut nth = BTreeMap::<u32, usize>::new();
    for (at, event) in events.iter().enumerate() {
        match &event.what {
            Happened::Sent { message, from: Party::Client(client), to, method, arguments, awaited } => {
                let nth = nth.entry(*client).or_default();
                *nth += 1;
                places.insert(*message, calls.len());
                calls.push(Call {
                    client: *client,
                    nth: *nth,
                    text: format!("{to}.{method}{}", shown(arguments)),
                    answer: None,
                    asked: at,
                    heard: usize::MAX,
                    came: usize::MAX,
                    awaited: *awaited,
                });
            }
            Happened::Came { message } => {
                if let Some(place) = places.get(message) {
                    let call: &mut Call = &mut calls[*place];
                    call.came = call.came.min(at);
                }
            }
            Happened::Answered { message, answer } => {
                if let Some(place) = places.get(message) {
                    calls[*place].answer = Some(answer.clone());
                }
            }
            Happened::Heard { message } => {
                if let Some(place) = places.get(message) {
                    calls[*place].heard = at;
                }
            }
            _ => {}
        }
    }
    calls
}

/// Arguments, as they stand in brackets: `{"amount":10}` is `(10)`.
pub(crate) fn shown(arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(serde_json::Value::Object(fields)) => {
            let values: Vec<String> = fields.values().map(ToString::to_string).collect();
            format!("({})", values.join(", "))
        }
        Ok(serde_json::Value::Null) => "()".to_owned(),
        _ => format!("({arguments})"),
    }
}
