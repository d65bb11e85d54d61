//! What happens in the steps of a shard on a stage, for who judges and tells it.

use std::cell::{Cell, RefCell};
use std::fmt;

use bytes::BytesMut;
use greenroom_wire::codec;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Party, Shard};
use crate::actor::error::Failure;
use crate::actor::key::ActorId;
use crate::shard::calls::Completion;
use crate::shard::mail::AnyMail;

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The number of the step in which it did.
    pub step: u64,
    /// What it was.
    pub what: Happened,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Happened {
    /// A message was sent; the step in which it comes has its number.
    Sent {
        /// The number.
        message: u64,
        /// Who sent it.
        from: Party,
        /// To whom.
        to: ActorId,
        /// What it calls.
        method: &'static str,
        /// The arguments, as JSON.
        arguments: String,
        /// Whether somebody waits for an answer.
        awaited: bool,
    },
    /// A message came: its turn began, or it was turned away.
    Came {
        /// Its number.
        message: u64,
    },
    /// A turn ended.
    Ended {
        /// The actor.
        actor: ActorId,
        /// The method, or the hook.
        method: String,
        /// What it said if it panicked.
        panic: Option<String>,
    },
    /// A message was answered.
    Answered {
        /// Its number.
        message: u64,
        /// With what.
        answer: Answer,
    },
    /// An answer came to who waits for it.
    Heard {
        /// The number of the message.
        message: u64,
    },
    /// Something went wrong, as it was chosen to.
    Fault {
        /// What, as the step is called.
        what: String,
        /// If it hits a node, the actors that sit there, by their names.
        actors: Vec<String>,
    },
}

/// How a call ended.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Answer {
    /// With what the method returned, as JSON.
    Value(String),
    /// With the actor's own error, as JSON.
    Error(String),
    /// Nothing has run.
    Refused(String),
    /// It may have run.
    Unknown(String),
    /// It called back into its own chain.
    Cycle(Vec<String>),
}

/// What has happened since somebody last asked, if anybody listens.
#[derive(Default)]
pub(super) struct Events {
    on: Cell<bool>,
    list: RefCell<Vec<Event>>,
}

impl Events {
    pub(super) fn listen(&self, on: bool) {
        self.on.set(on);
        self.list.borrow_mut().clear();
    }

    pub(super) fn take(&self) -> Vec<Event> {
        self.list.take()
    }

    pub(super) fn clear(&self) {
        self.list.borrow_mut().clear();
    }

    pub(super) fn len(&self) -> usize {
        self.list.borrow().len()
    }

    /// Notes what `what` says, if anybody listens.
    pub(super) fn note(&self, step: u64, what: impl FnOnce() -> Happened) {
        if self.on.get() {
            let event = Event { step, what: telling(what) };
            self.list.borrow_mut().push(event);
        }
    }
}

thread_local! {
    static TELLS: Cell<bool> = const { Cell::new(false) };
}

/// Runs `tell`, which writes values for people.
pub(super) fn telling<T>(tell: impl FnOnce() -> T) -> T {
    let before = TELLS.replace(true);
    let told = tell();
    TELLS.set(before);
    told
}

/// Whether what is written now is for people: a stream in it goes nowhere.
pub(crate) fn is_told() -> bool {
    TELLS.get()
}

impl Shard {
    /// Notes that a message is under way that a part of the shard has sent, with the arguments as they travel.
    pub(crate) fn note_letter(&self, message: u64, from: &Party, to: &ActorId, method: &str, arguments: &[u8]) {
        let methods = || self.port.node.kinds().methods_of(to.kind.name());
        self.rehearsal.note(|| Happened::Sent {
            message,
            from: from.clone(),
            to: to.clone(),
            method: methods().iter().find(|known| known.name == method).map_or("?", |known| known.name),
            arguments: fields_of(arguments).unwrap_or_else(|_| UNREADABLE.to_owned()),
            awaited: false,
        });
    }
}

/// The arguments of a message, as JSON.
pub(super) fn arguments(mail: &dyn AnyMail) -> String {
    let mut out = BytesMut::new();
    let written = mail.encode(&mut out).map_err(|error| error.to_string());
    written.and_then(|()| fields_of(&out)).unwrap_or_else(|_| UNREADABLE.to_owned())
}

impl From<&Completion> for Answer {
    fn from(completion: &Completion) -> Self {
        match completion {
            Completion::Value(value) => match value.text() {
                Some(Ok(value)) => Answer::Value(value),
                Some(Err(error)) => Answer::Error(error),
                None => Answer::Value(UNREADABLE.to_owned()),
            },
            Completion::Failed(failure) => match &**failure {
                Failure::Refused(refusal) => Answer::Refused(refusal.to_string()),
                Failure::Unknown(doubt) => Answer::Unknown(doubt.to_string()),
                Failure::Cycle(path) => Answer::Cycle(path.clone()),
            },
            Completion::Wire { payload, .. } => {
                Answer::Value(text_of(payload).unwrap_or_else(|_| UNREADABLE.to_owned()))
            }
        }
    }
}

/// The fields of the arguments, in the order in which the method has them.
fn fields_of(payload: &[u8]) -> Result<String, String> {
    struct Pairs(Vec<String>);
    struct InOrder;
    impl<'de> Visitor<'de> for InOrder {
        type Value = Pairs;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("arguments")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Pairs, A::Error> {
            let mut written = Vec::new();
            while let Some((name, value)) = fields.next_entry::<String, serde_json::Value>()? {
                written.push(format!("{}:{value}", serde_json::Value::String(name)));
            }
            Ok(Pairs(written))
        }
    }
    impl<'de> Deserialize<'de> for Pairs {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(InOrder)
        }
    }
    let Pairs(fields) = codec::decode(payload).map_err(|error| error.to_string())?;
    Ok(format!("{{{}}}", fields.join(",")))
}

fn text_of(payload: &[u8]) -> Result<String, String> {
    let value: serde_json::Value = codec::decode(payload).map_err(|error| error.to_string())?;
    Ok(value.to_string())
}

/// Stands for what has no text.
const UNREADABLE: &str = "\u{2026}";
