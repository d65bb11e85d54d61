//! Callers of registers through the nodes' doors, who write down all that they ask and are told.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use greenroom_sim::Random;
use greenroom_sim::history::registers::{Asked, Operation, Stamped, Told};
use serde::Deserialize;
use serde_json::Value;

use crate::events::Events;
use crate::nemesis::Nemesis;

/// The callers of a run.
pub(crate) struct Callers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Vec<Record>>>,
}

struct Shared {
    doors: Vec<String>,
    events: Arc<Events>,
    next_value: AtomicU64,
    is_over: AtomicBool,
}

/// A register: whether it is kept, and its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Register {
    pub(crate) is_kept: bool,
    pub(crate) number: usize,
}

/// What one caller did once.
struct Record {
    register: Register,
    what: What,
}

enum What {
    Asked(Entry),
    /// It was sent away, some time in between.
    Left(Duration, Duration),
}

/// An operation, and the node that answered.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) operation: Operation,
    pub(crate) node: Option<String>,
}

/// All that was asked of each register.
pub(crate) struct Histories {
    pub(crate) registers: BTreeMap<Register, History>,
    /// What is wrong beside what the histories tell.
    pub(crate) troubles: Vec<String>,
}

/// What was asked of one register.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
    /// When it was sent away.
    pub(crate) left: Vec<(Duration, Duration)>,
}

impl Callers {
    /// Starts callers that use all of `doors`.
    pub(crate) fn start(doors: Vec<String>, events: Arc<Events>) -> Self {
        let (next_value, is_over) = (AtomicU64::new(1), AtomicBool::new(false));
        let shared = Arc::new(Shared { doors, events, next_value, is_over });
        let threads = (0..CALLERS)
            .map(|number| {
                let shared = shared.clone();
                thread::spawn(move || Caller::new(number, &shared).call_until_over())
            })
            .collect();
        Self { shared, threads }
    }

    /// Ends all callers, sees whether every register answers, and gives what was written down.
    pub(crate) fn stop(self, nemesis: &mut Nemesis) -> Histories {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let mut records: Vec<Record> = Vec::new();
        let mut troubles = nemesis.troubles().to_vec();
        for thread in self.threads {
            match thread.join() {
                Ok(theirs) => records.extend(theirs),
                Err(_) => troubles.push("a caller panicked; its records are lost".to_owned()),
            }
        }
        let mut last = Caller::new(CALLERS, &self.shared);
        for register in all() {
            let until = self.shared.events.now() + ANSWER_TIMEOUT;
            loop {
                let entry = last.ask(register, Asked::Read);
                let is_answered = entry.node.is_some();
                last.records.push(Record { register, what: What::Asked(entry) });
                if is_answered {
                    break;
                }
                if self.shared.events.now() > until {
                    troubles.push(format!("{register} does not answer though all is mended"));
                    break;
                }
                nemesis.keep_alive(Duration::from_millis(100));
            }
        }
        records.append(&mut last.records);
        let mut registers: BTreeMap<Register, History> = BTreeMap::new();
        for Record { register, what } in records {
            let history = registers.entry(register).or_default();
            match what {
                What::Asked(entry) => history.entries.push(entry),
                What::Left(from, to) => history.left.push((from, to)),
            }
        }
        for history in registers.values_mut() {
            history.entries.sort_by_key(|entry| entry.operation.begun);
        }
        Histories { registers, troubles }
    }
}

fn all() -> impl Iterator<Item = Register> {
    [false, true].into_iter().flat_map(|is_kept| (0..REGISTERS).map(move |number| Register { is_kept, number }))
}

struct Caller<'a> {
    name: String,
    shared: &'a Shared,
    agent: ureq::Agent,
    random: Random,
    records: Vec<Record>,
}

impl<'a> Caller<'a> {
    fn new(number: usize, shared: &'a Shared) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
        let name = format!("caller-{number}");
        let random = Random::new(number as u64);
        Self { name, shared, agent: config.build().into(), random, records: Vec::new() }
    }

    fn call_until_over(mut self) -> Vec<Record> {
        while !self.shared.is_over.load(Ordering::Relaxed) {
            let register = Register { is_kept: self.random.chance(0.5), number: self.random.index(REGISTERS) };
            let what = match self.random.index(300) {
                0 => self.send_away(register),
                1..=100 => What::Asked(self.ask(register, Asked::Read)),
                _ => {
                    let value = self.shared.next_value.fetch_add(1, Ordering::Relaxed);
                    What::Asked(self.ask(register, Asked::Swap(value)))
                }
            };
            let failed = matches!(&what, What::Asked(entry) if entry.node.is_none());
            self.records.push(Record { register, what });
            let pause = if failed { PAUSE_AFTER_FAILURE } else { PAUSE };
            thread::sleep(self.random.within(&(pause / 2..pause)));
        }
        self.records
    }

    fn send_away(&mut self, register: Register) -> What {
        let begun = self.shared.events.now();
        let (_, told) = self.post(register, "leave", "{}");
        // What is in doubt may come true within its time and that of the slowest frame.
        let ended = self.shared.events.now() + if told.is_ok() { Duration::ZERO } else { TIME_LIMIT * 3 };
        What::Left(begun, ended)
    }

    fn ask(&mut self, register: Register, asked: Asked) -> Entry {
        let begun = self.shared.events.now();
        let (door, answer) = match asked {
            Asked::Swap(value) => self.post(register, "swap", &format!(r#"{{"value":{value}}}"#)),
            Asked::Read => self.post(register, "read", "{}"),
        };
        let ended = self.shared.events.now();
        let (told, node) = match answer {
            Ok(body) => match serde_json::from_str::<Answer>(&body) {
                Ok(Answer { epoch, count, value, node }) => (Told::Answer(Stamped { epoch, count, value }), Some(node)),
                Err(error) => {
                    self.shared.events.note(&format!("an answer that is none: {error}: {body}"));
                    (Told::Doubt, None)
                }
            },
            Err(told) => (told, None),
        };
        let caller = format!("{} by {door}", self.name);
        Entry { operation: Operation { caller, begun, ended, asked, told }, node }
    }

    /// Calls a register at any door; the body of its answer, or what is known if there is none.
    fn post(&mut self, register: Register, method: &str, arguments: &str) -> (usize, Result<String, Told>) {
        let place = self.random.index(self.shared.doors.len());
        let kind = if register.is_kept { "kept_register" } else { "register" };
        let url = format!("http://{}/{kind}/{}/{method}", self.shared.doors[place], register.number);
        let request = self.agent.post(url).header("greenroom-timeout", format!("{}ms", TIME_LIMIT.as_millis()));
        let answer = match request.header("content-type", "application/json").send(arguments) {
            Ok(mut answer) => {
                let status = answer.status().as_u16();
                match answer.body_mut().read_to_string() {
                    Ok(body) if status == 200 => Ok(body),
                    Ok(body) => Err(self.refused(&body)),
                    Err(_) => Err(Told::Doubt),
                }
            }
            Err(ureq::Error::Io(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Err(Told::Not),
            Err(_) => Err(Told::Doubt),
        };
        (place, answer)
    }

    /// What an error document means.
    fn refused(&self, body: &str) -> Told {
        let said: Value = serde_json::from_str(body).unwrap_or_default();
        match (&said["may_have_run"], &said["error"]) {
            (Value::Bool(false), _) => Told::Not,
            (Value::Bool(true), _) => Told::Doubt,
            // The method's own error: that of a save.
            (_, Value::Object(error)) if !error.contains_key("Unknown") => Told::Not,
            (_, Value::Object(_)) => Told::Doubt,
            _ => {
                let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
                self.shared.events.note(&format!("an error that does not say what happened: {body}"));
                Told::Doubt
            }
        }
    }
}

/// What a register answers.
#[derive(Deserialize)]
struct Answer {
    epoch: u64,
    count: u64,
    value: u64,
    node: String,
}

impl Histories {
    /// Writes all down, one line an operation.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let write = || -> io::Result<()> {
            let mut file = BufWriter::new(File::create(path)?);
            for (register, history) in &self.registers {
                for entry in &history.entries {
                    let node = entry.node.as_deref().unwrap_or("-");
                    writeln!(file, "{register} {} {node}", entry.operation)?;
                }
            }
            file.flush()
        };
        write().map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

impl std::fmt::Display for Register {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", if self.is_kept { "kept_register" } else { "register" }, self.number)
    }
}

/// Of each kind.
const REGISTERS: usize = 12;
const CALLERS: usize = 20;
/// Of each call.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// When a caller gives up a door that does not keep the limit: that of a frozen node.
const PATIENCE: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);
/// When all is mended every register answers long before this.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
