//! What a turn got that neither its message nor its actor's fields decide: chance, time, fresh keys, and what it read. The second
//! run gets the same.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::delivery::Birth;
use greenroom_protocols::reminders::Wall;
use greenroom_wire::codec::{self, Codec};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What one turn got, in order, and how far its second run is.
#[derive(Default)]
pub(in crate::reliable) struct Record {
    choices: Tape<Bytes>,
    times: Tape<Wall>,
    births: Tape<Birth>,
    /// Timers that a host has named, which draws their names.
    names: Tape<String>,
    /// Those that this run has named otherwise than the first one.
    renamed: BTreeMap<String, String>,
    /// Answers to what it awaited; empty while there is none.
    reads: Tape<Bytes>,
    /// Calls that it made, those of `reads` among them.
    calls: usize,
    /// Messages to actors that are not reliable, by actor and method.
    told: Vec<String>,
}

impl Record {
    /// What was chosen at this place of the turn, and the place, under which a new choice is [kept](Self::choose).
    pub(in crate::reliable) fn chosen<T: DeserializeOwned>(&mut self) -> (usize, Option<T>) {
        let (at, value) = self.choices.take();
        (at, value.as_ref().and_then(read))
    }

    /// Keeps what was chosen. What has no encoding is chosen anew, and seen if it matters.
    pub(in crate::reliable) fn choose<T: Serialize>(&mut self, at: usize, value: &T) {
        self.choices.put(at, write(value).unwrap_or_default());
    }

    /// The same of bytes: what was chosen at this place, or else `value`.
    pub(in crate::reliable) fn choose_bytes(&mut self, value: Bytes) -> Bytes {
        self.choices.next(|| value)
    }

    /// The time, if it is `now`.
    pub(in crate::reliable) fn time(&mut self, now: Wall) -> Wall {
        self.times.next(|| now)
    }

    /// The name of the timer that is set now, if its host calls it `name`.
    pub(in crate::reliable) fn name_timer(&mut self, name: &str) -> String {
        let first = self.names.next(|| name.to_owned());
        self.renamed.insert(name.to_owned(), first.clone());
        first
    }

    /// What the timer is called that its host calls `name`.
    pub(in crate::reliable) fn timer(&self, name: &str) -> String {
        self.renamed.get(name).map_or(name, String::as_str).to_owned()
    }

    /// A fresh incarnation.
    pub(in crate::reliable) fn birth(&mut self, fresh: impl FnOnce() -> Birth) -> Birth {
        self.births.next(fresh)
    }

    /// What was answered at this place of the turn, and the place, under which the answer is [kept](Self::end_read).
    pub(in crate::reliable) fn begin_read(&mut self) -> (usize, Option<Bytes>) {
        let (at, answer) = self.reads.take();
        (at, answer.filter(|answer| !answer.is_empty()))
    }

    /// Keeps an answer.
    pub(in crate::reliable) fn end_read(&mut self, at: usize, answer: Bytes) {
        self.reads.put(at, answer);
    }

    /// Counts a call that the turn makes.
    pub(in crate::reliable) fn call(&mut self) {
        self.calls += 1;
    }

    /// Keeps whom the turn sends a message that leaves after the commit.
    pub(in crate::reliable) fn tell(&mut self, whom: String) {
        self.told.push(whom);
    }

    pub(in crate::reliable) fn told(&self) -> &[String] {
        &self.told
    }

    /// Whether a second run gets all that the first one got: every call's answer is known.
    pub(in crate::reliable) fn is_whole(&self) -> bool {
        self.calls == self.reads.items.iter().filter(|answer| !answer.is_empty()).count()
    }

    /// The same for a second run.
    pub(in crate::reliable) fn again(&self) -> Self {
        Self {
            choices: self.choices.again(),
            times: self.times.again(),
            births: self.births.again(),
            names: self.names.again(),
            reads: self.reads.again(),
            ..Self::default()
        }
    }
}

/// Values in order; past the last one there are new ones.
struct Tape<T> {
    items: Vec<T>,
    at: usize,
}

impl<T> Default for Tape<T> {
    fn default() -> Self {
        Self { items: Vec::new(), at: 0 }
    }
}

impl<T: Clone> Tape<T> {
    fn next(&mut self, make: impl FnOnce() -> T) -> T {
        let (_, value) = self.take();
        value.unwrap_or_else(|| {
            let made = make();
            self.items.push(made.clone());
            made
        })
    }

    fn take(&mut self) -> (usize, Option<T>) {
        let at = self.at;
        self.at += 1;
        (at, self.items.get(at).cloned())
    }

    fn again(&self) -> Self {
        Self { items: self.items.clone(), at: 0 }
    }
}

impl Tape<Bytes> {
    fn put(&mut self, at: usize, value: Bytes) {
        if self.items.len() <= at {
            self.items.resize(at + 1, Bytes::new());
        }
        self.items[at] = value;
    }
}

pub(in crate::reliable) fn read<T: DeserializeOwned>(value: &Bytes) -> Option<T> {
    codec::decode(value).ok()
}

pub(in crate::reliable) fn write<T: Serialize>(value: &T) -> Option<Bytes> {
    let mut out = BytesMut::new();
    codec::encode(Codec::MessagePack, 0, value, &mut out).ok()?;
    Some(out.freeze())
}
