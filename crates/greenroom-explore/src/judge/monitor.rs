//! Monitors: machines of a test that see each message and each turn, and say what must not be, or what must come yet.

use std::collections::BTreeMap;

use greenroom::rehearsal::{Answer, Event as Raw, Happened};
use serde::de::DeserializeOwned;

use super::Message;

/// Sees all that happens in a schedule: `world.monitor::<M>()`. A new one is made for each schedule.
pub trait Monitor {
    /// Takes in what has happened, and judges it.
    fn saw(&mut self, event: &Event<'_>) -> Verdict;
}

/// What a monitor says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing is waited for.
    Cold,
    /// As before.
    Warm,
    /// Something must come yet: a schedule that ends so is a violation, and one that stays so while all get their turns
    /// ([`Explore::patience`](crate::Explore::patience)).
    Hot,
    /// This must not be.
    Violated(String),
}

/// Something that has happened.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    what: What,
    from: String,
    kind: &'a str,
    key: &'a str,
    method: &'a str,
    arguments: &'a str,
    answer: Option<&'a Answer>,
    fault: Option<&'a str>,
}

/// What has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum What {
    /// A message was sent.
    Sent,
    /// Its turn has begun.
    Began,
    /// A call was answered.
    Answered,
    /// The answer has come to who waits for it.
    Heard,
    /// A turn has ended.
    Ended,
    /// Something has gone wrong, as it was chosen to.
    Fault,
}

impl<'a> Event<'a> {
    /// What a monitor sees of it; nothing of messages that nobody sent.
    pub(super) fn of(raw: &'a Raw, messages: &'a BTreeMap<u64, Message>) -> Option<Self> {
        let (what, message, answer) = match &raw.what {
            Happened::Sent { message, .. } => (What::Sent, message, None),
            Happened::Came { message } => (What::Began, message, None),
            Happened::Answered { message, answer } => (What::Answered, message, Some(answer)),
            Happened::Heard { message } => (What::Heard, message, None),
            Happened::Ended { actor, method, .. } => {
                let (kind, key) = (actor.kind.name(), actor.key.as_str());
                let from = String::new();
                return Some(Self { what: What::Ended, from, kind, key, method, ..Self::NOBODY });
            }
            Happened::Fault { what, .. } => return Some(Self { what: What::Fault, fault: Some(what), ..Self::NOBODY }),
            _ => return None,
        };
        let Message { from, to, method, arguments, .. } = messages.get(message)?;
        let (kind, key) = (to.kind.name(), to.key.as_str());
        Some(Self { what, from: from.to_string(), kind, key, method, arguments, answer, fault: None })
    }

    /// What is about no message.
    const NOBODY: Self = Self {
        what: What::Ended,
        from: String::new(),
        kind: "",
        key: "",
        method: "",
        arguments: "",
        answer: None,
        fault: None,
    };

    /// What has happened.
    pub fn what(&self) -> What {
        self.what
    }

    /// Whether a turn of this method has begun.
    pub fn begins(&self, kind: &str, method: &str) -> bool {
        self.what == What::Began && self.is_of(kind, method)
    }

    /// Whether a turn of this method has ended.
    pub fn ends(&self, kind: &str, method: &str) -> bool {
        self.what == What::Ended && self.is_of(kind, method)
    }

    /// Whether it is about this method.
    pub fn is_of(&self, kind: &str, method: &str) -> bool {
        self.kind == kind && self.method == method
    }

    /// Who sent the message: `client 1`, or `teller/1`. Nothing for the end of a turn.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// The kind of the actor that was called.
    pub fn kind(&self) -> &str {
        self.kind
    }

    /// Its key.
    pub fn key(&self) -> &str {
        self.key
    }

    /// The method that was called.
    pub fn method(&self) -> &str {
        self.method
    }

    /// One of the message's arguments, by its name; nothing if there is none, or it is no `T`.
    pub fn argument<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let arguments: serde_json::Value = serde_json::from_str(self.arguments).ok()?;
        serde_json::from_value(arguments.get(name)?.clone()).ok()
    }

    /// What a call was answered with, if it was, and not with an error.
    pub fn answer<T: DeserializeOwned>(&self) -> Option<T> {
        match self.answer? {
            Answer::Value(value) => serde_json::from_str(value).ok(),
            _ => None,
        }
    }

    /// What has gone wrong, as the step is called: `crash b`, `lose teller/1<account/ada.get`.
    pub fn fault(&self) -> Option<&str> {
        self.fault
    }

    /// Whether a call was answered with an error, the actor's own or the runtime's.
    pub fn is_error(&self) -> bool {
        self.answer.is_some_and(|answer| !matches!(answer, Answer::Value(_)))
    }
}
