//! The example actors of the program: a chat, who is where, counters that are kept, and alarms.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use greenroom::Builder;
use greenroom::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Registers the examples.
pub(crate) fn register(builder: Builder) -> Builder {
    builder.register::<ChatRoom>().register::<User>().register::<Presence>().register::<Counter>().register::<Alarm>()
}

/// Their names.
pub(crate) const NAMES: [&str; 5] = ["chat_room", "user", "presence", "counter", "alarm"];

/// What was said, by whom.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Message {
    number: u64,
    user: String,
    text: String,
}

/// Why a message was not posted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) enum ChatError {
    /// Nothing was said.
    Empty,
    /// The text has more than so many bytes.
    TooLong { max: usize },
}

/// A chat room: it keeps what was said last, and takes it along when it goes to another node.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct ChatRoom {
    posted: u64,
    messages: VecDeque<Message>,
}

#[actor(migrate)]
impl ChatRoom {
    /// Adds a message and gives its number.
    pub async fn post(&mut self, cx: &Cx, user: String, text: String) -> Result<u64, ChatError> {
        if text.is_empty() {
            return Err(ChatError::Empty);
        }
        if text.len() > TEXT_LEN_MAX {
            return Err(ChatError::TooLong { max: TEXT_LEN_MAX });
        }
        UserRef::of(cx, user.as_str()).spoke().send();
        self.posted += 1;
        self.messages.push_back(Message { number: self.posted, user, text });
        if self.messages.len() > MESSAGES_MAX {
            self.messages.pop_front();
        }
        Ok(self.posted)
    }

    /// What was said last.
    pub async fn read(&self) -> Vec<Message> {
        self.messages.iter().cloned().collect()
    }

    /// The node that the room is on.
    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

/// Somebody who chats: where the rooms are that he speaks in.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct User {
    messages: u64,
}

#[actor(migrate)]
impl User {
    /// Notes that the user said something.
    pub async fn spoke(&mut self) {
        self.messages += 1;
    }

    /// How often the user said something.
    pub async fn messages(&self) -> u64 {
        self.messages
    }
}

/// Who is at a place: those who said so of late. It is by this node's clock, and stays where it is.
#[derive(Default, Actor)]
pub(crate) struct Presence {
    seen: BTreeMap<String, Instant>,
}

#[actor]
impl Presence {
    /// Says that `user` is here.
    pub async fn heartbeat(&mut self, user: String) {
        self.forget_the_gone();
        if self.seen.len() < USERS_MAX || self.seen.contains_key(&user) {
            self.seen.insert(user, Instant::now());
        }
    }

    /// How many are here.
    pub async fn online(&mut self) -> usize {
        self.forget_the_gone();
        self.seen.len()
    }

    fn forget_the_gone(&mut self) {
        self.seen.retain(|_, seen| seen.elapsed() < GONE_AFTER);
    }
}

/// What became of an amount that another counter was to add.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum AddError {
    /// Nobody knows whether it was added.
    Unknown { message: String },
    /// It was not.
    Refused { message: String },
}

/// A number that outlives its activations and their nodes.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Counter {
    total: u64,
}

#[actor(persistent)]
impl Counter {
    /// Adds to the total and gives it, once it is saved.
    pub async fn add(&mut self, cx: &Cx, amount: u64) -> Result<u64, StateError> {
        self.total = self.total.saturating_add(amount);
        cx.save(self).await?;
        Ok(self.total)
    }

    /// Adds to the counter `other` and gives its total, once that is saved. Counters that do this often come to live on one node.
    pub async fn add_to(&self, cx: &Cx, other: String, amount: u64) -> Result<u64, AddError> {
        CounterRef::of(cx, other.as_str()).add(amount).await.map_err(|error| match error {
            CallError::Unknown(_) | CallError::Actor(StateError::Unknown { .. }) => {
                AddError::Unknown { message: error.to_string() }
            }
            _ => AddError::Refused { message: error.to_string() },
        })
    }

    /// The total.
    pub async fn get(&self) -> u64 {
        self.total
    }

    /// The node that the counter is on.
    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

/// An alarm: it is reminded, and keeps how often.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Alarm {
    rings: u64,
    latest_seconds: f64,
}

#[actor(persistent, idle = "5s")]
impl Alarm {
    /// Rings once, so many seconds from now.
    pub async fn set(&mut self, cx: &Cx, seconds: f64) -> Result<(), ReminderError> {
        AlarmRef::me(cx).ring().after(time(seconds)).await
    }

    /// Rings once in so many seconds.
    pub async fn every(&mut self, cx: &Cx, seconds: f64) -> Result<(), ReminderError> {
        AlarmRef::me(cx).ring().every(time(seconds)).await
    }

    /// What the reminder calls.
    pub async fn ring(&mut self, cx: &Cx) -> Result<(), StateError> {
        self.rings += 1;
        let late_by = cx.tick().map(|tick| tick.late_by.as_secs_f64());
        self.latest_seconds = self.latest_seconds.max(late_by.unwrap_or_default());
        cx.save(self).await
    }

    /// How often it has rung, and how many seconds late it was at most.
    pub async fn rings(&self) -> (u64, f64) {
        (self.rings, self.latest_seconds)
    }
}

fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

const MESSAGES_MAX: usize = 20;
const TEXT_LEN_MAX: usize = 2000;
const USERS_MAX: usize = 10_000;
const GONE_AFTER: Duration = Duration::from_secs(10);
