//! Counters that are driven over HTTP, and what their callers were told.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::nodes::Nodes;

/// What a caller was told of a call.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Told {
    /// It ran, and this is its answer.
    Answer(Value),
    /// Nothing has changed, and will not: what was said.
    Not(String),
    /// Nobody knows: what was said.
    Doubt(String),
}

/// A client of one node's door at a time.
pub(crate) struct Client {
    agent: ureq::Agent,
    time_limit: Duration,
}

impl Client {
    /// A client that gives each call so long, and itself waits `patience` for an answer.
    pub(crate) fn new(time_limit: Duration, patience: Duration) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(patience)).http_status_as_error(false);
        Self { agent: config.build().into(), time_limit }
    }

    /// Calls a method of a counter at `door`.
    pub(crate) fn call(&self, door: &str, key: impl fmt::Display, method: &str, arguments: &str) -> Told {
        let request = self.agent.post(format!("http://{door}/counter/{key}/{method}"));
        let request = request.header("greenroom-timeout", format!("{}ms", self.time_limit.as_millis()));
        let answer = request.header("content-type", "application/json").send(arguments);
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(ureq::Error::Io(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Told::Not("nobody listens there".to_owned());
            }
            Err(error) => return Told::Doubt(error.to_string()),
        };
        let status = answer.status().as_u16();
        match answer.body_mut().read_to_string() {
            Ok(body) => read(status, &body),
            Err(error) => Told::Doubt(error.to_string()),
        }
    }
}

/// What an answer of the door means.
fn read(status: u16, body: &str) -> Told {
    let said: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{status} with {body:?}: {error}"));
    if status == 200 {
        return Told::Answer(said);
    }
    let what = format!("{status} {}", said["detail"].as_str().unwrap_or("without a detail"));
    match (&said["may_have_run"], &said["error"]) {
        (Value::Bool(false), _) => Told::Not(what),
        (Value::Bool(true), _) => Told::Doubt(what),
        // The method's own error: that of a save.
        (_, Value::Object(error)) if error.contains_key("Unknown") => Told::Doubt(what),
        (_, Value::Object(_)) => Told::Not(what),
        _ => panic!("an answer that says neither what happened nor what did not: {status} {body}"),
    }
}

/// Counters and what is known of each.
pub(crate) struct Counters {
    books: Vec<Mutex<Book>>,
    stopped: AtomicBool,
    refused: AtomicU64,
    longest_millis: AtomicU64,
}

#[derive(Default)]
struct Book {
    /// Every total that was acknowledged: no two adds may be told the same.
    totals: BTreeSet<u64>,
    doubts: u64,
}

/// How a load went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) saved: u64,
    pub(crate) doubts: u64,
    pub(crate) refused: u64,
    pub(crate) longest: Duration,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { saved, doubts, refused, longest } = self;
        write!(f, "{saved} adds saved, {doubts} in doubt, {refused} not made, the longest call took {longest:?}")
    }
}

impl Counters {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            books: (0..count).map(|_| Mutex::default()).collect(),
            stopped: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            longest_millis: AtomicU64::new(0),
        }
    }

    fn book(&self, key: usize) -> MutexGuard<'_, Book> {
        self.books[key].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one to a counter at `door`.
    ///
    /// # Panics
    /// When it is told a total that was told before, or one that is not above all that were told before it began.
    pub(crate) fn add(&self, client: &Client, door: &str, key: usize) -> Told {
        self.note(key, || client.call(door, key, "add", r#"{"amount":1}"#))
    }

    /// The same, by way of the counter called `by`, which is none of those that are counted here.
    pub(crate) fn add_by(&self, client: &Client, door: &str, key: usize, by: &str) -> Told {
        let arguments = format!(r#"{{"other":"{key}","amount":1}}"#);
        self.note(key, || client.call(door, by, "add_to", &arguments))
    }

    fn note(&self, key: usize, add: impl FnOnce() -> Told) -> Told {
        let before = self.book(key).totals.last().copied();
        let begun = Instant::now();
        let told = add();
        self.longest_millis.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
        match &told {
            Told::Answer(total) => {
                let total = total.as_u64().expect("a total is a number");
                assert!(Some(total) > before, "counter {key} went back from {before:?} to {total}");
                assert!(self.book(key).totals.insert(total), "counter {key} was {total} for two adds");
            }
            Told::Not(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            Told::Doubt(_) => self.book(key).doubts += 1,
        }
        told
    }

    /// Adds to one counter after the other until the [load](WhileLoaded) ends, each by the next of the doors.
    pub(crate) fn drive(&self, client: &Client, doors: &[String], first: usize) {
        let mut turn = first;
        while !self.is_stopped() {
            turn += 1;
            let told = self.add(client, &doors[turn % doors.len()], turn * 7 % self.books.len());
            if !matches!(told, Told::Answer(_)) {
                std::thread::sleep(PAUSE_AFTER_FAILURE);
            }
        }
    }

    /// Whether who drives is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn figures(&self) -> Figures {
        let sum = |of: fn(&Book) -> u64| (0..self.books.len()).map(|key| of(&self.book(key))).sum();
        Figures {
            saved: sum(|book| book.totals.len() as u64),
            doubts: sum(|book| book.doubts),
            refused: self.refused.load(Ordering::Relaxed),
            longest: Duration::from_millis(self.longest_millis.load(Ordering::Relaxed)),
        }
    }

    /// Compares every counter with what its callers were told.
    ///
    /// # Panics
    /// When a counter has lost an add or counts one twice, or does not answer.
    pub(crate) fn check(&self, client: &Client, nodes: &mut Nodes) {
        for key in 0..self.books.len() {
            let total = patiently(client, nodes, key);
            let book = self.book(key);
            let saved = book.totals.len() as u64;
            let last = book.totals.last().copied().unwrap_or(0);
            assert!(total >= last, "counter {key} is {total}, but {last} was acknowledged");
            assert!(
                (saved..=saved + book.doubts).contains(&total),
                "counter {key} is {total}; acknowledged are {saved} adds, in doubt {}",
                book.doubts
            );
        }
    }
}

/// Ends the load when it is dropped, also by a test that fails.
pub(crate) struct WhileLoaded<'a>(pub(crate) &'a Counters);

impl Drop for WhileLoaded<'_> {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}

/// A counter's total, from whoever answers first; nodes that stop meanwhile are started again.
fn patiently(client: &Client, nodes: &mut Nodes, key: usize) -> u64 {
    let doors = nodes.doors();
    let until = Instant::now() + ANSWER_TIMEOUT;
    let mut turn = 0;
    loop {
        let told = client.call(&doors[turn % doors.len()], key, "get", "{}");
        if let Told::Answer(total) = told {
            return total.as_u64().expect("a total is a number");
        }
        assert!(Instant::now() < until, "counter {key} does not answer: {told:?}");
        nodes.revive();
        std::thread::sleep(PAUSE_AFTER_FAILURE);
        turn += 1;
    }
}

const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);
