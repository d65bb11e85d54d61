//! Messages from their sending to the hearing of their answers, as one thing each.

use std::collections::BTreeMap;
use std::fmt;

use greenroom::ActorId;
use greenroom::rehearsal::{Answer, Event, Happened, Party};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A message, and what became of it. Steps are named by their numbers, moments by places in the order of all that happened.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) from: Party,
    pub(crate) to: ActorId,
    /// The method, with its arguments.
    pub(crate) call: String,
    pub(crate) awaited: bool,
    pub(crate) sent: Moment,
    /// When its turn began.
    pub(crate) came: Option<Moment>,
    pub(crate) answered: Option<(Moment, Answer)>,
    pub(crate) heard: Option<Moment>,
}

/// When something happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    /// The number of the step.
    pub(crate) step: u64,
    pub(crate) at: usize,
}

/// All messages, in the order in which they were sent.
pub(crate) fn letters(events: &[Event]) -> Vec<Letter> {
    let mut letters: Vec<Letter> = Vec::new();
    let mut places = BTreeMap::new();
    for (at, event) in events.iter().enumerate() {
        let moment = Moment { step: event.step, at };
        let place = |message: &u64| places.get(message).copied();
        match &event.what {
            Happened::Sent { message, from, to, method, arguments, awaited } => {
                places.insert(*message, letters.len());
                letters.push(Letter {
                    from: from.clone(),
                    to: to.clone(),
                    call: format!("{method}{}", shown(arguments)),
                    awaited: *awaited,
                    sent: moment,
                    came: None,
                    answered: None,
                    heard: None,
                });
            }
            Happened::Came { message } => {
                if let Some(place) = place(message) {
                    letters[place].came.get_or_insert(moment);
                }
            }
            Happened::Answered { message, answer } => {
                if let Some(place) = place(message) {
                    letters[place].answered = Some((moment, answer.clone()));
                }
            }
            Happened::Heard { message } => {
                if let Some(place) = place(message) {
                    letters[place].heard = Some(moment);
                }
            }
            _ => {}
        }
    }
    letters
}

/// Arguments, as they stand in brackets: `{"amount":10}` is `(10)`.
pub(crate) fn shown(arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(Values(values)) => format!("({})", values.join(", ")),
        Err(_) if arguments == "null" => "()".to_owned(),
        Err(_) => format!("({arguments})"),
    }
}

/// The values of an object, in the order in which they stand there.
struct Values(Vec<String>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some((_, value)) = fields.next_entry::<IgnoredAny, serde_json::Value>()? {
                    values.push(value.to_string());
                }
                Ok(Values(values))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// An answer, for people.
pub(crate) fn told(answer: &Answer) -> String {
    match answer {
        Answer::Value(value) if value == "null" => "nothing".to_owned(),
        Answer::Value(value) => value.clone(),
        Answer::Error(error) => format!("error {error}"),
        Answer::Refused(why) => format!("refused: {why}"),
        Answer::Unknown(why) => format!("unknown: {why}"),
        Answer::Cycle(path) => format!("a cycle: {}", path.join(", ")),
    }
}
